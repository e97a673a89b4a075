"""What a scenario file may say about a policy, and the policy that it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator, model_validator

from ...inputs import DescriptionError, Quantity, Strict
from ...inputs.quantities import Duration
from . import bundled_policy
from .policy import Policy
from .user_policy import user_policy

# The ERIS paper says that the monitor samples, not how often. Half a second is well above the time
# that the transfers of one cycle take on its machines, well below the 20 s between shifts of load.
PERIOD = Quantity(0.5, 0.5, 0.5)
PERIOD_MIN_S = 1e-3


@dataclass(frozen=True)
class ChosenPolicy:
    """A policy ready to be made: its name, what makes a new one, the user's file it is from."""

    name: str
    make: Callable[[], Policy]
    file: Path | None = None


class PolicySpec(Strict):
    """A bundled ``policy`` by name, or the user's ``class`` from a Python ``file``.

    ``threshold`` goes to a bundled balancer (relative standard deviation of the loads, above which
    it acts), ``options`` to the constructor of the user's class. The policy is asked every
    ``period``.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    policy: str | None = None
    threshold: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    file: str | None = None
    class_name: Annotated[str | None, Field(alias="class")] = None
    options: dict[str, Any] | None = None
    period: Duration = PERIOD

    @field_validator("period")
    @classmethod
    def _takes_time(cls, period: Quantity) -> Quantity:
        if period.value < PERIOD_MIN_S:
            raise ValueError(f"expected at least {PERIOD_MIN_S * 1e3:g} ms")
        return period

    @model_validator(mode="before")
    @classmethod
    def _none_by_default(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("policy") is None and raw.get("file") is None:
            return {**raw, "policy": "none"}
        return raw

    @model_validator(mode="after")
    def _one_of(self) -> PolicySpec:
        if self.file is None:
            if self.class_name is not None or self.options is not None:
                raise ValueError("class and options belong to a file: expected file")
        elif self.policy is not None:
            raise ValueError("expected either policy or file, not both")
        elif self.class_name is None:
            raise ValueError("expected class, the name of the policy in the file")
        elif self.threshold is not None:
            raise ValueError("threshold belongs to bundled policies: expected it in options")
        return self

    def choose(self, family: str, folder: Path) -> ChosenPolicy:
        """The policy meant, of that ``family``; a file is looked for in ``folder``.

        Raises InputError, or DescriptionError for an option that does not fit.
        """
        if self.file is not None and self.class_name is not None:
            path = folder / self.file
            make = user_policy(path, self.class_name, self.options or {})
            return ChosenPolicy(self.class_name, make, path)
        name = self.policy or "none"
        options = {} if self.threshold is None else {"threshold": self.threshold}

        def make_bundled() -> Policy:
            return bundled_policy(family, name, options)

        try:
            make_bundled()
        except ValueError as failure:
            raise DescriptionError((), str(failure)) from None
        return ChosenPolicy(name, make_bundled)

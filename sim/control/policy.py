"""The interface of a policy: any class that returns commands when it is called.

A policy knows no plane: the same policy runs on all of them. The control plane asks it once per
period. What it sees and what it may order is its family's, and that belongs to a system.

The fields of a policy in a scenario file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic_core import CoreSchema

from ...inputs import Quantity, Strict
from ...inputs.quantities import Duration

Seen = TypeVar("Seen", contravariant=True)
Order = TypeVar("Order", covariant=True)


class Policy(Protocol[Seen, Order]):
    """Any class with this method is a policy."""

    def decide(self, observation: Seen) -> Sequence[Order]:
        """The commands to give now; often none."""


AnyPolicy = Policy[Any, Any]


@dataclass(frozen=True)
class NoPolicy:
    """Leaves everything as it is."""

    def decide(self, observation: Any) -> tuple[()]:
        """No command, ever."""
        return ()


NO_POLICY = "none"
PERIOD_MIN_S = 1e-3


class PolicySpec(Strict):
    """A bundled ``policy`` by name, or the user's ``class`` from a Python ``file``.

    In short, the name alone, or ``FILE.py:CLASS``. ``options`` go to the constructor of the user's
    class; those of bundled policies are fields that a family adds. The policy is asked every
    ``period``.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    policy: str | None = None
    file: str | None = None
    class_name: str | None = Field(default=None, alias="class")
    options: dict[str, Any] | None = None
    period: Duration

    GENERIC: ClassVar[frozenset[str]] = frozenset(
        {"policy", "file", "class_name", "options", "period"}
    )

    @field_validator("period")
    @classmethod
    def _takes_time(cls, period: Quantity) -> Quantity:
        if period.value < PERIOD_MIN_S:
            raise ValueError(f"expected at least {PERIOD_MIN_S * 1e3:g} ms")
        return period

    @model_validator(mode="before")
    @classmethod
    def _none_by_default(cls, raw: Any) -> Any:
        if isinstance(raw, str):
            return named(raw)
        if not isinstance(raw, dict) or raw.get("file") is not None:
            return raw
        name = raw.get("policy")
        if name is None:
            return {**raw, "policy": NO_POLICY}
        found = named(name) if isinstance(name, str) else {}
        if "class" in found and raw.get("class") is not None:
            raise ValueError("expected the class in policy or in class, not both")
        return {**raw, "policy": None, **found} if found else raw

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(core_schema)]}

    def _fits(self) -> None:
        if self.file is None:
            if self.class_name is not None or self.options is not None:
                raise ValueError("class and options belong to a file: expected file")
        elif self.policy is not None:
            raise ValueError("expected either policy or file, not both")
        elif self.class_name is None:
            raise ValueError("expected class, the name of the policy in the file")
        else:
            for name in self.bundled_options():
                raise ValueError(f"{name} belongs to bundled policies: expected it in options")

    def bundled_options(self) -> dict[str, Any]:
        """The options of a bundled policy: what its family adds to these fields, where given."""
        return {
            name: value
            for name in type(self).model_fields
            if name not in self.GENERIC and (value := getattr(self, name)) is not None
        }


def named(text: str) -> dict[str, str]:
    """The fields that ``text`` stands for: a policy's name, or ``FILE.py:CLASS``.

    Raises ValueError for a file without a class.
    """
    if ".py:" not in text and not text.endswith(".py"):
        return {"policy": text}
    file, _, class_name = text.rpartition(":")
    if not class_name.isidentifier() or not file.endswith(".py"):
        raise ValueError("expected FILE.py:CLASS")
    return {"file": file, "class": class_name}

"""The schema of scenario files: for each kind of system, with the policies of its families.

The statistics settings of a scenario: replications, confidence, warm-up.
"""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, create_model

from ...inputs import DescriptionError, Document, Quantity, Strict, format_quantity
from ...inputs.names import Name
from ...inputs.quantities import Duration, DurationOrZero, read_quantity
from ..systems.descriptor import System, SystemSpec
from ..systems.registry import SYSTEMS, default_kind, system_named
from .hypotheses import Unknowns

AUTO = "auto"
REPLICATIONS_LIMIT = 100_000


def _warm_up(raw: Any) -> Any:
    if raw == AUTO or isinstance(raw, Quantity):
        return raw
    try:
        return read_quantity(raw, "time", zero_allowed=True)
    except ValueError as failure:
        raise ValueError(f"{failure}, or auto") from None


def _written(warm_up: str | Quantity) -> str:
    return format_quantity(warm_up.value, "time") if isinstance(warm_up, Quantity) else warm_up


Replications = Annotated[int, Field(strict=True, ge=1, le=REPLICATIONS_LIMIT)]
Part = Annotated[float, Field(strict=True, gt=0, lt=1)]
WarmUp = Annotated[
    Literal["auto"] | Quantity,
    BeforeValidator(_warm_up, json_schema_input_type=Literal["auto"] | DurationOrZero),
    PlainSerializer(_written),
]


class Statistics(Strict):
    """How planes that draw at random are run; a plane that draws nothing runs once, from time 0.

    ``replications``: runs with independent draws, at least. ``confidence``: of each interval.
    ``half_width``: where given, replications are added until the intervals of all throughputs reach
    no farther than this part of their mean to either side, or until there are
    ``replications_max``. ``warm_up``: what is left out at the beginning of each run; ``auto``:
    until MSER-5 sees a pilot run settled.
    """

    replications: Replications = 5
    confidence: Part = 0.95
    half_width: Part | None = None
    replications_max: Replications = 100
    warm_up: WarmUp = "auto"

    @property
    def warm_up_s(self) -> float | None:
        """The warm-up in seconds; None where a pilot run shall tell it."""
        return self.warm_up.value if isinstance(self.warm_up, Quantity) else None

    def _fits(self) -> None:
        if self.half_width is None:
            return
        if self.replications < 2:
            raise DescriptionError(
                ("replications",), "one replication has no half_width: expected at least 2"
            )
        if self.replications_max < self.replications:
            raise DescriptionError(
                ("replications_max",), f"expected at least {self.replications}, as replications"
            )


SEED_MAX = 2**64 - 1


class Policies(Strict):
    """The policy of each family that the system has; ``none`` by default."""


class ScenarioDescription(Strict):
    """A scenario file, with what it extends.

    ``machine`` and ``workload``: a bundled name, the path of a file (relative to this one), or a
    description in full. ``engine``: the path of an engine's profile, as ``numatwin calibrate``
    writes it; what it costs on the machine stands in for what the machine's file says of such an
    engine. ``system``, ``policies``: see ``description_of``. ``statistics``: of
    planes that draw at random; these run for ``event_horizon`` if that is shorter than ``horizon``,
    as a steady state needs no more. The native plane runs ``native_horizon`` where there is one,
    as real clocks and threads need longer. A ``horizon`` that is set from outside counts for each
    plane whose own is not. ``scale``: so much of the workload's objects is there.
    ``unknown``: fields that nobody told, and what they may be (see ``hypotheses``).
    """

    name: Name
    title: str = ""
    source: str | None = None
    notes: tuple[str, ...] = ()
    machine: str | dict[str, Any]
    engine: str | None = None
    workload: str | dict[str, Any]
    system: SystemSpec
    policies: Policies
    horizon: Duration
    event_horizon: Duration | None = None
    native_horizon: Duration | None = None
    scale: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    seed: Annotated[int, Field(strict=True, ge=0, le=SEED_MAX)] = 0
    plane: str = "flow"
    unknown: Unknowns | None = None
    statistics: Statistics = Statistics()


def described_system(document: Document) -> System:
    """The system that a scenario is of. Raises InputError for an unknown one."""
    system = document.part(("system",))
    kind = system.get("kind", default_kind()) if isinstance(system, dict) else default_kind()
    if not isinstance(kind, str) or kind not in SYSTEMS:
        known = ", ".join(f"'{name}'" for name in SYSTEMS)
        raise document.error(
            ("system", "kind"), "system: unknown kind", token=str(kind), expected=f"one of {known}"
        )
    return system_named(kind)


@cache
def description_of(system: System) -> type[ScenarioDescription]:
    """The schema of scenarios of that system."""
    families: dict[str, Any] = {
        family.name: (
            Annotated[
                family.spec,
                BeforeValidator(_nothing_is_empty, json_schema_input_type=family.spec | None),
            ],
            Field(default_factory=family.spec),
        )
        for family in system.families
    }
    policies = create_model("Policies", __base__=Policies, **families)
    fields: dict[str, Any] = {
        "system": (
            Annotated[system.spec, BeforeValidator(_default_kind)],
            Field(default_factory=system.spec),
        ),
        "policies": (
            Annotated[
                policies, BeforeValidator(_nothing_is_empty, json_schema_input_type=policies | None)
            ],
            Field(default_factory=policies),
        ),
    }
    return create_model("ScenarioDescription", __base__=ScenarioDescription, **fields)


def _nothing_is_empty(raw: Any) -> Any:
    return {} if raw is None else raw


def _default_kind(raw: Any) -> Any:
    return {"kind": default_kind(), **raw} if isinstance(raw, dict) and "kind" not in raw else raw

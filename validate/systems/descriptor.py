"""What validation has of a system: published results, what is measured of its engine, and fitted.

All of it is in the system's folder or file here. What is needed late is imported late.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ...sim.systems.descriptor import LazyImport
from ..results import Condition, Prediction, Published, Runs, Source


@dataclass(frozen=True)
class Microbenchmark:
    """A part of ``numatwin machine measure``.

    ``measure``: adds figures to a ``Bench`` and yields the share done. ``weight``: its share of the
    time. ``once``: figures for people only, of which one pass is enough.
    """

    measure: Callable[..., Any]
    weight: float
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What validation has of one system, or of a study that no system runs.

    ``published``: its published results, by id; ``blindness``: how blind the predictions are, a
    paragraph of the page; ``conditions``: what their sources leave open.
    ``measured``: by name, its parts of ``machine measure``. ``described``: a machine's description
    with what these measurements tell of the engine, of the description, the measurements and the
    day. ``calibration``: what can be fitted, an ``EngineCalibration``. ``predicted``: by name of a
    measurement what the system's cost model makes of it, in SI units, of a machine and the
    measurement's parameters; None where it tells nothing. ``entry_bytes``: by kind of its data
    objects, what one entry takes. ``traffic_cases``: iterates over the ``TrafficCase`` of
    ``crossvalidate --traffic``; ``quick=True``: over one that is typical.
    """

    published: Mapping[str, Published] = field(default_factory=dict)
    blindness: str = ""
    conditions: Sequence[Condition] = ()
    measured: Mapping[str, Microbenchmark] = field(default_factory=dict)
    described: LazyImport | None = None
    calibration: LazyImport | None = None
    predicted: Mapping[str, LazyImport] = field(default_factory=dict)
    entry_bytes: Mapping[str, LazyImport] = field(default_factory=dict)
    traffic_cases: LazyImport | None = None

    @classmethod
    def of(
        cls,
        source: Source,
        predictions: Mapping[str, Callable[[Runs], Prediction]],
        advance: Mapping[str, Published] | None = None,
        **parts: Any,
    ) -> Self:
        """With a publication's results by what predicts them, after them those ``advance``."""
        return cls(
            published={**source.predicted_by(predictions), **(advance or {})},
            blindness=source.blindness,
            conditions=source.conditions,
            **parts,
        )

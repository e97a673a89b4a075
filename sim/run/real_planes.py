"""Planes that run an engine for real: who has them registers them here, and runs find them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..systems.descriptor import LazyImport, System


@dataclass(frozen=True)
class RealPlane:
    """``engines``: by system, what its engine is run with. ``run``: of a Scenario, its machine's
    scale (or None), and what is told how far the run and the loading of data are (or None), the
    Record.
    """

    engines: "Mapping[str, LazyImport]"
    run: "LazyImport"


_known: Callable[[], Mapping[str, RealPlane]] = dict


def register(planes: Callable[[], Mapping[str, RealPlane]]) -> None:
    """From now on these are the planes that run for real; asked for when a scenario wants one."""
    global _known
    _known = planes


def real_planes() -> Mapping[str, RealPlane]:
    """Those that are registered, by name."""
    return _known()


def planes_of(system: "System") -> tuple[str, ...]:
    """All planes that run systems of this kind, real ones last."""
    real = (name for name, plane in real_planes().items() if system.name in plane.engines)
    return (*system.planes, *real)


PLANES = ("flow", "event", "reference", "native", "emulator")
DRAWING_PLANES = ("event", "reference")
OWN_HORIZONS = ("event_horizon", "native_horizon")
NATIVE, EMULATOR = "native", "emulator"
REAL = (NATIVE, EMULATOR)  # planes that run the engine
SIMULATED = ("flow", "event", "reference")

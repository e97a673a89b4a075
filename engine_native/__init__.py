"""The native engine: runs a scenario for real, on this host, under the simulator's policies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..inputs import InputError

if TYPE_CHECKING:
    from ..inputs.progress import Progress
    from ..sim.planes.plane import Experiment, Maker
    from ..sim.run.record import Record
    from ..sim.run.scenario import Scenario

# Where a scenario states no warm-up: of the time before the workload changes; more helps no engine.
WARM_UP_SHARE, WARM_UP_MAX_S = 0.2, 1.0


def warm_up_s(scenario: Experiment) -> float:
    """The warm-up of a real run whose scenario states none."""
    changes = scenario.workload.change_times(scenario.horizon_s)
    steady_s = min(changes, default=scenario.horizon_s)
    return min(WARM_UP_SHARE * steady_s, WARM_UP_MAX_S)


@contextmanager
def planes(scenario: Experiment, loading: Progress | None = None) -> Iterator[Maker]:
    """Makes the native planes of ``scenario``; at the end nothing of them is left running.

    ``loading`` is called with the part of the data that is loaded, if there are any.

    Raises InputError where this host, or this build, cannot run it.
    """
    require_engine()
    from .systems.registry import REAL_PLANES

    with REAL_PLANES["native"].engines[scenario.system.kind].load()(loading) as make:
        yield make


def run_native(
    scenario: Scenario,
    machine_scale: float | None = None,
    *,
    progress: Progress | None = None,
    loading: Progress | None = None,
) -> Record:
    """The Record of ``scenario`` on this host, which has no scale. Raises InputError as above."""
    from ..sim.run.runner import run_random

    with planes(scenario, loading) as make:
        return run_random(make, scenario, 1, progress, warm_up_s(scenario))


def require_engine() -> None:
    """Raises InputError where this build, or this host, has no native engine."""
    try:
        from . import _engine  # noqa: F401 (whether it is there)
    except ModuleNotFoundError:
        raise InputError(
            "the native engine is not in this build",
            expected="libnuma-dev (tools/system-packages numa ucx), then 'make setup' or pip again",
        ) from None
    except ImportError as failure:  # it is there, and a library that it was linked with is not
        raise InputError(
            f"the native engine cannot be loaded: {failure}",
            expected="the libraries that it was built with (tools/system-packages numa ucx)",
        ) from None

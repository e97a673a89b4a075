"""The native engine: runs a scenario for real, on this host, under the simulator's policies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..inputs import InputError

if TYPE_CHECKING:
    from ..sim.planes.plane import Maker
    from ..sim.scenario import Scenario

WARM_UP_SHARE = 0.2  # of the horizon, where a scenario states no warm-up


def warm_up_s(scenario: Scenario) -> float:
    """The warm-up of a real run whose scenario states none."""
    return WARM_UP_SHARE * scenario.horizon_s


@contextmanager
def planes(scenario: Scenario) -> Iterator[Maker]:
    """Makes the native planes of ``scenario``; at the end nothing of them is left running.

    Raises InputError where this host, or this build, cannot run it.
    """
    try:
        from . import _engine  # noqa: F401 (whether it is there)
    except ImportError:
        raise InputError(
            "the native engine is not in this build",
            expected="libnuma-dev (tools/system-packages numa ucx) and 'make setup' again",
        ) from None
    if scenario.system.kind != "commits":
        raise InputError(f"the native plane does not play systems of kind {scenario.system.kind}")
    from .commits_plane import native_commits

    with native_commits() as make:
        yield make

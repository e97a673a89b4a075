"""What a system offers to run in a guest: a maker of its plane."""

from __future__ import annotations

from collections.abc import Callable

from ...sim.planes.experiment import Experiment
from ...sim.planes.plane import Plane

EmulatedPlane = Callable[[Experiment], Plane]
"""Makes the plane of the one replication that is played."""

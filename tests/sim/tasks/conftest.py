"""Scans that the tests of choosing an access path learn from: observed once."""

import pytest

from numatwin.sim.systems.tasks.access_training import Observations, observe
from numatwin.topologies import load_machine


@pytest.fixture(scope="session")
def observed() -> Observations:
    return observe(load_machine("sgi-uv300h-8s"), 4_000, 1)

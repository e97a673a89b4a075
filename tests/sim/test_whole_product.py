"""Every bundled scenario runs under every policy of its families, or says why it does not."""

import pytest

from numatwin.inputs import InputError
from numatwin.sim.run.runner import bare_record
from numatwin.sim.run.scenario import load_scenario, scenario_names
from numatwin.sim.systems.registry import system_of

CASES = [
    (name, f"{family.name}={policy}")
    for name in scenario_names()
    for family in system_of(load_scenario(name).system).families
    for policy in family.titles
]


def check(name: str, policy: str, plane: str, horizon: str) -> None:
    settings = [f"horizon={horizon}", f"event_horizon={horizon}"]
    settings += [] if plane == "flow" else ["statistics.warm_up=0 s", "statistics.replications=2"]
    try:
        record = bare_record(load_scenario(name, policy=[policy], plane=plane, settings=settings))
    except InputError as failure:
        refused = str(failure)
    else:
        refused = ""
        assert record.throughput
    assert not refused or "expected" in refused or "needs" in refused


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_flow(name: str, policy: str) -> None:
    """For long enough that policies decide."""
    check(name, policy, "flow", "1.1 s")


@pytest.mark.sweep
@pytest.mark.parametrize("plane", ["event", "reference"])
@pytest.mark.parametrize(("name", "policy"), CASES)
def test_event(name: str, policy: str, plane: str) -> None:
    check(name, policy, plane, "100 us")

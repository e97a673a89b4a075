"""What limits an operation, in words."""

import pytest

from numatwin import load_scenario, run_scenario
from numatwin.sim.planes.outcome import Gain, ResourceUse, Why
from numatwin.sim.run.limit import limit_in_words, together

WORKERS = Why("time of the workers of all nodes", ())


def use(name: str, kind: str, utilisation: float) -> ResourceUse:
    return ResourceUse(name, kind, utilisation)


def test_workers_are_told_with_what_they_wait_for() -> None:
    uses = [
        use("cores of node 0", "cores", 1.0),
        use("misses of node 0", "misses", 0.6),
        use("misses of node 1", "misses", 0.8),
        use("memory of node 0", "memory", 0.7),
        use("memory of node 1", "memory", 0.98),
        use("0→1 (wire)", "link", 0.9),
    ]
    assert limit_in_words(WORKERS, uses) == (
        "time of the workers of all nodes (for 70% of it they have reads under way; "
        "next: memory of node 1, 98% in use)"
    )


def test_what_is_far_from_its_limit_is_not_told() -> None:
    uses = [use("memory of node 0", "memory", 0.4), use("misses of node 0", "misses", 0.1)]
    assert limit_in_words(WORKERS, uses) == (
        "time of the workers of all nodes (for 10% of it they have reads under way)"
    )
    assert limit_in_words(WORKERS, uses[:1]) == WORKERS.resource


def test_other_limits_speak_for_themselves() -> None:
    why = Why("memory bandwidth of all nodes", ())
    assert limit_in_words(why, [use("memory of node 0", "memory", 1.0)]) == why.resource


def test_nodes_that_are_full_are_a_part_of_those_in_use() -> None:
    """Of 8 nodes, the memory of 5 has the keys of the hot range."""
    engine = "machine.engines.eris"
    overlap = (f"{engine}.implementation=published", f"{engine}.lines_in_flight=12")
    record = run_scenario(load_scenario("eris-fig13", policy="none", settings=overlap))
    resource = record.why["lookup"].resource
    assert resource == "memory bandwidth of 3 of the 5 nodes in use"


@pytest.mark.parametrize("plane", ["flow", "event"])
@pytest.mark.parametrize("scenario", ["eris-fig8-intel", "eris-fig8-intel-shared"])
def test_cores_that_are_the_limit_are_in_use(plane: str, scenario: str) -> None:
    """Two threads of a core may each have time left while their core has none."""
    settings = ["system.nodes=1", "workload.objects.index.keys=10_000", "event_horizon=10ms"]
    record = run_scenario(load_scenario(scenario, settings=settings, plane=plane, replications=1))
    (use,) = [use for use in record.resources if use.kind == "cores"]
    assert 0.97 < use.utilisation <= 1.0
    words = record.why["lookup"].resource
    assert plane == "event" or words == "instruction rate of the cores of node 0"


def test_one_hot_worker_of_a_node_that_is_mostly_free() -> None:
    uses = [use("cores of node 16", "cores", 0.9), use("cores of node 6", "cores", 0.261)]
    hot = "one of its workers, or few: all its cores together are 26% in use"
    for limit in ("instruction rate of the cores of node 6", "time of the workers of node 6"):
        assert limit_in_words(Why(limit, ()), uses) == f"{limit} ({hot})"
    for limit in ("instruction rate of the cores of node 16", "memory bandwidth of node 6"):
        assert limit_in_words(Why(limit, ()), uses) == limit


def test_operations_that_are_held_back_alike_are_named_once() -> None:
    """Whatever the parts of their own time are."""
    memory, link = (
        Why(name, (Gain(name, 0.1),), {"tree walk": ns})
        for name, ns in (("memory", 3.0), ("link", 4.0))
    )
    other = Why("memory", memory.gains, {"tree walk": 5.0})
    found = together({"get": memory, "scan": link, "put": other})
    assert [(names, why.resource) for names, why in found] == [
        (["get", "put"], "memory"),
        (["scan"], "link"),
    ]

"""Commits on one host: from measured steps to costs, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numatwin.inputs import InputError, Quantity
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.facts import BlockCost, EndCost, TransportCosts
from numatwin.sim.systems.commits.host_steps import BlockCosts, Ends, Region
from numatwin.sim.systems.commits.parameters import CommitParameters
from numatwin.sim.systems.commits.plane import event_plane, reference_plane
from numatwin.sim.systems.commits.sizes import Records

HOST = "host-commit"
US = 1e-6


def quantity(value: float) -> Quantity:
    return Quantity(value, value, value)


def seconds(value: float) -> Any:
    return quantity(value)


def block(size: float, region: float, get_ns: float) -> BlockCost:
    return BlockCost.model_construct(
        size=quantity(size),
        region=quantity(region),
        get=seconds(get_ns * 1e-9),
        update=seconds(2e-9 * get_ns),
        insert=seconds(1e-9),
    )


def test_blocks_cost_what_was_measured_and_lines_between() -> None:
    costs = BlockCosts(
        [block(s, r, ns) for s, r, ns in ((100, 1e6, 10), (1100, 1e6, 60), (100, 1e8, 50))]
        + [block(1100, 1e8, 150)]
    )
    assert costs.seconds("get", 100, 1e6) == pytest.approx(10e-9)
    assert costs.seconds("get", 600, 1e6) == pytest.approx(35e-9)
    assert costs.seconds("get", 2100, 1e6) == pytest.approx(110e-9)
    # Half-way by the logarithm of the region; beyond the measured ones as at the last.
    assert costs.seconds("get", 100, 1e7) == pytest.approx(30e-9)
    assert costs.seconds("get", 100, 1e12) == pytest.approx(50e-9)
    assert costs.seconds("update", 1100, 1e3) == pytest.approx(120e-9)


@pytest.mark.parametrize(
    ("records", "again", "created"), [(90, 210e3, 1_090e3), (9_000, 10e6, 1.75e6)]
)
def test_what_is_used_again_comes_after_all_that_passes_meanwhile(
    records: int, again: float, created: float
) -> None:
    """Three reads and four creations of 1,000 B each in turn, these through 1 MB of places.

    Of few records each is read again after all of them and 4/3 as much that was created, a place of
    created ones used again after all places and records. Of many, after all records and all places;
    and after all places and 3/4 as much that was read.
    """
    scenario = load_scenario(
        HOST, settings=("scale=1", f"workload.objects.product.records={records}")
    )
    costs = BlockCosts([block(1000, 1e6, 10)])
    moved = Records(1000.0, 1000.0, 1000.0, reads=3, writes=7, updates=3)
    region = Region(scenario.machine, scenario.workload, costs, moved, 1e6)
    ((often, reach, seconds),) = region.parts("get", 1000.0)
    assert (often, seconds) == pytest.approx((1.0, 10e-9))
    assert (reach, region.insert_reach(1000.0)) == pytest.approx((again, created))


def ends(connections_us: dict[int, float], each_us: float) -> Ends:
    """A transport whose end takes 1 µs for a look, so long as it finds so many requests, and so
    long for each of them."""
    found = []
    for count, connection_us in connections_us.items():
        took = seconds((1.0 + connection_us + count * each_us) / count * US)
        found.append(
            EndCost.model_construct(
                operation="get",
                size=quantity(8.0),
                count=count,
                post=took,
                serve=took,
                complete=took,
            )
        )
    time = seconds(US)
    return Ends(
        TransportCosts.model_construct(
            look=time, arm=time, sleeper_size=quantity(64.0), sleeper_same=time, ends=tuple(found)
        )
    )


def test_a_look_a_connection_and_each_request_are_told_apart() -> None:
    """Of several at once an end takes more for the connection than of one: it answers them."""
    found = ends({1: 1.5, 2: 4.0, 4: 4.0, 12: 4.0}, 2.0)
    assert found.each("get", "serve", 8.0) == pytest.approx(2.0 * US)
    whole = [us * US for us in (1.5, 4.0, 4.0, 4.0)]
    assert found.connection("get", "serve", 8.0) == pytest.approx(whole)
    assert found.total("get", "serve", 8.0, 7) == pytest.approx(19.0 * US)
    # What processors charge for a look and its connections, with each one's time, is the whole.
    for count in (1, 2, 4, 12):
        each_s = found.less_polling("get", "serve", 8.0, count)
        assert each_s == pytest.approx(2.0 * count * US)
    # Three of two messages each came over a connection: four or more cost the same.
    whole_s = found.total("get", "serve", 8.0, 3)
    assert found.less_polling("get", "serve", 8.0, 3, 2) == pytest.approx(whole_s - 5.0 * US)
    assert found.less_polling("get", "post", 8.0, 3) == found.total("get", "post", 8.0, 3)


def test_of_one_measured_count_nothing_is_told_apart() -> None:
    """But a look, which is known."""
    found = ends({1: 1.5}, 2.0)
    assert found.each("get", "serve", 8.0) == pytest.approx(3.5 * US)
    assert found.connection("get", "serve", 8.0) == [0.0]


def parameters(*settings: str) -> CommitParameters:
    return commit_parameters(load_scenario(HOST, settings=settings))[0]


def test_over_shared_memory_no_server_takes_part() -> None:
    found = parameters("system.clients=1")
    assert all(cost.receive_ps == 0 for of_type in found.costs.values() for cost in of_type)
    assert found.costs["record"][0].send_ps == 0
    assert found.costs["read"][0].send_ps > 0


def test_records_that_no_cache_holds_take_longer() -> None:
    small, large = (parameters(f"scale={scale}") for scale in (0.0005, 0.3))
    assert large.costs["read"][0].send_ps > 3.0 * small.costs["read"][0].send_ps
    # A block is written where it was read before, from a cache: that takes no longer.
    both = [sum(p.costs[name][0].send_ps for name in ("read", "write")) for p in (small, large)]
    assert both[1] > 1.5 * both[0]
    # Those that are asked for most are in a cache, however many others there are.
    zipf = parameters(
        "scale=0.3", "workload.operations.checkout.keys={distribution: zipf, exponent: 1.2}"
    )
    reads = [p.costs["read"][0].send_ps for p in (small, zipf, large)]
    assert reads == sorted(reads)


def test_over_tcp_both_ends_work_and_wake_each_other() -> None:
    found = parameters("system.host_transport=tcp", "system.clients=1")
    for name in ("snapshot-read", "read", "cas", "write", "bit"):
        (cost,) = found.costs[name]
        assert cost.send_ps > 1_000_000
        assert cost.receive_ps > 1_000_000
    assert found.processors is not None
    assert found.processors.sleep_ps > 0
    assert found.processors.spin_ps > 0


@pytest.mark.parametrize(
    ("clients", "transport", "gives_way"), [(2, "shm", False), (3, "shm", True), (3, "tcp", False)]
)
def test_who_has_no_processor_of_its_own_and_never_sleeps_gives_way(
    clients: int, transport: str, gives_way: bool
) -> None:
    found = parameters(f"system.clients={clients}", f"system.host_transport={transport}")
    assert found.processors is not None
    assert found.processors.gives_way == gives_way


@pytest.mark.parametrize("architecture", ["rsi", "two-sided"])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_event_and_reference_plane_agree(architecture: str, transport: str) -> None:
    scenario = load_scenario(
        HOST,
        settings=(
            f"system.architecture={architecture}",
            f"system.host_transport={transport}",
            "system.clients=3",
            "scale=0.001",
        ),
    )
    until_s = 0.2e-3 if architecture == "rsi" and transport == "shm" else 5e-3
    counts = []
    for make in (event_plane, reference_plane):
        plane = make(scenario, 2)
        plane.start_counting()
        plane.advance(until_s)
        counts.append(plane.outcome())
    event, reference = counts
    assert event.operations == reference.operations
    assert event.operations["checkout"] > 10
    assert event.model == reference.model
    assert [use.utilisation for use in event.resources] == [
        use.utilisation for use in reference.resources
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (("machine=ib-fdr-8n",), "machine measure"),
        (("system.client_nodes=1",), "client_nodes"),
        (("system.storage_nodes=[0]",), "storage_nodes"),
        (("system.layout=together", "system.host_transport=tcp"), "host_transport"),
        (("system.host_transport=smoke",), "host_transport"),
    ],
)
def test_what_does_not_fit_is_refused(settings: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_scenario(HOST, settings=settings)


def test_a_machine_file_keeps_what_was_measured_of_processes(tmp_path: Path) -> None:
    """Written and read again: the same costs."""
    from numatwin.topologies.export import machine_yaml
    from numatwin.topologies.schema import MachineDescription

    machine = load_scenario(HOST).machine
    description: MachineDescription = machine.description
    assert description.processes is not None
    path = tmp_path / "host.yaml"
    path.write_text(machine_yaml(description))
    again = commit_parameters(load_scenario(HOST, machine=str(path)))[0]
    assert replace(again) == commit_parameters(load_scenario(HOST))[0]


def test_doubtful_facts_are_told_of_who_uses_them() -> None:
    scenario = load_scenario(HOST, settings=["horizon=1 ms", "statistics.warm_up=0 s"])
    doubtful = ("node_types.node.clock", "processes.slice", "processes.turn", "nics.0.latency")
    machine = replace(scenario.machine, doubtful=doubtful)
    engine = [line for line in CostModel(machine).warnings if "uncertain" in line]
    assert engine == ["uncertain value used: node_types.node.clock"]
    plane = event_plane(replace(scenario, machine=machine), 1)
    plane.advance(1e-3)
    commits = [line for line in plane.outcome().warnings if "uncertain" in line]
    assert commits == [
        "machine 'zen5-2c': processes.slice and 1 more of what processes cost are uncertain"
    ]

"""Machines whose engine was measured: its times, its tree, how its misses overlap."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import yaml
from eris_pairs import US, Case, difference, players
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.costs import ErisCosts
from numatwin.sim.systems.eris.index import LINE_BYTES, ArrayTree
from numatwin.sim.systems.eris.parts import overlap_of
from numatwin.sim.systems.eris.routing import (
    batches_per_command,
    extra_groups,
    flushes_per_command,
    part_headers,
    routing_costs,
    scatter_steps,
    split_instructions,
)
from numatwin.sim.systems.eris.spec import ErisSystem
from numatwin.topologies import load_machine
from numatwin.workloads.zipf import scatter

WALK = [(256, 4, 6), (65_536, 6, 10), (1 << 20, 12, 18), (1 << 24, 20, 30), (1 << 26, 24, 36)]
ENGINE = {
    "tree_level": "1 ns",
    "tree_entry": "3 ns",
    "upsert_entry": "5 ns",
    "generate": "1 ns",
    "generate_ranked": "7 ns",
    "scatter": [{"steps": 1, "time": "6 ns"}, {"steps": 3, "time": "20 ns"}],
    "route": [{"targets": 1, "time": "1 ns"}, {"targets": 8, "time": "4 ns"}],
    "flush_fixed": "10 ns",
    "flush_line": "1 ns",
    "receive": "0.5 ns",
    "batch": "128 ns",
    "message": "50 ns",
    "handed_line": "8 ns",
    "walk": [
        {"keys": keys, "lookup": f"{lookup} ns", "upsert": f"{upsert} ns"}
        for keys, lookup, upsert in WALK
    ],
}


def machine_file(folder: Path, engine: Mapping[str, object] | None = None, cores: int = 2) -> str:
    caches = [
        {"level": 1, "size": "48 KiB", "latency": "1 ns"},
        {"level": 2, "size": "1 MiB", "latency": "4 ns"},
        {"level": 3, "size": "8 MiB", "latency": "13 ns", "shared_by_cores": cores},
    ]
    node = {
        "cores": cores,
        "clock": "3 GHz",
        "ipc": 2,
        "outstanding_misses": 20,
        "outstanding_misses_together": 10,
        "streaming_misses": 60,
        "caches": caches,
        "memory": {"size": "16 GiB", "bandwidth": "40 GB/s", "latency": "160 ns"},
    }
    described = {
        "name": "measured",
        "node_types": {"node": node},
        "nodes": [{"id": 0, "type": "node"}],
    }
    if engine is not None:
        described["engines"] = {"eris": engine}
    path = folder / "measured.yaml"
    path.write_text(yaml.safe_dump(described))
    return str(path)


def lookups(machine: str, keys: int, *settings: str, plane: str = "flow") -> Scenario:
    return load_scenario(
        "host-lookup",
        machine=machine,
        plane=plane,
        replications=1,
        scale=1.0,
        settings=[
            f"workload.objects.index.keys={keys}",
            "event_horizon=2 ms",
            "statistics.warm_up=0.5 ms",
            *settings,
        ],
    )


def test_times_of_the_engine_stand_in_for_counts(tmp_path: Path) -> None:
    costs = ErisCosts(load_machine(machine_file(tmp_path, ENGINE)))
    rate = 3e9 * 2
    counts = costs.instructions
    assert counts.tree_level / rate == pytest.approx(1e-9)
    assert counts.batch / rate == pytest.approx(128e-9)
    # What was not measured is worked out from instructions as before.
    plain = ErisCosts(load_machine(machine_file(tmp_path))).instructions
    assert counts.scan_line_sum == plain.scan_line_sum
    assert plain.batch == 0


def test_what_a_command_costs_on_its_way_by_hand(tmp_path: Path) -> None:
    costs = ErisCosts(load_machine(machine_file(tmp_path, ENGINE)))
    rate = 3e9 * 2
    # Two of one and eight targets: a third of the way in logarithms.
    assert split_instructions(costs, 2) / rate == pytest.approx(2e-9)
    found = routing_costs(costs, ErisSystem(), 2)
    # A key, its part of a batch of 128 commands, its target.
    assert found.issue / rate == pytest.approx(1e-9 + 1e-9 + 2e-9)
    handed = costs.hand_overs
    assert np.diag(handed.line_s) == pytest.approx([50e-9])
    # 4 ns on each side for a line that takes 50 ns: 12.5 at a time.
    assert np.concatenate([handed.write_slots, handed.read_slots]) == pytest.approx([12.5, 12.5])
    assert costs.read_waits == 0.0


# The same engine: of a batch's costs and of what is handed over each side has its own.
SIDES = ENGINE | {
    "batch": "40 ns",
    "batch_executed": "56 ns",
    "round": "32 ns",
    "gather": "0.6 ns",
    "message": "40 ns",
    "message_read": "20 ns",
    "part": "12 ns",
    "part_read": "10 ns",
    "handed_line_read": "5 ns",
}


def test_each_side_has_its_own_part(tmp_path: Path) -> None:
    costs = ErisCosts(load_machine(machine_file(tmp_path, SIDES)))
    handed = costs.hand_overs
    rate = 3e9 * 2
    # 40 ns for a line that takes 3 ns to write and 5 ns to read; one wait of 20 ns is half of one.
    assert np.concatenate([handed.write_slots, handed.read_slots]) == pytest.approx(
        [40 / 3, 40 / 5]
    )
    assert [costs.read_waits, costs.part_waits] == pytest.approx([0.5, 0.25])
    found = routing_costs(costs, ErisSystem(), 1)
    assert found.issue / rate == pytest.approx(1e-9 + 40e-9 / 128 + 1e-9)
    # One worker makes 128 commands a round, and gets all of them.
    assert found.looped / rate == pytest.approx((56e-9 + 32e-9) / 128)


def test_batches_that_are_executed() -> None:
    # One worker gets what it made; of two, as often more than 128 as less: half of the time,
    # a batch more.
    one = np.ones(1)
    assert batches_per_command(128, 128, 1, one) == pytest.approx(1 / 128)
    assert batches_per_command(130, 128, 1, one) == pytest.approx(2 / 130)
    assert batches_per_command(128, 128, 2, one) == pytest.approx(1.5 / 128, rel=0.05)
    # Two operations have batches of their own.
    assert batches_per_command(256, 128, 2, np.ones(2)) == pytest.approx(3 / 256, rel=0.05)
    # Of four commands, each of which is as likely another's, none in a sixteenth of all rounds.
    assert batches_per_command(2, 128, 2, one) == pytest.approx(15 / 16 / 2)


def test_workers_alike_pay_the_same_on_either_side(tmp_path: Path) -> None:
    """Two workers of one node, each with half of 256 commands for the other. Commands that are only
    routed are gathered all the same.
    """
    flushes = flushes_per_command(256, 128, np.array([0.5, 0.5]))
    looped = 56 * batches_per_command(256, 128, 2, np.ones(1)) + 32 / 256
    # Of a batch each gets a part, hardly ever none or all.
    own_ns = 1 + 40 / 128 + 2 + flushes * 10 + 1 / 4 + looped + 0.5 + 0.6 + 2 * 12 / 128
    handed_ns = 0.5 * (flushes * 2 * 40 + 8 / 4) + 20 / 256 + 10 / 128
    route = "workload.operations.lookup.kind=route"
    found = run_scenario(lookups(machine_file(tmp_path, SIDES), 512, route)).throughput["lookup"]
    assert found == pytest.approx(2e9 / (own_ns + handed_ns), rel=1e-3)


@pytest.mark.parametrize("kind", ["lookup", "route"])
@pytest.mark.parametrize("buffer", [1, 16, 128, 1024])
def test_flow_and_event_planes_agree_where_each_side_has_its_part(
    tmp_path: Path, kind: str, buffer: int
) -> None:
    settings = (f"workload.operations.lookup.kind={kind}", f"system.buffer_commands={buffer}")
    machine = machine_file(tmp_path, SIDES)
    flow = run_scenario(lookups(machine, 512, *settings)).throughput["lookup"]
    event = run_scenario(lookups(machine, 512, *settings, plane="event")).throughput["lookup"]
    # Who finds a descriptor changed, or has nothing to do, loses some time.
    assert event == pytest.approx(flow, rel=0.06)


def test_what_makes_up_a_batch_does_not_matter_to_one_worker(tmp_path: Path) -> None:
    """Alone it makes, executes and receives all: only with several batches a round is it less."""
    settings = ("system.threads=1", "system.buffer_commands=128")
    for plane in ("flow", "event"):
        whole, parts = (
            1e9
            / run_scenario(
                lookups(machine_file(tmp_path, engine), 256, *settings, plane=plane)
            ).throughput["lookup"]
            for engine in (ENGINE, SIDES)
        )
        assert parts == pytest.approx(whole, rel=1e-3)
    more = "system.buffer_commands=512"
    several = (
        1e9
        / run_scenario(lookups(machine_file(tmp_path, SIDES), 256, *settings, more)).throughput[
            "lookup"
        ]
    )
    assert parts - several == pytest.approx((32 + 10) * (1 / 128 - 1 / 512), rel=0.05)


def test_one_worker_alone_takes_what_its_loops_were_seen_to_take(tmp_path: Path) -> None:
    machine = machine_file(tmp_path, ENGINE)
    scenario = lookups(machine, 256, "system.threads=1", "system.buffer_commands=128")
    found = run_scenario(scenario).throughput["lookup"]
    # Key, batch, target, its level and entry, receiving; a flush of 128 commands in 32 lines.
    each_ns = 1 + 1 + 1 + 1 + 3 + 0.5 + (10 + 32 * 1) / 128
    assert found == pytest.approx(1e9 / each_ns, rel=0.01)


@pytest.mark.parametrize(("keys", "lookup_ns", "upsert_ns"), WALK[1:])
def test_walks_take_what_was_measured_at_their_size(
    tmp_path: Path, keys: int, lookup_ns: float, upsert_ns: float
) -> None:
    machine = machine_file(tmp_path, ENGINE)
    way_ns = 1 + 1 + 1 + 0.5 + (10 + 32 * 1) / 128
    for kind, entry_ns, walk_ns, first_ns in (
        ("lookup", 3, lookup_ns, 4),
        ("upsert", 5, upsert_ns, 6),
    ):
        scenario = lookups(
            machine, keys, "system.threads=1", f"workload.operations.lookup.kind={kind}"
        )
        found = run_scenario(scenario).throughput["lookup"]
        # Beyond its instructions a key takes what the measured index took beyond its levels.
        levels = ArrayTree(keys).levels
        core_ns = entry_ns + levels
        beyond_ns = max(walk_ns - first_ns - (levels - 1), 0.0)
        # It loads the memory a little, and buffers take room in the caches.
        assert found == pytest.approx(1e9 / (way_ns + core_ns + beyond_ns), rel=0.04)


def test_flow_and_event_planes_agree_on_a_measured_engine(tmp_path: Path) -> None:
    machine = machine_file(tmp_path, ENGINE)
    for keys in (4_096, 4_000_000):
        flow = run_scenario(lookups(machine, keys)).throughput["lookup"]
        event = run_scenario(lookups(machine, keys, plane="event")).throughput["lookup"]
        assert event == pytest.approx(flow, rel=0.06)


@pytest.mark.parametrize("sides", [False, True])
def test_event_and_reference_planes_agree_on_a_measured_engine(tmp_path: Path, sides: bool) -> None:
    machine = machine_file(tmp_path, SIDES if sides else ENGINE)
    found = [
        run_scenario(
            lookups(machine, 4_000_000, "event_horizon=0.2 ms", "statistics.warm_up=0.05 ms",
                    plane=plane)
        ).throughput["lookup"]
        for plane in ("event", "reference")
    ]  # fmt: skip
    assert found[0] == found[1]


def test_ranked_keys_cost_their_draw(tmp_path: Path) -> None:
    machine = machine_file(tmp_path, ENGINE)
    zipf = "workload.operations.lookup.keys={distribution: zipf, exponent: 0.99, order: scattered}"
    kind = "workload.operations.lookup.kind=route"
    even, ranked = (
        1e9
        / run_scenario(lookups(machine, 1 << 20, kind, "system.threads=1", *more)).throughput[
            "lookup"
        ]
        for more in ((), (zipf,))
    )
    assert ranked - even == pytest.approx(7 - 1 + 6, rel=0.01)  # 2^20 keys: one step each


def test_ranks_that_take_more_steps_cost_what_was_measured(tmp_path: Path) -> None:
    machine = machine_file(tmp_path, ENGINE)
    zipf = "workload.operations.lookup.keys={distribution: zipf, exponent: 0.99, order: scattered}"
    settings = ("workload.operations.lookup.kind=route", "system.threads=1", zipf)
    once, twice, thrice = (
        1e9 / run_scenario(lookups(machine, keys, *settings)).throughput["lookup"]
        for keys in (1 << 20, 1 << 19, (1 << 20) // 3)
    )
    # 6 ns for one step, 20 for three: 13 for two.
    assert twice - once == pytest.approx(7, rel=0.01)
    assert thrice - once == pytest.approx(14, rel=0.01)


def test_upserts_have_a_level_and_a_value_of_their_own(tmp_path: Path) -> None:
    more = {"upsert_level": "3 ns", "generate_value": "0.5 ns"}
    plain, own = (
        1e9
        / run_scenario(
            lookups(
                machine_file(tmp_path, {**ENGINE, **extra}),
                256,
                "system.threads=1",
                "workload.operations.lookup.kind=upsert",
            )
        ).throughput["lookup"]
        for extra in ({}, more)
    )
    assert own - plain == pytest.approx(3 - 1 + 0.5, rel=0.02)


def test_headers_of_parts_of_batches() -> None:
    def headers(batch: int, buffer: int, *shares: float) -> float:
        return batch * float(part_headers(batch, buffer, np.array(shares)).sum())

    # One operation to one target: what comes is whole batches, whoever else might get some.
    assert headers(128, 128, 1.0) == headers(128, 128, 1.0, 0.0) == 0.0
    # To two targets: both have a part, all but surely. Of a rare operation not in all batches.
    assert headers(128, 128, 0.5, 0.5) == pytest.approx(2.0)
    assert 0.1 < headers(128, 128, 0.999, 0.001) < 0.3
    # Of three commands, none or all in a quarter; one or two are parts.
    assert headers(3, 3, 0.5, 0.5) == pytest.approx(2 * 3 / 4)
    # Two fill a buffer: what is left is one.
    assert headers(3, 2, 0.5, 0.5) == pytest.approx(2 * 3 / 8)
    assert headers(128, 1, 0.5, 0.5) == pytest.approx(0.0, abs=1e-12)


# What a reader pays beside its loops, but for lines.
HANDED_TIMES = ("message_read", "part", "part_read")
ALL_TO_ONE = "workload.operations.lookup.keys={distribution: hot_range, from: 0, to: 256}"


@pytest.mark.parametrize("more", [(), (ALL_TO_ONE,)])
def test_the_reference_has_the_same_trace_where_each_side_has_its_part(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    sizes = ("system.buffer_commands=32", "system.round_commands=192")
    keys = "workload.objects.index.keys=512"
    case = Case("host-lookup", 300 * US, machine_file(tmp_path, SIDES), (keys, *sizes, *more))
    compiled, plain = players(case)
    compiled.model.run(case.until_ps)
    plain.model.run(case.until_ps)
    assert difference(compiled, plain) is None


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_who_gets_all_commands_pays_neither_for_headers_nor_for_looks(
    tmp_path: Path, plane: str
) -> None:
    """The first of two workers executes all, as fast as it can; the second makes whole batches for
    it. The first looks for them each time that its buffer is full, at 8,192 commands.
    """
    free = {name: cost for name, cost in SIDES.items() if name not in HANDED_TIMES}
    dear, cheap = (
        1e9
        / run_scenario(
            lookups(
                machine_file(tmp_path, engine), 512, ALL_TO_ONE, "system.round_commands=2048",
                plane=plane,
            )
        ).throughput["lookup"]
        for engine in (SIDES, free)
    )  # fmt: skip
    # In ns; a header of each batch would be 22 / 128, a look for each flush 20 / 128.
    assert dear - cheap == pytest.approx(20 / 8192, abs=0.02)


def test_groups_of_a_round() -> None:
    assert extra_groups(256, np.ones(1)) == 0.0
    assert extra_groups(256, np.array([95.0, 5.0])) == pytest.approx(1 / 256, rel=1e-3)


@given(st.integers(2, 5_000))
def test_steps_of_the_permutation(keys: int) -> None:
    # Of the next power of 4, the steps of all cycles: as many as it has places outside, and ranks.
    half = max(1, -(-(keys - 1).bit_length() // 2))
    assert scatter_steps(keys) == 4**half / keys
    assert len(set(scatter(np.arange(keys), keys).tolist())) == keys


def test_misses_of_cores_that_work_together(tmp_path: Path) -> None:
    costs = ErisCosts(load_machine(machine_file(tmp_path, ENGINE, cores=3)))
    for working, misses in ((1, 20.0), (2, 15.0), (3, 10.0)):
        found = costs.walk_misses_of(np.zeros(working, dtype=np.int64))
        assert found == pytest.approx([misses])


@given(st.floats(0, 1e-6), st.floats(1.0, 3.0), st.floats(0, 1))
def test_more_misses_never_take_less(held_s: float, more: float, upserts: float) -> None:
    overlap = overlap_of(_MEASURED, float(2**21))
    assert overlap is not None
    held = np.array([held_s, held_s * more])
    core, part = np.full(2, 5e-9), np.full(2, upserts)
    takes = np.maximum(core, held * overlap.slot_factor(held, core, part))
    assert takes[1] >= takes[0] * (1 - 1e-12)
    assert (takes >= core).all()


@given(st.integers(1, 10**9), st.integers(1, 16))
def test_lines_of_arrays_of_values(keys: int, bits: int) -> None:
    tree = ArrayTree(keys, bits)
    lines = tree.level_lines(np.array([float(keys)]))[:, 0]
    assert len(lines) == tree.levels + 1
    assert lines[-1] == max(keys * 8 / LINE_BYTES, 1.0)
    assert tree.bytes_per_key * keys == pytest.approx(lines.sum() * LINE_BYTES)
    # All keys of the domain are told apart.
    assert tree.leaf_bits + tree.prefix_bits * (tree.levels - 1) >= (keys - 1).bit_length()


def test_bytes_per_key_are_those_of_the_engine() -> None:
    assert ArrayTree(10**8).bytes_per_key == pytest.approx(8.3, abs=0.05)


def _measured() -> ErisCosts:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return ErisCosts(load_machine(machine_file(Path(folder), ENGINE)))


_MEASURED = _measured()


SCANS = ENGINE | {
    "scan": "300 ns",
    "scan_handed": "200 ns",
    "scan_line_sum": "0.4 ns",
    "scan_line_bitmap": "0.5 ns",
    "scan_line_positions": "0.9 ns",
    "scan_position": "0.1 ns",
    "scan_line_cached": "0.7 ns",
    "scan_line_cached_together": "0.8 ns",
}


@pytest.mark.parametrize(
    ("size_lines", "threads", "result", "expected_ns"),
    [
        # In the caches of a core; from the last one; both of two workers, half each.
        (2**12, 1, "sum", 300 + 2**12 * 0.4),
        (2**16, 1, "sum", 300 + 2**16 * 0.7),
        (2**12, 2, "sum", 300 + 200 + 2**11 * 0.4),
        (2**16, 2, "sum", 300 + 200 + 2**15 * 0.8),
        # Half of eight entries are found; results stay in the first caches.
        (2**12, 1, "bitmap", 300 + 2**12 * 0.5),
        (2**12, 1, "positions", 300 + 2**12 * (0.9 + 4 * 0.1)),
        (2**16, 2, "positions", 300 + 200 + 2**15 * (0.9 + 4 * 0.1 + 0.8 - 0.4)),
    ],
)
def test_a_scan_takes_what_its_lines_were_seen_to_take(
    tmp_path: Path, size_lines: int, threads: int, result: str, expected_ns: float
) -> None:
    settings = [
        f"workload.objects.column.entries={8 * size_lines}",
        "workload.operations.scan.selectivity=0.5",
        f"workload.operations.scan.result={result}",
        f"system.threads={threads}",
        "event_horizon=2 ms",
        "statistics.warm_up=0.5 ms",
    ]
    for plane in ("flow", "event"):
        machine = machine_file(tmp_path, SCANS)
        scenario = load_scenario(
            "eris-fig12-scan",
            machine=machine,
            plane=plane,
            replications=1,
            scale=1.0,
            settings=settings,
        )
        found = run_scenario(scenario).throughput["scan"]
        assert found == pytest.approx(1e9 / expected_ns, rel=0.02 if plane == "flow" else 0.05)

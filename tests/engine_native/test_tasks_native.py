"""The native plane of tasks: answers against NumPy's, scenarios run for real, what it refuses."""

import contextlib
import dataclasses
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_processes import numatwin
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin import InputError, load_record, load_scenario, run_scenario

_engine = pytest.importorskip("numatwin.engine_native._engine", reason="built without libnuma")
from numatwin.engine_native.systems.tasks.plane import (  # noqa: E402
    NativeTasks,
    TasksHost,
    native_tasks,
)
from numatwin.engine_native.systems.tasks.setup import TasksPlan, tasks_plan  # noqa: E402
from numatwin.sim.machine.assumptions import Variant  # noqa: E402
from numatwin.sim.run.assumptions import varied  # noqa: E402
from numatwin.sim.run.scenario import Scenario, scenario_from_settings  # noqa: E402
from numatwin.sim.systems.tasks.build import program_of  # noqa: E402
from numatwin.sim.systems.tasks.commands import (  # noqa: E402
    AllocateCore,
    CoresObservation,
    MergeTable,
    MovePart,
    PartitionTable,
    PlacerCommand,
    PlacerObservation,
    ReleaseCore,
    check_placement,
)
from numatwin.sim.systems.tasks.facts import (  # noqa: E402
    ENGINE,
    LoopTimes,
    OperatorInstructions,
    TasksFacts,
)
from numatwin.validate.measure.bench import QUICK, Bench  # noqa: E402
from numatwin.validate.measure.layout import host_layout  # noqa: E402
from numatwin.validate.systems import task_loops  # noqa: E402

CPUS = len(os.sched_getaffinity(0))
HOST_NODES = sum(node.may_allocate for node in _engine.host_facts().nodes)
TWO_NODES = (
    "machine=xeon-4s-ivb",
    "system.nodes=2",
    "system.threads=1",
    "policies.placer=adaptive",  # lets commands be given
)
SMALL = ("system.threads=1", "workload.objects.sales.rows=70_000", "native_horizon=60 ms")


def scenario(*more: str) -> Scenario:
    return load_scenario("host-queries", plane="native", settings=(*SMALL, *more))


@given(
    rows=st.integers(600, 20_000),
    distinct=st.tuples(*[st.integers(1, 600)] * 3),
    encoded_bytes=st.tuples(*[st.sampled_from(["4 B", "8 B"])] * 3),
    parts=st.integers(1, 5),
    hint=st.sampled_from([1, 2, 3, 7, 400]),
    selectivity=st.floats(0.0, 1.0),
    result=st.sampled_from(["smaller", "positions"]),
    filtered=st.sampled_from([["a"], ["a", "b"]]),
    grouped=st.sampled_from([[], ["b"], ["b", "c"]]),
    seed=st.integers(0, 1_000),
    orders=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), max_size=8
    ),
)
def test_answers_are_those_of_numpy(
    rows: int,
    distinct: tuple[int, int, int],
    encoded_bytes: tuple[str, str, str],
    parts: int,
    hint: int,
    selectivity: float,
    result: str,
    filtered: list[str],
    grouped: list[str],
    seed: int,
    orders: list[tuple[int, int, int]],
) -> None:
    """Also after parts were moved, partitioned and merged, a few ms apart, while clients ask."""
    columns = {
        name: {"distinct": count, "value_size": size}
        for name, count, size in zip("abc", distinct, encoded_bytes, strict=True)
    }
    every = {"kind": "scan", "table": "t"}
    scan = {**every, "columns": filtered, "selectivity": selectivity, "result": result}
    groups = {"kind": "aggregate", "input": "f", "group_by": grouped}
    operators = [
        {"f": scan},
        {"f": scan, "m": {"kind": "materialise", "input": "f", "columns": ["c", "a"]}},
        {"f": scan, "g": {**groups, "sums": ["a", "c"]}},
        {"f": every, "g": groups},
    ]
    objects = {"t": {"kind": "table", "rows": rows, "parts": parts, "columns": columns}}
    settings = (*TWO_NODES, f"system.concurrency={hint}", f"seed={seed}")
    wanted = drawn(objects, operators, *settings)
    host = TasksHost(wanted)
    engine = host.engine
    values = {name: engine.values(0, k).astype(np.int64) for k, name in enumerate("abc")}
    mask = np.ones(rows, dtype=bool)
    for name, count in zip("abc", distinct, strict=True):
        assert 1 <= values[name].min() <= values[name].max() <= count
        if name in filtered:
            mask &= values[name] <= round(selectivity ** (1 / len(filtered)) * count)

    def check() -> None:
        found, _ = engine.answer(0)
        assert found == mask.sum()
        found, made = engine.answer(1)
        assert found == mask.sum()
        assert [one.tolist() for one in made] == [values[name][mask].tolist() for name in "ca"]
        for query, chosen in (2, mask), (3, np.ones(rows, dtype=bool)):
            key = np.zeros(rows, dtype=np.int64)
            for name in grouped:
                # Ids: positions of values among all of the column's.
                key = key * distinct["abc".index(name)] + values[name] - 1
            sums_of = "ac" * (query == 2)
            expected = {
                each: [count]
                + [int(values[name][chosen & (key == each)].sum()) for name in sums_of]
                for each, count in Counter(key[chosen].tolist()).items()
            }
            found, (count, group, *sums) = engine.answer(query)
            assert found == len(expected)
            got = zip(group.tolist(), count.tolist(), *(one.tolist() for one in sums), strict=True)
            assert {each: list(rest) for each, *rest in got} == expected

    check()
    for part, of_table in enumerate(host.plan.spec.tables[0].parts):
        assert engine.rows_scanned(0, part) == 3 * of_table.rows
    place(host, wanted, orders)
    assert [engine.values(0, k).tolist() for k in range(3)] == [
        values[name].tolist() for name in "abc"
    ]
    check()


def place(host: TasksHost, wanted: Scenario, orders: list[tuple[int, int, int]]) -> None:
    """Those of the commands that a placer may give, and whose time comes before they are done."""
    plane, at_s = NativeTasks(host, wanted, 1), 0.0
    for kind, number, later_ms in orders:
        at_s += later_ms * 1e-3
        plane.advance(at_s)
        seen = plane.observe("placer")
        assert isinstance(seen, PlacerObservation)
        parts, node = len(seen.parts), number % 2
        command: PlacerCommand = MovePart("t", number % parts, node, number % 3 > 0)
        if kind == 2 and parts < 9:
            command = PartitionTable("t", tuple((number >> k) % 2 for k in range(2 * parts)))
        elif kind == 3 and parts > 1:
            command = MergeTable("t", node)
        with contextlib.suppress(InputError):  # of a part that is busy
            plane.apply(check_placement([command], seen, "drawn"))
    plane.advance(at_s + 0.005)
    host.stop()
    model = plane.outcome().model
    assert sum(rows for rows, _ in model["parts"]["t"]) == sum(
        part.rows for part in host.plan.spec.tables[0].parts
    )


def test_a_placer_moves_and_partitions_what_is_hot() -> None:
    placer = "policies.placer={policy: adaptive, eligibility: 1.0, period: 200 ms}"
    more = ("statistics.replications=2", "native_horizon=1 s", "system.placement=0", placer)
    wanted = {"move sales to node 1", "partition sales into 2 parts"}
    for _ in range(9):  # beside other programs it may not see a steady use
        record = run_scenario(scenario(*TWO_NODES[:-1], *more))
        done = {event.text for event in record.control_events if event.kind == "done"}
        if done & wanted:
            break
    assert done & wanted
    assert record.model["pages_moved"] > 0
    assert any("no bytes move" in warning for warning in record.warnings) == (HOST_NODES < 2)


def test_parts_that_cannot_move_end_the_run_in_one_line() -> None:
    def move() -> None:
        with native_tasks() as make:
            plane = make(scenario(*TWO_NODES), 1)
            assert isinstance(plane, NativeTasks)
            assert plane._placing is not None
            plane.advance(0.01)
            plane._placing.host_node = (0, 999)
            plane.apply([MovePart("sales", 0, 1)])
            plane.advance(5.0)

    assert told_by(move) == "the native engine refuses: no node 999 on this host"


def drawn(objects: object, operators: list[Any], *more: str) -> Scenario:
    """Queries q0, q1, ... of these operators."""
    operations = {f"q{k}": {"kind": "query", "operators": one} for k, one in enumerate(operators)}
    settings = (
        f"workload.objects={json.dumps(objects)}",
        f"workload.operations={json.dumps(operations)}",
        *more,
    )
    return load_scenario("host-queries", plane="native", settings=settings)


@given(
    rows=st.tuples(st.integers(200, 2_000), st.integers(600, 10_000)),
    parts=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    distinct=st.tuples(st.integers(50, 2_000), st.integers(1, 600)),
    encoded=st.tuples(st.booleans(), st.booleans()),
    key_once=st.booleans(),
    filtered=st.booleans(),
    hint=st.integers(1, 7),
    threads=st.integers(1, min(CPUS, 2)),
    seed=st.integers(0, 1_000),
)
def test_joins_are_those_of_numpy(
    rows: tuple[int, int],
    parts: tuple[int, int],
    distinct: tuple[int, int],
    encoded: tuple[bool, bool],
    key_once: bool,
    filtered: bool,
    hint: int,
    threads: int,
    seed: int,
) -> None:
    few, many = rows
    keys = few if key_once else min(distinct[0], few)
    key, foreign = (
        {"distinct": count, "value_size": "4 B", "encoded": coded}
        for count, coded in zip((keys, distinct[1]), encoded, strict=True)
    )
    of_items = {"k": key, "w": {"distinct": 9, "value_size": "8 B"}}
    of_sales = {"f": foreign, "v": {"distinct": 70, "value_size": "4 B"}}
    objects = {
        "items": {"kind": "table", "rows": few, "parts": parts[0], "columns": of_items},
        "sales": {"kind": "table", "rows": many, "parts": parts[1], "columns": of_sales},
    }
    chosen = {"columns": ["v"], "selectivity": 0.3} if filtered else {}
    join = {
        "b": {"kind": "scan", "table": "items"},
        "p": {"kind": "scan", "table": "sales", **chosen},
        "j": {"kind": "join", "build": "b", "probe": "p", "build_key": "k", "probe_key": "f"},
    }
    grouped = {"kind": "aggregate", "input": "j", "group_by": ["w"], "sums": ["v", "k"]}
    made = {"kind": "materialise", "input": "j", "columns": ["w", "v"]}
    settings = (f"system.concurrency={hint}", f"system.threads={threads}", f"seed={seed}")
    wanted = drawn(objects, [join, {**join, "g": grouped}, {**join, "m": made}], *settings)
    engine = TasksHost(wanted).engine
    k, w, f, v = (engine.values(t, c).astype(np.int64) for t in (0, 1) for c in (0, 1))
    if key_once and parts[0] == 1:
        assert len({*k.tolist()}) == few
    of_key: dict[int, list[int]] = {}
    for row, value in enumerate(k.tolist()):
        of_key.setdefault(value, []).append(row)
    passed = np.flatnonzero(v <= 21) if filtered else np.arange(many)
    pairs = [(row, other) for row in passed.tolist() for other in of_key.get(f[row], [])]
    found, (probed, built) = engine.answer(0)
    assert found == len(pairs)
    assert (np.diff(probed.astype(np.int64)) >= 0).all()
    assert sorted(zip(probed.tolist(), built.tolist(), strict=True)) == pairs
    _, (count, group, *sums) = engine.answer(1)
    expected = {
        int(each) - 1: [int(x.sum()) for x in (np.ones(len(at)), v[at[:, 0]], k[at[:, 1]])]
        for each in range(1, 10)
        if len(at := np.array([pair for pair in pairs if w[pair[1]] == each]))
    }
    got = zip(group.tolist(), count.tolist(), *(one.tolist() for one in sums), strict=True)
    assert {each: list(rest) for each, *rest in got} == expected
    found, columns = engine.answer(2)
    got_pairs = sorted(zip(*(one.tolist() for one in columns), strict=True))
    assert got_pairs == sorted((int(w[other]), int(v[row])) for row, other in pairs)


def test_a_join_says_what_it_finds_and_refuses_few_keys() -> None:
    def plan(keys: int, matches: float, spare_bytes: int = 1 << 30) -> TasksPlan:
        facts = _engine.host_facts()
        facts.available_bytes = spare_bytes
        column = {"distinct": keys, "value_size": "4 B"}
        objects = {
            name: {"kind": "table", "rows": 10_000, "columns": {name[0]: column}} for name in "ab"
        }
        operators = {
            "x": {"kind": "scan", "table": "a"},
            "y": {"kind": "scan", "table": "b"},
            "j": {
                "kind": "join", "build": "x", "probe": "y", "build_key": "a", "probe_key": "b",
                "matches": matches,
            },
        }  # fmt: skip
        wanted = drawn(objects, [operators], "system.threads=1", "workload.clients.count=3")
        return tasks_plan(wanted, facts)

    assert plan(10_000, 1.0).notes == ()
    (note,) = plan(1_000, 1.0).notes
    assert "finds about 10 rows for each, not 1" in note
    told = told_by(plan, 100, 100.0)
    assert "whose 'build' has 100 rows of each key: expected at most 64" in told
    # Keys of 14 bits, 35 kB; and hash tables of three clients, 960 kB.
    assert plan(10_000, 1.0, 1_500_000)
    assert "tables and joins need" in told_by(plan, 10_000, 1.0, 1_000_000)


@pytest.mark.skipif(CPUS < 2, reason="needs two processors")
def test_a_scenario_is_run_and_its_tasks_are_stolen(tmp_path: Path) -> None:
    words = "run host-queries --machine xeon-4s-ivb --on native --json --policy stealing=always"
    words += " --out kept"
    # Policies are first asked after 100 ms.
    more = ("native_horizon=400 ms", "system.nodes=2", "system.placement=0", "system.concurrency=8")
    settings = (*SMALL, *more)
    done = numatwin(*words.split(), *(f"--set={one}" for one in settings), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    for query in "select", "sums":
        assert record["throughput"][query] > 0
        assert record["latency_ns"][query]["mean"] > 0
    parts = {query: {*why["demands"]} for query, why in record["why"].items()}
    assert parts["select"] == {"scan", "materialise"}
    assert parts["sums"] == {"scan", "aggregate", "merge"}
    model = record["model"]
    steals = np.array(model["native"]["steals"])
    assert steals[1, 0] > 0
    assert set(model["tasks"]) == {"scan", "materialise", "aggregate", "merge"}
    assert steals.sum() == sum(model["stolen"].values())
    for name, column in load_record(tmp_path / "kept").series.items():
        if name.startswith("utilisation/"):
            assert (column >= 0).all()
            assert (column <= 1 + 1e-6).all()


def test_replications_are_runs_of_their_own() -> None:
    record = run_scenario(scenario("statistics.replications=3", "statistics.warm_up=5 ms"))
    assert record.replications == 3
    assert record.throughput["sums"] > 0


def test_threads_move_and_leave_cores() -> None:
    moved = ("system.affinity=none", "system.threads=3")
    with native_tasks() as make:
        plane = make(scenario(*moved), 1)
        assert isinstance(plane, NativeTasks)
        plane.advance(0.01)
        engine, cpus = plane._host.engine, plane._host.plan.cpus
        for command, left in ((ReleaseCore(0, 1), [0]), (AllocateCore(0, 1), [0, 1])):
            plane.apply([command])
            found = {cpu for core in left for cpu in cpus[0, core]}
            assert all(os.sched_getaffinity(engine.thread(k)) == found for k in range(3))
        seen = plane.observe("cores")
        assert isinstance(seen, CoresObservation)
        assert 0 < seen.cpu_load <= 1
        assert seen.allocated == ((0, 0), (0, 1))
        plane.outcome()
    elastic = ("policies.cores={policy: dense, period: 20 ms}", "native_horizon=300 ms")
    events = run_scenario(scenario(*moved, *elastic)).control_events
    assert {event.details["action"] for event in events} >= {"release", "allocate"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (("system.queue=worker",), "not on the native plane: system.queue worker"),
        (("system.intermediates=pipelined",), "the native plane: system.intermediates pipelined"),
        (("policies.cores=dense",), "cores policy 'dense' with system.affinity core"),
        (("workload.clients.think_time=1 ms",), "not on the native plane: clients that think"),
        (
            ("workload.objects.sales.columns.amount.encoded=false",),
            "not on the native plane: column 'sales.amount', not encoded, with values of 8 B",
        ),
        (
            ("workload.objects.sales.columns.day.value_size=12 B",),
            "not on the native plane: column 'sales.day' with values of 12 B",
        ),
        (
            ("workload.operations.sums.operators.sums.groups=7",),
            "not on the native plane: operator 'sums' of query 'sums' with 'groups'",
        ),
        (("machine=xeon-4s-ivb", "system.threads=cores"), "workers on 60 CPUs, and this host has"),
    ],
)
def test_what_the_engine_has_not_is_refused(settings: tuple[str, ...], expected: str) -> None:
    assert expected in told_by(run_scenario, scenario(*settings))


def test_tables_larger_than_memory_are_refused() -> None:
    facts = _engine.host_facts()
    facts.available_bytes = 100_000
    with pytest.raises(InputError, match=r"tables and joins need .* GB, .*expected --scale 0\.\d+"):
        tasks_plan(scenario(), facts)


def test_measured_loops_stand_in_for_instructions() -> None:
    bench = Bench(host_layout(), dataclasses.replace(QUICK, wanted=3, window_ns=20_000))
    for share in task_loops.measure(bench):
        assert 0 < share <= 1
    described = task_loops.described(host_layout().description, bench.measurements, "today")
    facts = described.facts_of(ENGINE, TasksFacts)
    assert facts is not None
    assert facts.loops is not None
    assert 0 < facts.loops.scan_row.value < facts.loops.group.value < 1e-6
    # Without one of them there are no facts.
    few = [one for one in bench.measurements if one.parameters.step != "merge"]
    described = task_loops.described(host_layout().description, few, "today")
    assert described.facts_of(ENGINE, TasksFacts) is None


def test_a_slower_loop_makes_its_stage_slower_and_stated_instructions_win() -> None:
    def scan_s(row: str, *settings: str) -> float:
        times = dict.fromkeys(
            ("scan_match", "value_id", "dictionary_value", "group", "sum", "merge_group"), "1 ns"
        ) | {"merge_dictionary": "1 ns", "scan_row": row, "scan_word": "64 ns"}
        made = scenario(f"machine.engines={json.dumps({'tasks': {'loops': times}})}", *settings)
        (stage, *_) = program_of(made).queries[0].stages
        return float(stage.cost.instructions_s[0])

    # A hundredth of the rows is found, at 1 ns each, in as many words as chance lets have one.
    words_ns = 1 - 0.99**64
    assert scan_s("3 ns") == pytest.approx((3.01 + words_ns) * 1e-9)
    assert scan_s("5 ns") == pytest.approx((5.01 + words_ns) * 1e-9)
    stated = "system.instructions.scan_row=7"
    assert scan_s("3 ns", stated) == scan_s("5 ns", stated)


def test_measured_loops_hold_in_what_is_made_of_a_scenario() -> None:
    """Its settings read again, as other processes do, and variants of it; nothing that was measured
    is assumed."""
    times = dict.fromkeys(LoopTimes.model_fields, "7 ns")
    made = scenario(f"machine.engines={json.dumps({'tasks': {'loops': times}})}")
    assumed = tuple(made.system.assumptions(made.machine))
    names = {one.name for one in assumed if one.name.startswith("instructions")}
    assert not names
    (switch,) = (one for one in assumed if one.name == "switch")
    assert isinstance(switch.low, Variant)
    for again in (scenario_from_settings(made.settings), varied(made, switch.low)):
        assert program_of(again).queries == program_of(made).queries
    fewer = scenario("system.instructions.scan_row=1")
    assert scenario_from_settings(fewer.settings).system == fewer.system


@given(match=st.floats(0.1, 10.0), word=st.floats(0.1, 100.0), row=st.floats(0.05, 5.0))
def test_positions_cost_what_they_were_measured_to(match: float, word: float, row: float) -> None:
    """Also where the scan that they were timed on waits for memory."""
    loops = OperatorInstructions(scan_match=match, scan_word=word)
    measured = dict.fromkeys(task_loops.METHODS, 1.0) | {"long-scan": row}
    for step, share in ("positions", task_loops.FOUND), ("few-positions", task_loops.FEW):
        measured[step] = row + loops.positions(share)
    times = LoopTimes.model_validate(task_loops._times(measured, "by hand"))
    assert times.scan_word is not None
    found = times.scan_match.value, times.scan_word.value
    assert found == pytest.approx((match, word), rel=1e-3)

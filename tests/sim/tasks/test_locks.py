"""Sections under a lock: known answers, on every plane.

Sections of threads that always ask come one after the other, and what they do besides fits in
between: N threads that need Z beside sections of S do min(N / (Z + S), 1 / S) of them (the machine
repairman with fixed times; Amdahl's bound 1 / S for many threads).
"""

from pathlib import Path

import numpy as np
import pytest
from task_programs import BOTH, MS, Maker, cost, machine, parameters, program, query, stage

from numatwin import load_scenario, run_scenario
from numatwin.inputs import InputError
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.systems.tasks.event_plane import EventModel, ReferenceModel
from numatwin.sim.systems.tasks.program import Entries, Held, Program, Stage
from numatwin.sim.systems.tasks.steady_rates import State
from numatwin.sim.systems.tasks.steady_state import SteadyState

pytestmark = pytest.mark.kernel

ENTRIES = 10
SECTION_S, OTHER_S = 1e-6, 3e-6
THREADS = [(1, 0), (2, 0), (2, 1), (4, 0), (4, 4)]  # of each node


def locked(lock: str = "l", name: str = "a") -> Stage:
    """10 entries a task, each 3 µs besides 1 µs under the lock."""
    held = cost(2, OTHER_S, separate_s=SECTION_S)
    entries = Entries(constant=ENTRIES)
    return stage(name, held, None, entries=entries, locks=(Held(lock, SECTION_S),))


def busy(workers: tuple[int, int], *locks: str) -> Program:
    """As many clients as threads, alike for each lock; a query is a task."""
    names = locks or ("l",)
    clients = sum(workers) // len(names)
    each = [query(locked(lock, f"a{k}"), clients=clients) for k, lock in enumerate(names)]
    return program(each, workers, concurrency=1)


def entries_per_s(threads: int) -> float:
    return min(threads / (OTHER_S + SECTION_S), 1.0 / SECTION_S)


@BOTH
@pytest.mark.parametrize("workers", THREADS)
def test_sections_bound_what_threads_do(make: Maker, workers: tuple[int, int]) -> None:
    model = make(parameters(busy(workers), cores=4), 1, 1, True)
    model.allow([True])
    model.run(10 * MS)
    done = model.counts()["answered"][0] * ENTRIES / 10e-3
    assert done == pytest.approx(entries_per_s(sum(workers)), rel=0.01)


@pytest.mark.parametrize("workers", THREADS)
def test_flows_have_the_same_bound(workers: tuple[int, int]) -> None:
    made = busy(workers)
    alone = (), (float(sum(workers)),), 0.0, (0.0,), frozenset({"a0"})
    state = State(*alone, tuple(map(float, workers)))
    rates = SteadyState(made, CostModel(machine(cores=4))).solve(state)
    assert rates.queries[0] * ENTRIES == pytest.approx(entries_per_s(sum(workers)), rel=1e-3)


@BOTH
@pytest.mark.parametrize(("names", "sections_per_s"), [("ll", 1e6), ("lm", 2e6)])
def test_operators_share_a_lock_by_its_name(make: Maker, names: str, sections_per_s: float) -> None:
    """Four threads for each of two queries: one lock of both, or one of each."""
    model = make(parameters(busy((4, 4), *names), cores=4), 1, 1, True)
    model.allow([True, True])
    model.run(10 * MS)
    done = model.counts()["answered"].sum() * ENTRIES / 10e-3
    assert done == pytest.approx(sections_per_s, rel=0.02)


def test_both_planes_have_one_trace() -> None:
    p = parameters(busy((3, 2), "l", "m"), cores=3)
    event, reference = EventModel(p, 1, 1, True), ReferenceModel(p, 1, 1, True)
    for model in (event, reference):
        model.run(MS)
    assert np.array_equal(event.trace(), reference.trace())
    assert len(event.trace()) > 100


WORKLOAD = """\
name: inserts
objects: {t: {kind: table, rows: 1_000_000, columns: {v: {distinct: 4096, value_size: 8 B}}}}
operations:
  insert:
    kind: query
    operators:
      insert:
        kind: custom
        table: t
        instructions: 100
        lock: {name: free-list, held: 2 us, times: 0.1}
clients: {kind: closed, count: 1}
"""
SCENARIO = """\
name: inserts
machine: xeon-4s-ivb
workload: inserts.yaml
system: {kind: tasks}
policies: {stealing: none}
horizon: 10 s
"""


def test_a_scenario_tells_which_lock_limits_it(tmp_path: Path) -> None:
    """A tenth of the rows holds the lock for 2 µs: 0.2 s a query, with any number of threads."""
    (tmp_path / "inserts.yaml").write_text(WORKLOAD)
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    for plane in ("flow", "event"):
        record = run_scenario(load_scenario(path, plane=plane, replications=1))
        # The event plane counts whole queries, of 50 in 10 s.
        assert record.throughput["insert"] == pytest.approx(5.0, abs=0.1), plane
    why = run_scenario(load_scenario(path, plane="flow")).why["insert"]
    assert why.resource == "lock free-list"
    assert why.gains[0].gain_per_10pct == pytest.approx(0.1, abs=0.002)


def test_a_lock_has_a_name_and_a_time(tmp_path: Path) -> None:
    (tmp_path / "inserts.yaml").write_text(WORKLOAD.replace("held: 2 us", "held: 2"))
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    with pytest.raises(InputError, match=r"inserts\.yaml:11.*held"):
        load_scenario(path)

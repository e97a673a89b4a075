"""Memory that operators map, touch first and unmap: known answers, on every plane.

By hand, on a machine whose kernel takes 1 µs for a fault, 0.2 µs for a page given back, 10 µs for a
mapping and 2 µs for each other processor: a task that writes 10 MiB in 4 KiB pages has 2,560 faults
and one mapping.
"""

from pathlib import Path

import numpy as np
import pytest
from task_programs import MS, cost, parameters, program, query, stage

from numatwin import load_scenario, run_scenario
from numatwin.inputs import InputError
from numatwin.sim.run.assumptions import assumptions_in
from numatwin.sim.run.what_if import costs_of
from numatwin.sim.systems.tasks.event_plane import EventModel, ReferenceModel
from numatwin.sim.systems.tasks.program import Entries, Held

pytestmark = pytest.mark.kernel

MACHINE = """\
name: by-hand
node_types:
  plain:
    cores: 4
    clock: 1 GHz
    ipc: 1
    outstanding_misses: 10
    streaming_misses: 1000
    stream_stall: 0
    kernel: {page_fault: 1 us, page_unmap: 0.2 us, mapping: 10 us, interrupt: 2 us,
             huge_page_fault: 100 us}
    memory: {size: 64 GiB, bandwidth: 64 TB/s, latency: 1 ns}
nodes: [{ids: 0-1, type: plain}]
"""
WORKLOAD = """\
name: steps
objects: {t: {kind: table, rows: 1_310_720, columns: {v: {distinct: 2, value_size: 8 B}}}}
operations:
  step:
    kind: query
    operators:
      step: {kind: custom, table: t, instructions: 10, written: 8 B, concurrency: 1}
clients: {kind: closed, count: COUNT}
"""
SCENARIO = """\
name: steps
machine: machine.yaml
workload: steps.yaml
system:
  {kind: tasks, task: 0 s, threads: THREADS, nodes: [0], intermediates: materialised}
policies: {stealing: none}
horizon: 4 s
statistics: {warm_up: 0.4 s, replications: 1}
"""
WORK_S = 1_310_720 * 10e-9  # and 2 ns a row and line at most for memory, besides
FAULTS_S, UNMAP_S, MAPPING_S, INTERRUPT_S = 2_560e-6, 2_560 * 0.2e-6, 10e-6, 2e-6


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "machine.yaml").write_text(MACHINE)
    return tmp_path / "scenario.yaml"


def rate(path: Path, plane: str, threads: int, *settings: str) -> float:
    """Queries per second of as many clients as threads."""
    path.with_name("steps.yaml").write_text(WORKLOAD.replace("COUNT", str(threads)))
    path.write_text(SCENARIO.replace("THREADS", str(threads)))
    record = run_scenario(load_scenario(path, plane=plane, settings=list(settings)))
    return record.throughput["step"]


@pytest.mark.parametrize("plane", ["flow", "event", "reference"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_step_takes_its_faults_mapping_and_interrupts(
    scenario: Path, plane: str, threads: int
) -> None:
    """What a thread's unmapping takes each other one, all take each other alike."""
    others_s = 2 * (threads - 1) * INTERRUPT_S
    each_s = WORK_S + FAULTS_S + UNMAP_S + MAPPING_S + others_s
    assert rate(scenario, plane, threads) == pytest.approx(threads / each_s, rel=0.02)


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_the_lock_of_the_address_space_bounds_all_threads(scenario: Path, plane: str) -> None:
    """Of 10 ms for each task: four threads, which have 16 ms to do besides, wait for each other."""
    slow = "machine.node_types.plain.kernel.page_unmap=4 us"
    held_s = 2_560 * 4e-6 + MAPPING_S + 3 * INTERRUPT_S
    assert rate(scenario, plane, 4, slow) == pytest.approx(1 / held_s, rel=0.02)
    record = run_scenario(load_scenario(scenario, plane="flow", settings=[slow]))
    assert record.why["step"].resource == "lock of the address space"


@pytest.mark.parametrize(
    ("settings", "mapped_s"),
    [
        (["system.intermediates=pooled"], 0.0),
        (["system.mapped_from=11 MiB"], 0.0),
        (["workload.operations.step.operators.step.intermediates=pooled"], 0.0),
        (["system.pages=huge"], 5 * 100e-6 + 5 * 0.2e-6 + MAPPING_S),
    ],
)
def test_what_is_not_mapped_and_huge_pages(
    scenario: Path, settings: list[str], mapped_s: float
) -> None:
    expected = 1 / (WORK_S + mapped_s)
    assert rate(scenario, "flow", 1, *settings) == pytest.approx(expected, rel=0.01)


def test_pages_of_memory_that_nothing_maps_are_told_of(scenario: Path) -> None:
    rate(scenario, "flow", 1)
    for results, expected in (("pooled", 1), ("materialised", 0)):
        settings = ["system.pages=huge", f"system.intermediates={results}"]
        loaded = load_scenario(scenario, settings=settings)
        notes = loaded.system.notes(loaded.machine, loaded.workload)
        assert sum(note.startswith("system.pages: ") for note in notes) == expected


@pytest.mark.parametrize("plane", ["flow", "event", "reference"])
def test_pages_that_a_loop_touches_first_fault(scenario: Path, plane: str) -> None:
    """One in a hundred rows, besides results that are kept; small ones whatever results lie in."""
    operator = "workload.operations.step.operators.step"
    settings = [f"{operator}.page_faults=0.01", f"{operator}.intermediates=pooled"]
    expected = 2 / (WORK_S + 1_310_720 * 0.01 * 1e-6)
    assert rate(scenario, plane, 2, *settings) == pytest.approx(expected, rel=0.01)
    assert rate(scenario, plane, 2, *settings, "system.pages=huge") == pytest.approx(
        expected, rel=0.01
    )
    loaded = load_scenario(scenario, settings=[*settings, "machine=xeon-4s-ivb"])
    assumed = {one.name for one in assumptions_in(loaded, costs_of(loaded))}
    assert "first touch of a page of 4 KiB" in assumed
    assert not assumed & {"giving a touched page back", "mapping and unmapping, besides pages"}


FILTERED = """\
name: steps
objects:
  t: {kind: table, rows: 1_310_720, columns: {v: {distinct: 2, value_size: 8 B, encoded: false}}}
operations:
  step:
    kind: query
    operators:
      half: {kind: scan, table: t, columns: v, selectivity: 0.5, result: positions}
      sum: {kind: aggregate, input: half, sums: v}
clients: {kind: closed, count: 1}
"""


def test_operands_are_results_too_and_pipelined_ones_stay_in_caches(scenario: Path) -> None:
    """Positions of half of the rows, and their values where each step has its own memory, are
    fetched, written and read.
    """
    row_bytes = []
    for how in ("pipelined", "pooled", "materialised"):
        rate(scenario, "flow", 1)
        scenario.with_name("steps.yaml").write_text(FILTERED)
        loaded = load_scenario(scenario, settings=[f"system.intermediates={how}"])
        record = run_scenario(loaded)
        read_Bps = sum(use.Bps or 0.0 for use in record.resources if use.kind == "memory")
        row_bytes.append(read_Bps / record.throughput["step"] / 1_310_720)
    positions, values = 0.5 * 3 * 4, 0.5 * 3 * 8
    assert np.diff(row_bytes) == pytest.approx([positions, values], rel=0.01)


def test_fewer_processors_are_interrupted_once_fewer_are_in_use() -> None:
    """Tasks that begin after the change; both planes have one trace."""
    held = stage("a", cost(2, 1e-6, separate_s=1e-6), None, entries=Entries(constant=10),
                 locks=(Held("l", 1e-6, 1e-6),))  # fmt: skip
    p = parameters(program([query(held, clients=4)], (2, 2), concurrency=1), cores=2)
    made = EventModel(p, 1, 1, True), ReferenceModel(p, 1, 1, True)
    for model in made:
        model.allow([True])
        model.run(MS)
        before = model.counts()["answered"][0]
        model.use([True, True, False, False])
        model.run(11 * MS)
        # Four hold the lock for 4 µs an entry, two for 2 µs: 250 and 500 entries a ms, ten a task.
        assert before == pytest.approx(25, abs=1)
        assert model.counts()["answered"][0] - before == pytest.approx(500, abs=6)
    assert np.array_equal(made[0].trace(), made[1].trace())


def test_words_that_are_none_of_these(scenario: Path) -> None:
    with pytest.raises(InputError, match=r"system\.intermediates: found 'lazy', expected 'pooled'"):
        rate(scenario, "flow", 1, "system.intermediates=lazy")

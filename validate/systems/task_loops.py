"""What the loops of a column store's operators take on this host, measured in a core's caches; and
as facts of a machine file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ...inputs import Quantity
from ...sim.systems.tasks.facts import ENGINE, WORD_ROWS, LoopTimes, TasksFacts
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..measure.bench import Bench, Samples, methods_of

METHODS = methods_of("queries")
ROWS, GROUPS = 1 << 20, 4_096
# Of fewer rows than these a branch predictor remembers what was found, as it never could in a table
# (of up to 262,144 all, on a Zen 3).
LONG_ROWS, FOUND, FEW = 1 << 23, 0.5, 0.05
ENTRIES = {
    "merge": GROUPS,
    "dictionaries": GROUPS,
    "build": GROUPS,
    "long-scan": LONG_ROWS,
    "positions": LONG_ROWS,
    "few-positions": LONG_ROWS,
}
WARM_UP = 3


def measure(bench: Bench) -> Iterator[float]:
    """Queries of one task, of the engine itself, one after the other on one core."""
    from ...engine_native import _engine as engine

    running = engine.TaskEngine(_engine_spec(engine, bench.layout.starts[0].cores[0]))
    for k, (step, method) in enumerate(METHODS.items()):
        taken_ns = []
        for _ in range(WARM_UP + bench.effort.wanted):
            before = running.tally(0)[2 * (len(METHODS) + 1) + k]
            running.answer(k)
            taken_ns.append(running.tally(0)[2 * (len(METHODS) + 1) + k] - before)
        taken = np.array(taken_ns[WARM_UP:], dtype=np.float64)
        samples = Samples(taken / ENTRIES.get(step, ROWS))
        bench.add("query-step", samples, "time", method, step=step)
        yield (k + 1) / len(METHODS)


def _engine_spec(engine: Any, cpu: int) -> Any:
    """A table of some MiB and a long one; a query for each step, whose tasks are of its class."""
    columns = [engine.TaskColumn(bits=b, distinct=1 << b, value_bytes=4) for b in (12, 8, 4)]
    kinds, other = engine.TaskKind, len(METHODS)

    def stage(kind: Any, task_class: int, *grouped: int, **more: Any) -> Any:
        radix = [columns[column].distinct for column in grouped]
        return engine.TaskStage(
            kind=kind, task_class=task_class, columns=list(grouped), radix=radix, **more
        )

    def grouping(k: int, merge: int, *grouped: int, sums: tuple[int, ...] = ()) -> list[Any]:
        groups, summed = int(columns[grouped[0]].distinct), list(sums)
        own = stage(kinds.AGGREGATE, k, *grouped, table=0, sums=summed, groups=groups)
        return [own, stage(kinds.MERGE, merge, *grouped, inputs=[0], sums=summed, groups=groups)]

    def joining(k: int, built: int) -> list[Any]:
        """With so many rows, each of which has a key of its own."""
        chosen = stage(kinds.SCAN, other, 0, table=2, smallest=[built])
        build = stage(kinds.BUILD, other, 0, table=2, inputs=[0], selection=0)
        return [chosen, build, stage(kinds.PROBE, k, 0, table=0, inputs=[1], built=1)]

    half, few = [round(FOUND * GROUPS)], [round(FEW * GROUPS)]
    queries = [
        [stage(kinds.SCAN, 0, 0, table=0, smallest=half)],
        [stage(kinds.SCAN, 1, 0, table=1, smallest=half)],
        [stage(kinds.SCAN, 2, 0, table=1, smallest=half, positions=True)],
        [stage(kinds.SCAN, 3, 0, table=1, smallest=few, positions=True)],
        [stage(kinds.MATERIALISE, 4, 1, table=0)],
        grouping(5, other, 2),
        grouping(6, other, 2, 2),
        grouping(7, other, 2, sums=(1,)),
        grouping(other, 8, 0),
        [stage(kinds.DICTIONARIES, 9, 0, table=0)],
        [stage(kinds.BUILD, 10, 0, table=2)],
        joining(11, 0),
        joining(12, GROUPS),
    ]
    return engine.TaskEngineSpec(
        tables=[
            engine.TaskTable(columns=columns, parts=[engine.TaskPart(rows=ROWS)]),
            engine.TaskTable(columns=columns[:1], parts=[engine.TaskPart(rows=LONG_ROWS)]),
            engine.TaskTable(columns=columns[:1], parts=[engine.TaskPart(rows=GROUPS)]),
        ],
        queries=[engine.TaskQuery(stages=stages) for stages in queries],
        worker_node=[0],
        cpu=[cpu],
        worker_host_node=[-1],
        queue_of=[0],
        distance=[[0]],
        classes=other + 1,
    )


def described(
    description: MachineDescription, measurements: Iterable[Measurement], day: str
) -> MachineDescription:
    """``description`` with the times of these loops; as it is where some lack."""
    found = {
        str(one.parameters.step): one.value.value
        for one in measurements
        if one.name == "query-step"
    }
    if set(found) != set(METHODS):
        return description
    facts = description.facts_of(ENGINE, TasksFacts) or TasksFacts()
    times = LoopTimes.model_validate(_times(found, f"measured {day}: loops over ids in caches"))
    return description.with_facts(ENGINE, facts.model_copy(update={"loops": times}))


def _times(measured: Mapping[str, float], source: str) -> dict[str, Any]:
    """Steps of the loops, as differences between what was measured; none is below 0."""
    scan, group, value = measured["scan"], measured["group"], measured["materialise"]
    ids = min(max(measured["group-two"] - group, 0.0), value, group)
    # By OperatorInstructions.positions: matches and words with any, of a row.
    shares = [(x, (1.0 - (1.0 - x) ** WORD_ROWS) / WORD_ROWS) for x in (FOUND, FEW)]
    more = [measured[step] - measured["long-scan"] for step in ("positions", "few-positions")]
    match, word = np.linalg.solve(shares, more).tolist()
    found = {
        "scan_row": scan,
        "scan_match": match,
        "scan_word": word,
        "value_id": ids,
        "dictionary_value": value - ids,
        "group": group - ids,
        "sum": measured["group-sum"] - group - value,
        "merge_group": measured["merge"],
        "merge_dictionary": measured["dictionaries"],
        "build": measured["build"] - value,
        "probe": measured["probe"] - value,
        "match": measured["probe-all"] - measured["probe"],
    }
    rounded = {name: float(f"{max(time, 0.0):.4g}") for name, time in found.items()}
    return {name: Quantity(time, time, time, source) for name, time in rounded.items()}

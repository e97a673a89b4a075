"""The tasks that one query of each kind puts at each node, stage by stage, as parts lie now."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .layout import PartState
from .program import Program, Stage


@dataclass(frozen=True)
class Batch:
    """The tasks of a stage of query ``query`` that wait at ``node`` and work on one part.

    ``home``: where the memory of the part lies; None: on all nodes with memory in turn. ``part``: a
    table's, None without one. Batches of a query with the same ``step`` go on at the same time.
    ``tasks(hint)``: how many; ``entries``: of all of them.
    """

    query: int
    stage: Stage
    step: int
    node: int
    home: int | None
    part: tuple[str, int] | None
    entries: float
    share: float
    least: float
    hint: float | None
    spread: int = 0

    def tasks(self, free: float) -> float:
        """How many, where ``free`` workers are free as the stage starts."""
        wanted = (free if self.hint is None else self.hint) * self.share
        return min(max(wanted, self.least), max(self.entries, self.least))


def batches_of(
    program: Program,
    parts: Mapping[str, tuple[PartState, ...]],
    able: Sequence[int],
    queue_of: Callable[[int], int],
    free: float,
) -> tuple[tuple[Batch, ...], frozenset[int]]:
    """All batches, and the queries that wait for parts that are being moved.

    ``able``: nodes with workers; ``queue_of``: where tasks of a node are queued. Entries by tasks
    of earlier stages are counted as with ``free`` workers free.
    """
    found: list[Batch] = []
    blocked: set[int] = set()
    for k, query in enumerate(program.queries):
        made: list[list[Batch]] = []
        steps: list[int] = []
        for stage in query.stages:
            before = [made[i] for i in stage.inputs]
            step = max((steps[i] + 1 for i in stage.inputs), default=0)
            steps.append(step)
            input_tasks = sum(b.tasks(free) for batches in before for b in batches)
            most = stage.concurrency or program.scheduling.concurrency
            hint = None if most is None else float(most)
            if stage.table is None:
                made.append(_without_table(k, stage, step, before, able, input_tasks, hint))
                continue
            table = program.tables[stage.table]
            of_table = parts[table.name]
            if len(of_table) < stage.parts_min:
                made.append([])
                continue
            if any(part.blocked for part in of_table):
                blocked.add(k)
            rows = sum(part.rows for part in of_table)
            total = stage.entries.count(rows, len(of_table), round(input_tasks))
            batches: list[Batch] = []
            for p, part in enumerate(of_table):
                share = part.rows / rows if rows else 1.0 / len(of_table)
                where = list(able) if part.node is None else [queue_of(part.node)]
                spread = 1.0 / len(where)
                each = max(total * share, 1.0) * spread
                of = part.node, (table.name, p), each, share * spread, spread, hint, part.spread
                batches += [Batch(k, stage, step, node, *of) for node in where]
            made.append(batches)
        found += [batch for batches in made for batch in batches]
    return tuple(found), frozenset(blocked)


def _without_table(
    query: int,
    stage: Stage,
    step: int,
    before: Sequence[list[Batch]],
    able: Sequence[int],
    input_tasks: float,
    hint: float | None,
) -> list[Batch]:
    """Where those of its first input ran, or on any node."""
    total = max(stage.entries.count(0.0, 0, round(input_tasks)), 1.0)
    inputs = before[0] if before else []
    weight = {} if inputs else dict.fromkeys(able, 1.0)
    for batch in inputs:
        weight[batch.node] = weight.get(batch.node, 0.0) + max(batch.share, 1e-9)
    whole = sum(weight.values())
    if stage.pipelined:
        hint = max(input_tasks, 1.0)
    return [
        Batch(
            query, stage, step, node, None, None, total * w / whole, w / whole, w / whole, hint
        )
        for node, w in weight.items()
    ]  # fmt: skip

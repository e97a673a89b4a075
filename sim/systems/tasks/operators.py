"""Operators worked out as stages: how many entries, and what each of these demands.

A task reads its own table's parts where they lie, what other tasks have made from its own node, and
what many tasks share (a hash table, columns of another table after a join) from all nodes in turn.
Positions of rows take 4 bytes, 8 where a table has more rows than these count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from ....workloads.operators import (
    AggregateSpec,
    AnyOperator,
    CustomSpec,
    Intermediates,
    JoinSpec,
    LockSpec,
    LoopSpec,
    MaterialiseSpec,
    RecordedSpec,
    ScanSpec,
)
from ....workloads.query_graphs import ColumnOf, OperatorNode
from ....workloads.schema import Column, DataObject
from ....workloads.task_trace import TaskTrace
from ...machine.os_memory import ADDRESS_SPACE, KernelTime, OsMemory
from .cache_sharing import AtRandom, StageUse
from .entry_costs import (
    LINE_BITS,
    SLOT_BYTES,
    Demands,
    EntryCosts,
    InOrder,
    Results,
    found_of,
    lines_per_entry,
    table_bytes,
)
from .facts import OperatorInstructions
from .program import Entries, EntryCost, Held, Path, Place, Stage, Table
from .spec import TasksSystem, column_bits, part_dictionary_bytes

MERGE_ENTRIES = 1024.0  # groups that are worth a task of their own
# Stands for a cost that is worked out once all stages are known.
LATER = EntryCost(np.zeros(0), np.zeros(0), np.zeros(0), ())


class QueryStages:
    """The stages of one query, operator by operator.

    ``tables``: of ``objects``, as they are placed, ``table_at``: their positions; ``weight``: how
    often the query is asked, of all. ``workers``: of all nodes, the number of tasks of a stage
    without a hint on an idle machine. ``counts``: instructions of its loops on this machine.
    """

    def __init__(
        self,
        query: str,
        weight: float,
        objects: Mapping[str, DataObject],
        tables: Sequence[Table],
        table_at: Mapping[str, int],
        costs: EntryCosts,
        system: TasksSystem,
        counts: OperatorInstructions,
        traces: Mapping[str, TaskTrace],
    ) -> None:
        self.query, self.weight = query, weight
        self.objects, self.tables, self.costs = objects, tables, costs
        self.counts, self.concurrency = counts, system.concurrency
        self.traces, self.chunk_bytes = traces, system.chunk.value
        self.table_at, self.workers = table_at, costs.workers_in_all
        self.stages: list[Stage] = []
        # Of an entry of each, and how many there are.
        self._demands: list[tuple[Sequence[Demands], StageUse, float]] = []
        self._default, self._pages = system.intermediates, system.pages
        self._mapped_from = system.mapped_from.value
        self._intermediates: Intermediates = self._default  # of the operator that is added
        self.results: dict[str, Results] = {}

    def add(self, node: OperatorNode) -> None:
        """Adds the stages of an operator whose sources have been added."""
        spec = node.spec
        self._intermediates = getattr(spec, "intermediates", None) or self._default
        if isinstance(spec, ScanSpec):
            results = self._scan(node, spec)
        elif isinstance(spec, MaterialiseSpec):
            results = self._materialise(node, spec)
        elif isinstance(spec, AggregateSpec):
            results = self._aggregate(node, spec)
        elif isinstance(spec, JoinSpec):
            results = self._join(node, spec)
        elif isinstance(spec, CustomSpec):
            results = self._custom(node, spec)
        else:
            results = self._recorded(node, spec)
        self.results[node.name] = results

    def costed(self, costs: EntryCosts) -> tuple[Stage, ...]:
        """All stages with what their entries cost, once those of all queries have been added."""
        found = []
        for stage, (loops, use, entries) in zip(self.stages, self._demands, strict=True):
            tasks = stage.concurrency or self.concurrency or self.workers
            of_task = max(entries / min(float(tasks), max(entries, 1.0)), 1.0)
            cost, mapped = costs.of_loops(loops, use), self._mapped(costs, loops, of_task, tasks)
            found.append(_with_locks(stage, cost, mapped, of_task))
        return tuple(found)

    def _scan(self, node: OperatorNode, spec: ScanSpec) -> Results:
        rows, counts = self._rows(spec.table), self.counts
        if not spec.columns:
            return Results(rows, self._after(node), spec.table, 0.0)
        # Positions of what it finds, or a bit for each row where these take less; who reads those
        # makes positions of them.
        row_bytes, finding = self._position_bytes(spec.table) * spec.selectivity, 0.0
        found = counts.positions(spec.selectivity)
        if spec.result == "smaller" and row_bytes > 1 / 8:
            row_bytes, found, finding = 1 / 8, 0.0, found / spec.selectivity
        bits = sum(column_bits(self._column(column)) for column in node.reads["columns"])
        demands = Demands().more(
            counts.scan_row * len(spec.columns) + found,
            InOrder("part", read_bytes=bits / 8),
            self._made(row_bytes),
        )
        chunk = max(float(self.chunk_bytes * 8 // bits), 1.0)
        stage = self._stage(
            node, demands, rows, spec.table, (), "scan", chunk_entries=chunk, path=spec.path
        )
        entry_bytes = row_bytes / spec.selectivity if spec.selectivity else 0.0
        found_rows, cached = rows * spec.selectivity, self._intermediates == "pipelined"
        return Results(
            found_rows, (stage,), spec.table, entry_bytes, finding=finding, cached=cached
        )

    def _materialise(self, node: OperatorNode, spec: MaterialiseSpec) -> Results:
        source = self.results[spec.input]
        demands = _read(source)
        for column in node.reads["columns"]:
            self._value(demands, column, source)
            demands.more(0.0, self._made(self._value_bytes(column)))
        stage = self._stage(
            node, demands, source.entries, source.table, source.stages, "materialise"
        )
        cached = self._intermediates == "pipelined"
        return replace(source, stages=(stage,), made=node.made, cached=cached)

    def _aggregate(self, node: OperatorNode, spec: AggregateSpec) -> Results:
        """Each task into a table of its own; then all tables into one. Before that the ids of the
        parts are made to agree; meanwhile, where the tasks are pipelined.
        """
        source, counts = self.results[spec.input], self.counts
        own = [c for c in node.reads["group_by"] if c.table == source.table]
        own = [c for c in own if c not in source.made and self._column(c).encoded]
        agreed: tuple[int, ...] = ()
        if source.table is not None and own:
            agreed = (self._dictionaries(node, source.table, own),)
        groups = self._groups(node, spec, source)
        demands = _read(source)
        for column in node.reads["group_by"]:
            self._id(demands, column, source)
        for column in node.reads["sums"]:
            self._value(demands, column, source)
        slots = 1 + len(spec.group_by) + len(spec.sums)
        of_task = found_of(groups, source.entries / self._tasks(spec))
        demands.more(
            (counts.group if spec.group_by else 0.0) + counts.sum * len(spec.sums),
            AtRandom("local", 1.0, table_bytes(of_task, slots), own=True, written=1.0, made=True),
        )
        before, meanwhile = (
            (source.stages, agreed) if spec.pipelined else ((*source.stages, *agreed), ())
        )
        stage = self._stage(node, demands, source.entries, source.table, before, "aggregate")
        merging = Demands().more(
            counts.merge_group + counts.sum * len(spec.sums),
            InOrder("local", read_bytes=SLOT_BYTES * slots),
            AtRandom("interleaved", 1.0, table_bytes(groups, slots), written=1.0, made=True),
        )
        worth = max(int(groups / MERGE_ENTRIES), 1)
        merged = self._append(
            Stage(
                name=f"{node.name}/merge",
                task_class="merge",
                cost=self._cost(f"{node.name}/merge", merging, groups, None),
                entries=Entries(per_input_task=groups, most=max(source.entries, 1.0)),
                table=None,
                inputs=(stage, *meanwhile),
                concurrency=worth
                if worth < (spec.concurrency or self.workers)
                else spec.concurrency,
            )
        )
        entries = max(groups * spec.selectivity, 1.0)
        return Results(entries, (merged,), None, SLOT_BYTES, node.made)

    def _dictionaries(self, node: OperatorNode, table: str, columns: list[ColumnOf]) -> int:
        stored = self.objects[table]
        assert stored.columns is not None
        sizes = [part_dictionary_bytes(stored, column.column) for column in columns]
        values = sum(
            size / stored.columns[column.column].value_size.value
            for size, column in zip(sizes, columns, strict=True)
        )
        demands = Demands().more(
            self.counts.merge_dictionary,
            InOrder("part", read_bytes=sum(sizes) / values),
            InOrder("local", written_bytes=self._position_bytes(table)),
        )
        return self._append(
            Stage(
                name=f"{node.name}/dictionaries",
                task_class="merge",
                cost=self._cost(f"{node.name}/dictionaries", demands, values, table),
                entries=Entries(per_part=values),
                table=self.table_at[table],
                parts_min=2,
                concurrency=node.spec.concurrency,
            )
        )

    def _join(self, node: OperatorNode, spec: JoinSpec) -> Results:
        built, probing, counts = self.results[spec.build], self.results[spec.probe], self.counts
        size, name = table_bytes(built.entries, 2), f"{self.query}/{node.name}"
        hash_table = AtRandom("interleaved", 1.0, size, written=1.0, made=True, name=name)
        demands = _read(built)
        self._value(demands, node.reads["build_key"][0], built)
        demands.more(counts.build, hash_table)
        build = self._stage(
            node, demands, built.entries, built.table, built.stages, "build", "build"
        )
        demands = _read(probing)
        self._value(demands, node.reads["probe_key"][0], probing)
        pair_bytes = 2 * self._position_bytes(probing.table)
        demands.more(
            counts.probe + counts.match * spec.matches,
            replace(hash_table, written=0.0, made=False),
            self._made(pair_bytes * spec.matches),
        )
        probe = self._stage(
            node, demands, probing.entries, probing.table, (*probing.stages, build), "probe"
        )
        entries, cached = probing.entries * spec.matches, self._intermediates == "pipelined"
        return Results(entries, (probe,), probing.table, pair_bytes, node.made, cached=cached)

    def _custom(self, node: OperatorNode, spec: CustomSpec) -> Results:
        sources = [self.results[source] for source in spec.inputs]
        entries = float(spec.entries or sum(source.entries for source in sources))
        if spec.table is not None:
            entries = self._rows(spec.table)
        place: Place = spec.memory or ("local" if node.table is None else "part")
        if place == "part" and node.table is None:
            place = "local"
        loops = [_demands(loop, place, self.query) for loop in spec.all_loops]
        inputs = tuple(stage for source in sources for stage in source.stages)
        stage = self._stage(node, loops, entries, node.table, inputs, node.name)
        written = sum(loop.written.value for loop in spec.all_loops)
        made = written / spec.results if spec.results else 0.0
        return Results(entries * spec.results, (stage,), node.table, made, node.made)

    def _recorded(self, node: OperatorNode, spec: RecordedSpec) -> Results:
        """A stage for each operator and part of the trace, with a task an entry."""
        trace, before = self.traces[node.name], self._after(node)
        for operator in trace.operators:
            now = []
            for traced in trace.traced:
                if traced.operator != operator:
                    continue
                demands = Demands().more(
                    traced.instructions / traced.tasks,
                    InOrder("part", read_bytes=traced.bytes / traced.tasks),
                )
                if spec.structure is not None:
                    accesses, size = traced.accesses / traced.tasks, spec.structure.value
                    demands.more(0.0, AtRandom("part", accesses, size))
                name = f"{node.name}/{operator}/{traced.part}"
                stage = Stage(
                    name=name,
                    task_class=spec.task_class or operator,
                    cost=self._cost(name, demands, float(traced.tasks), traced.part),
                    entries=Entries(constant=float(traced.tasks)),
                    table=self.table_at[traced.part],
                    inputs=before,
                    concurrency=spec.concurrency or traced.tasks,
                )
                now.append(self._append(stage))
            before = tuple(now)
        return Results(0.0, before, None, 0.0)

    def _id(self, demands: Demands, column: ColumnOf, source: Results) -> None:
        """Taking an entry's id from a column's index vector, or its value from an input's results.

        Rows of the input's own table rise; those of a table that it was joined with are anywhere.
        """
        if column in source.made:
            if not source.cached:
                demands.more(0.0, InOrder("local", read_bytes=self._value_bytes(column)))
            return
        if self._intermediates == "materialised" and source.bytes and source.table is not None:
            each = self._value_bytes(column)
            demands.more(0.0, InOrder("local", read_bytes=each, written_bytes=each))
        bits, rows = column_bits(self._column(column)), self._rows(column.table)
        if column.table == source.table:
            size = rows * bits / 8 / self.objects[column.table].parts
            near, alone = lines_per_entry(bits, source.entries / rows)
            demands.more(
                self.counts.value_id,
                InOrder("part", read_bytes=near * LINE_BITS / 8),
                AtRandom("part", alone, size, name=f"ids of {column.table}.{column.column}"),
            )
        else:
            name = f"all ids of {column.table}.{column.column}"
            vector = AtRandom("interleaved", 1.0, rows * bits / 8, name=name)
            demands.more(self.counts.value_id, vector)

    def _value(self, demands: Demands, column: ColumnOf, source: Results) -> None:
        """The same, and the value of the id from the dictionary."""
        self._id(demands, column, source)
        if column not in source.made and self._column(column).encoded:
            place: Place = "part" if column.table == source.table else "interleaved"
            size = part_dictionary_bytes(self.objects[column.table], column.column)
            name = f"values of {column.table}.{column.column}, {place}"
            demands.more(self.counts.dictionary_value, AtRandom(place, 1.0, size, name=name))

    def _made(self, each_bytes: float) -> InOrder:
        """Bytes of an entry's results that go to memory."""
        return InOrder(
            "local", written_bytes=0.0 if self._intermediates == "pipelined" else each_bytes
        )

    def _mapped(
        self, costs: EntryCosts, loops: Sequence[Demands], entries: float, tasks: int
    ) -> KernelTime:
        """What the operating system takes for all that a task of so many entries writes, a table
        that ``tasks`` write together being mapped in as many pieces, and for pages that it touches
        first besides.
        """
        mapped = [loop for loop in loops if loop.mapped]
        sizes = [run.written_bytes * entries for loop in mapped for run in loop.in_order]
        sizes += [
            access.structure_bytes / (1 if access.own else tasks)
            for loop in mapped
            for access in loop.random
            if access.made
        ]
        sizes = [size for size in sizes if size >= max(self._mapped_from, 1.0)]
        used = OsMemory(costs.costs, self._pages).used_once(sizes) if sizes else KernelTime()
        if not (faults := sum(loop.page_faults for loop in loops)):
            return used
        fault_s = OsMemory(costs.costs, "small").fault_s
        return replace(used, alone_s=used.alone_s + faults * entries * fault_s)

    def _column(self, column: ColumnOf) -> Column:
        stored = self.objects[column.table].columns
        assert stored is not None
        return stored[column.column]

    def _value_bytes(self, column: ColumnOf) -> float:
        return float(self._column(column).value_size.value)

    def _rows(self, table: str) -> float:
        rows = self.objects[table].rows
        assert rows is not None
        return float(rows)

    def _position_bytes(self, table: str | None) -> float:
        return 8.0 if table is not None and self._rows(table) > 2**32 else 4.0

    def _groups(self, node: OperatorNode, spec: AggregateSpec, source: Results) -> float:
        """How many groups the entries are in."""
        wanted = 1.0
        for column in node.reads["group_by"]:
            wanted = min(wanted * self._column(column).distinct, 1e18)
        if spec.groups is not None:
            wanted = float(spec.groups)
        return max(found_of(wanted, source.entries), 1.0) if source.entries else 1.0

    def _tasks(self, spec: AnyOperator) -> int:
        return spec.concurrency or self.concurrency or self.workers

    def _cost(
        self, name: str, loops: Demands | Sequence[Demands], entries: float, table: str | None
    ) -> EntryCost:
        """Of an entry of the stage ``name``, which has so many: ``LATER``, see ``costed``."""
        placed = None if table is None else self.tables[self.table_at[table]]
        use = StageUse(
            f"{self.query}/{name}", self.weight * entries, *self.costs.used_where(placed)
        )
        each = [loops] if isinstance(loops, Demands) else loops
        for loop in each:
            loop.mapped = self._intermediates == "materialised"
        self._demands.append((each, use, entries))
        at_random = [access for loop in each for access in loop.random]
        self.costs.survey.add(use, sum(loop.instructions for loop in each), at_random)
        self._in_order(each, entries, use, placed)
        return LATER

    def _in_order(
        self, loops: Sequence[Demands], entries: float, use: StageUse, table: Table | None
    ) -> None:
        """What a stage of so many entries reads in order: of its table, which all queries share,
        and of other stages' results, of which each query that is asked has its own."""
        runs, survey = [run for loop in loops for run in loop.in_order], self.costs.survey
        of_table = sum(run.read_bytes for run in runs if run.place == "part")
        results = sum(run.read_bytes for run in runs) - of_table
        if table is not None:
            whole = sum(part.rows for part in table.parts) * table.bytes_per_row
            read = entries * of_table
            survey.in_order(table.name, read * use.nodes, whole * use.nodes)
        survey.in_order(f"{use.key}/results", use.entries * results * use.nodes)

    def _stage(
        self,
        node: OperatorNode,
        demands: Demands | Sequence[Demands],
        entries: float,
        table: str | None,
        inputs: tuple[int, ...],
        task_class: str,
        step: str | None = None,
        *,
        chunk_entries: float = 0.0,
        path: Path | None = None,
    ) -> int:
        """Adds a stage; its position. ``entries`` come from the rows of a table, if of any."""
        spec = node.spec
        lock: LockSpec | None = getattr(spec, "lock", None)
        name = node.name if step is None else f"{node.name}/{step}"
        return self._append(
            Stage(
                name=name,
                task_class=spec.task_class or task_class,
                cost=self._cost(name, demands, entries, table),
                entries=Entries(constant=entries)
                if table is None
                else Entries(per_row=entries / self._rows(table)),
                table=None if table is None else self.table_at[table],
                inputs=tuple(dict.fromkeys((*inputs, *self._after(node)))),
                pipelined=bool(inputs) and bool(getattr(spec, "pipelined", False)),
                concurrency=self._most_tasks(spec, entries),
                chunk_entries=chunk_entries,
                path=path,
                task_s=float(getattr(spec, "task", None) or 0.0),
                locks=() if lock is None else (Held(lock.name, lock.held.value * lock.times),),
            )
        )

    def _most_tasks(self, spec: AnyOperator, entries: float) -> int | None:
        """At most; None: as the system says."""
        group: int | None = getattr(spec, "row_group", None)
        if group is None:
            return spec.concurrency
        return min(int(self._tasks(spec)), max(ceil(entries / group), 1))

    def _after(self, node: OperatorNode) -> tuple[int, ...]:
        """Stages that must be done before."""
        return tuple(stage for name in node.spec.after for stage in self.results[name].stages)

    def _append(self, stage: Stage) -> int:
        self.stages.append(stage)
        return len(self.stages) - 1


def _read(source: Results) -> Demands:
    """What an operator reads for an entry that another one has passed on."""
    read_bytes = 0.0 if source.cached else source.bytes
    return Demands().more(source.finding, InOrder("local", read_bytes=read_bytes))


def _with_locks(stage: Stage, cost: EntryCost, kernel: KernelTime, entries: float) -> Stage:
    """``kernel``: of a task, of so many ``entries``."""
    more_s = sum(lock.held_s for lock in stage.locks) + kernel.alone_s / entries
    locks = stage.locks
    if kernel.held_s:
        held = Held(ADDRESS_SPACE, kernel.held_s / entries, kernel.interrupt_s / entries)
        locks = (*locks, held)
    if more_s:
        cost = replace(cost, separate_s=cost.separate_s + more_s)
    return replace(stage, cost=cost, locks=locks)


def _demands(loop: LoopSpec, place: Place, query: str) -> Demands:
    own = loop.structure_of == "task"
    return Demands(
        loop.instructions,
        [
            InOrder(place, read_bytes=loop.read.value),
            InOrder("local", written_bytes=loop.written.value),
        ],
        [
            AtRandom(
                "local" if own else place,
                each.accesses,
                each.size.value,
                own=own,
                written=each.written,
                name=f"{query}: {each.name}, {each.size.value}" if each.name else "",
            )
            for each in loop.accessed
        ],
        None if loop.ipc is None else loop.ipc.value,
        None if loop.at_once is None else loop.at_once.value,
        page_faults=loop.page_faults,
    )

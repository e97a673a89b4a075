"""A profile as a workload file: pipelines as operators, their functions as loops, and notes.

A plan cut into pipelines: what one task does to a row before it puts it away.

Which functions do the work of which operator of a plan, and how operators form pipelines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...inputs import InputError, load_yaml
from ...inputs.names import is_name
from ...inputs.quantities import format_quantity, rounded, time_text
from .counts import CallGraph
from .importers import Found
from .loops import (
    LINE_BYTES,
    Counted,
    Floats,
    Loop,
    Structure,
    counted,
    loops_of,
    rates,
    whole_loop,
    with_structures,
)
from .plans import Names, Plan, PlanOperator
from .refills import refills
from .timed_rates import Timed, set_rates

WIDTH, KIB = 96, 1024
CLOCK = re.compile(r"(?:clock_gettime|gettimeofday)\b|gettimeofday_syscall")


def _yaml(name: str) -> Any:
    return load_yaml(Path(__file__).with_name(f"{name}.yaml")).value


UNKNOWN: dict[str, str] = _yaml("unknown")


def workload_text(found: Found, name: str, queries: int = 1, timed: Timed | None = None) -> str:
    """The workload file of what profiles tell of one query, which ran ``queries`` times while it
    was counted; ``timed``: how long it took. Raises InputError where they do not tell enough, or do
    not belong together."""
    if not found.graphs and found.totals is None:
        raise InputError(
            "no counts, only a plan" if found.plan else "no profile",
            expected="an output file of callgrind, or of perf stat -x, too",
        )
    writer = _Writer(found, queries)
    operators = writer.operators()
    document = {
        "name": name,
        "objects": writer.objects or {"nothing": _table(1, 8.0)},
        "operations": {name: {"kind": "query", "operators": operators}},
        "clients": {"kind": "closed", "count": 1},
    }
    if timed is not None:
        set_rates(document, timed)
        writer.notes[writer.notes.index(UNKNOWN["ipc"])] = UNKNOWN["timed"]
    notes = "".join(f"# - {note}\n" for note in dict.fromkeys(writer.notes))
    sources = [each.source for each in (found.plan, *found.graphs, found.totals) if each]
    made_of = ", ".join(dict.fromkeys(sources))
    head = f"# Made by numatwin profile of {made_of}.\n# What these do not tell:\n{notes}"
    return head + yaml.safe_dump(document, sort_keys=False, width=WIDTH, default_flow_style=None)


class _Writer:
    def __init__(self, found: Found, queries: int) -> None:
        self.found, self.queries = found, float(queries)
        self.objects: dict[str, Any] = {}
        self.renamed = cache(Names())
        self.notes: list[str] = []
        totals = found.totals.counts if found.totals else {}
        self.faults = totals.get("minor-faults", totals.get("page-faults", 0.0))
        self.counted = counted(found.graphs, self.faults) if found.graphs else None
        for graph in found.graphs:
            self.notes += [f"{graph.source}: {note}" for note in graph.notes]

    def note(self, what: str) -> None:
        if UNKNOWN[what] not in self.notes:
            self.notes.append(UNKNOWN[what])

    def operators(self) -> dict[str, Any]:
        self.note("ipc")
        self._note_kernel()
        if self.counted is None:
            return {"all": self._whole()}
        self._note_misses(self.counted)
        refilled = self._refills(self.counted.graph)
        if self.counted.mispredicted is None:
            self.note("branches")
        if self.found.plan is None:
            share = np.ones(len(self.counted.graph.names)) / self.queries
            loops = loops_of(self.counted, share, 1.0, streams=None)
            one = _Operator([*loops, *refilled], {"entries": 1, "results": 0})
            return _written_all(self.counted, {"all": one})
        planned = self._planned(self.counted, self.found.plan, refilled)
        return _written_all(self.counted, planned)

    def _note_kernel(self) -> None:
        if not self.faults:
            return self.note("faults")
        each, totals = 1.0 / self.queries, self.found.totals.counts if self.found.totals else {}
        self.notes.append(f"page faults: {self.faults * each:.6g} a query, {UNKNOWN['each_fault']}")
        if "system_time" in totals:
            user_s, kernel_s = (totals[f"{of}_time"] * each * 1e-9 for of in ("user", "system"))
            times = f"{time_text(user_s)} in user code, {time_text(kernel_s)} in the kernel"
            self.notes.append(f"processor time of a query in that run: {times}; not made use of")

    def _note_misses(self, counts: Counted) -> None:
        self.note("at_once")
        if not len(counts.sizes):
            self.note("misses" if counts.in_order is None else "in_order")
            return
        self.note("random")
        if counts.in_order is None:
            self.note("order")

    def _refills(self, graph: CallGraph) -> list[Loop]:
        """After calls into the kernel; reading the clock is none, but under callgrind."""
        clock = np.array([bool(CLOCK.search(name)) for name in graph.names])
        calls = np.where(clock, 0.0, graph.of("sysCount"))
        if not calls.any():
            return []
        each = float(calls.sum()) / self.queries
        self.notes.append(f"time in the kernel: {each:.3g} system calls a query, left out")
        found = refills(self.found.graphs, calls, graph.of("sysCpuTime"), self.queries)
        self.note("refills" if found else "no_refills")
        return found

    def _whole(self) -> dict[str, Any]:
        """Of totals alone: one task; a miss of the last cache is a line of memory."""
        totals = self.found.totals
        assert totals is not None
        counts = {name: value / self.queries for name, value in totals.counts.items()}
        lines = counts.get("cache-misses", counts.get("LLC-load-misses"))
        self.note("lines" if lines is None else "in_order")
        if "branch-misses" not in counts:
            self.note("branches")
        self.notes.append("operators and rows: all is one task")
        ipc = rates(counts["instructions"], counts.get("branch-misses"))
        if counts.get("cycles"):  # with its misses; without them it executes no fewer per cycle
            least = counts["instructions"] / counts["cycles"]
            ipc = max(ipc[0], least), max(ipc[1], least), max(ipc[2], least)
        instructions, faults = counts["instructions"], self.faults / self.queries
        read_bytes = (lines or 0.0) * LINE_BYTES
        loop = Loop("the whole program", instructions, ipc, read_bytes, 0.0, page_faults=faults)
        return _Operator([loop], {"entries": 1, "results": 0}).written()

    def _planned(self, counts: Counted, plan: Plan, refilled: list[Loop]) -> dict[str, _Operator]:
        engine = ENGINES[plan.engine]
        self.notes += plan.notes
        pipelines = pipelines_of(plan, engine)
        share, fixed = self._shares(counts.graph, pipelines, engine)
        self.note("shared")
        found: dict[str, _Operator] = {}
        if fixed.any():
            loops = [whole_loop(counts, fixed / self.queries), *refilled]
            found["outside-operators"] = _Operator(
                loops, {"entries": 1, "concurrency": 1, "results": 0}
            )
            self.notes.append(
                "outside-operators: all that no operator's function did, such as parsing and "
                "planning, once a query"
            )
        for pipeline, of in zip(pipelines, share, strict=True):
            found[pipeline.name] = self._pipeline(counts, pipeline, of / self.queries, engine)
            if fixed.any() and pipeline.after == []:
                found[pipeline.name].fields["after"] = ["outside-operators"]
        return found

    def _shares(
        self, graph: CallGraph, pipelines: Sequence[Pipeline], engine: Engine
    ) -> tuple[list[Floats], Floats]:
        """(2, F) each, the part of each function that works for each pipeline, and for its scan;
        (F,) for none."""
        rows: dict[tuple[str, str], float] = {}
        for pipeline in pipelines:
            for operator, part in pipeline.parts:
                key = operator.kind, part
                if key in rows:
                    self.note("split")
                rows[key] = rows.get(key, 0.0) + engine.worked(operator, part)
        keys = list(rows)
        roots = [engine.roots(kind, part, graph.names) for kind, part in keys]
        for kind in dict.fromkeys(kind for kind, _ in keys):
            if not any(r for key, r in zip(keys, roots, strict=True) if key[0] == kind):
                self.notes.append(f"no function of the operator {kind} was counted")
        if not any(roots):
            stripped = f" ({'; '.join(graph.notes)})" if graph.notes else ""
            raise InputError(
                f"none of the plan's operators has a function here{stripped}",
                graph.source,
                token=", ".join(dict.fromkeys(kind for kind, _ in keys)),
                expected="counts of the program whose plan it is, with its symbols",
            )
        of_kind = graph.shares(roots, list(rows.values()))
        found = []
        for pipeline in pipelines:
            own = np.zeros((2, len(graph.names)))
            for operator, part in pipeline.parts:
                k = keys.index((operator.kind, part))
                each = of_kind[:, k] * engine.worked(operator, part) / rows[keys[k]]
                own += [each, each if operator.table else 0.0 * each]
            found.append(own)
        return found, np.clip(1.0 - of_kind.sum(axis=1), 0.0, 1.0)

    def _pipeline(
        self, counts: Counted, pipeline: Pipeline, share: Floats, engine: Engine
    ) -> _Operator:
        rows = max(round(pipeline.rows), 1)
        fields: dict[str, Any] = {"entries": rows}
        if pipeline.table is not None:
            table = str(pipeline.table.table)
            if not (is_name(table) and table[0].isalpha()):  # in SQL it may have any letters
                table = self.renamed(f"table {table}")
            stored = self.objects.setdefault(table, _table(rows, pipeline.table.row_bytes))
            if not pipeline.table.row_bytes:
                self.note("row_bytes")
            if stored["rows"] != rows:  # of a filter below the scan
                rows = stored["rows"]
            fields = {"table": table}
        fields["results"] = float(f"{pipeline.results / rows:.6g}")
        if pipeline.after:
            fields["after"] = list(pipeline.after)
        if all(operator.parallel == 1 for operator, _ in pipeline.parts):
            fields["concurrency"] = 1
        if engine.row_group and rows > 1:
            fields["row_group"] = engine.row_group
            if pipeline.table is not None:
                if pipeline.table.row_groups is None:
                    self.note("row_groups")
                groups = pipeline.table.row_groups or ceil(rows / engine.row_group)
                fields["row_group"] = ceil(rows / groups)
        loops = loops_of(counts, share[0], float(rows), streams=share[1] > share[0] / 2)
        known = len(counts.sizes) or counts.in_order is not None
        if not known and pipeline.table is not None and loops:
            loops[0] = replace(loops[0], read_bytes=pipeline.table.row_bytes)
        shared = any(operator.kind in engine.shared for operator, _ in pipeline.parts)
        return _Operator(loops, fields, rows, "all" if shared else "task")


@dataclass
class _Operator:
    """``loops`` for each of so many ``rows``, and other ``fields``."""

    loops: list[Loop]
    fields: dict[str, Any]
    rows: int = 1
    structure_of: str = "all"

    def written(self) -> dict[str, Any]:
        loops = [_written(loop, self.structure_of) for loop in self.loops]
        return {"kind": "custom", **self.fields, "loops": loops or [{"instructions": 0.0}]}


def _written_all(counts: Counted, operators: Mapping[str, _Operator]) -> dict[str, Any]:
    """What the file says of all operators of a query, by name."""
    each = [(float(one.rows), loop) for one in operators.values() for loop in one.loops]
    known = iter(with_structures(counts.sizes, counts.changed, each))
    for one in operators.values():
        one.loops = [next(known) for _ in one.loops]
    return {name: one.written() for name, one in operators.items()}


def _table(rows: int, row_bytes: float) -> dict[str, Any]:
    size = format_quantity(max(round(row_bytes, 2), 1.0), "size")
    columns = {"columns-read": {"distinct": rows, "value_size": size, "encoded": False}}
    return {"kind": "table", "rows": rows, "columns": columns}


def _size(size: float, low: float, high: float) -> Any:
    value, *ends = (format_quantity(round(each / KIB) * KIB, "size") for each in (size, low, high))
    return {"value": value, "range": ends} if low < high else value


def _written(loop: Loop, structure_of: str) -> dict[str, Any]:
    value, low, high = map(rounded, loop.ipc)
    found: dict[str, Any] = {"instructions": float(f"{loop.instructions:.6g}")}
    if loop.instructions:
        found["ipc"] = {"value": value, "range": [low, high], "source": loop.functions[:120]}
    if loop.at_once:
        value, low, high = loop.at_once
        found["at_once"] = {"value": value, "range": [low, high], "source": loop.functions}
    for key, size in (("read", loop.read_bytes), ("written", loop.written_bytes)):
        if size > 0:
            found[key] = format_quantity(rounded(size), "size")
    if loop.structures:
        found["structures"] = [_structure(one, loop) for one in loop.structures]
        found["structure_of"] = structure_of
    if loop.page_faults:
        found["page_faults"] = float(f"{loop.page_faults:.6g}")
    return found


def _structure(one: Structure, loop: Loop) -> dict[str, Any]:
    found = {"size": _size(one.size, one.low, one.high), "accesses": rounded(one.accesses)}
    if one.written:
        found["written"] = float(f"{one.written:.3g}")
    return found | ({"name": "reused"} if loop.at_random.any() else {})


Part = tuple[PlanOperator, str]


@dataclass
class Pipeline:
    """``rows`` come from a ``table``, or from what the pipeline ``after`` put away; ``parts`` of
    operators work on them in turn. ``results``: rows that come out of it.
    """

    name: str
    rows: float
    results: float
    table: PlanOperator | None = None
    after: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


def pipelines_of(plan: Plan, engine: Engine) -> list[Pipeline]:
    """The pipelines of a plan, each after those that it waits for."""
    if engine.breakers is None:
        return [
            Pipeline(
                one.name,
                max(one.rows, 1.0),
                one.results,
                table=one if one.table else None,
                after=[*one.inputs],
                parts=[(one, FLOWS)],
            )
            for one in plan.operators
        ]
    breakers = engine.breakers
    by_name = {operator.name: operator for operator in plan.operators}
    inputs = {name for operator in plan.operators for name in operator.inputs}
    found: list[Pipeline] = []

    def ended(pipeline: Pipeline, at: PlanOperator) -> Pipeline:
        pipeline.name = at.name
        found.append(pipeline)
        return pipeline

    def of(operator: PlanOperator) -> Pipeline:
        below = [by_name[name] for name in operator.inputs]
        if not below:
            own = operator if operator.table else None
            rows = max(operator.rows, 1.0)
            return Pipeline("", rows, operator.results, own, [], [(operator, FLOWS)])
        now = of(below[0])
        if operator.kind in engine.joins:
            for other in below[1:]:
                build = of(other)
                if other.kind not in breakers:
                    build.parts.append((operator, SINK))
                now.after.append(ended(build, other).name)
        else:
            for other in below[1:]:  # of a union: after each other
                now.after.append(ended(of(other), other).name)
        if operator.kind in breakers:
            now.parts.append((operator, SINK))
            rows = max(operator.results, 1.0)
            first = ended(now, operator)
            first.results = 0.0
            now = Pipeline("", rows, rows, None, [first.name], [])
        now.parts.append((operator, FLOWS))
        now.results = operator.results
        return now

    for operator in plan.operators:
        if operator.name not in inputs:
            ended(of(operator), operator)
    names: dict[str, int] = {}
    for pipeline in found:  # what an operator passes on is another pipeline than what it takes in
        count = names[pipeline.name] = names.get(pipeline.name, 0) + 1
        if count > 1:
            pipeline.name = f"{pipeline.name}-results"
    return found


SINK, FLOWS = "sink", "flows"


@dataclass(frozen=True)
class Engine:
    """What an engine calls things: see ``engines.yaml``."""

    breakers: Sequence[str] | None
    joins: Sequence[str]
    functions: Mapping[str, str]
    named: Mapping[str, str] = field(default_factory=dict)
    shared: Sequence[str] = ()
    row_group: int | None = None

    def worked(self, operator: PlanOperator, part: str) -> float:
        """Rows that a part works on: of one that has taken all of them in, its results."""
        passed_on = part == FLOWS and operator.kind in (self.breakers or ())
        return max(operator.results if passed_on else operator.rows, 1.0)

    def roots(self, kind: str, part: str, names: Sequence[str]) -> list[int]:
        """Positions of the functions that begin the work of an operator's part."""
        words = kind if kind.isalnum() and not kind.isupper() else kind.title()
        own = self.named.get(kind, "".join(re.findall(r"[A-Za-z0-9]+", words)))
        pattern = re.compile(self.functions[part].format(own))
        return [k for k, name in enumerate(names) if pattern.match(name)]


ENGINES = {name: Engine(**facts) for name, facts in _yaml("engines").items()}

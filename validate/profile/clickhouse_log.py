"""ClickHouse's processors of one query: rows of ``system.processors_profile_log`` as JSON.

A step of the plan has several processors, which work side by side; ``parent_ids`` are those that
read what one puts out. FORMAT JSONEachRow has an object a line, FORMAT JSON all in one.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...inputs import InputError
from .plans import Names, Plan, PlanOperator

COLUMNS = (
    *("id", "parent_ids", "plan_step", "plan_step_name", "plan_step_description", "name"),
    *("input_rows", "output_rows", "output_bytes"),
)
EXPECTED = f"the columns {', '.join(COLUMNS)} of system.processors_profile_log"
BUILDS = "FillingRightJoinSide"


def is_clickhouse(head: str) -> bool:
    """Whether a file that begins so is one."""
    return head.lstrip()[:1] == "{" and any(f'"{name}"' in head for name in COLUMNS[1:4])


def read_clickhouse(path: Path, text: str) -> Plan:
    """The plan, a step an operator; raises InputError of one that lacks columns or rows."""
    source = str(path)
    try:
        rows = list(_rows(source, text))
        processors = [_processor(source, row) for row in rows]
        if len({row.get("query_id") for row in rows}) > 1:
            raise InputError("several queries", source, expected="WHERE query_id = '…'")
        return _Steps(source, processors).plan()
    except RecursionError:
        raise InputError("processors that read each other", source) from None


def _rows(source: str, text: str) -> Iterator[Any]:
    """Of either format."""
    lines = text.splitlines()
    each = enumerate(lines, 1) if lines[0].rstrip().endswith("}") else [(1, text)]
    for first, part in each:
        try:
            found = json.loads(part) if part.strip() else {"data": []}
        except json.JSONDecodeError as failure:
            raise InputError(
                "rows that are cut off or damaged",
                source,
                first + failure.lineno - 1,
                failure.colno,
                expected="FORMAT JSONEachRow or FORMAT JSON of ClickHouse",
            ) from None
        data = found.get("data") if isinstance(found, dict) else None
        yield from data if isinstance(data, list) else [found]


@dataclass(frozen=True)
class _Processor:
    id: int
    parents: tuple[int, ...]
    step: int
    kind: str
    about: str
    name: str
    taken: float
    rows: float
    bytes: float


def _processor(source: str, row: Any) -> _Processor:
    """Numbers of 64 bits are words, as some versions have them."""
    try:
        parents = tuple(int(each) for each in row["parent_ids"])
        words = (str(row[name]) for name in COLUMNS[3:6])
        counts = (float(row[name]) for name in COLUMNS[6:])
        return _Processor(int(row["id"]), parents, int(row["plan_step"]), *words, *counts)
    except (KeyError, TypeError, ValueError) as failure:
        raise InputError(
            "a row without all that is needed",
            source,
            token=str(failure.args[0]),
            expected=EXPECTED,
        ) from None


class _Steps:
    def __init__(self, source: str, processors: list[_Processor]) -> None:
        self.source, self.names = source, Names()
        self.by_id = {each.id: each for each in processors}
        self.of = defaultdict[int, list[_Processor]](list)
        for each in processors:
            self.of[each.step].append(each)
        for parent in {parent for each in processors for parent in each.parents}:
            if parent not in self.by_id:
                missing = "the rows of all processors of the query"
                raise InputError(
                    "a processor is missing", source, token=str(parent), expected=missing
                )
        self.found: dict[int, PlanOperator] = {}

    def plan(self) -> Plan:
        for step in self.of:
            if step:  # others put out what the client gets
                self._operator(step)
        if not self.found:
            raise InputError("no steps of a plan", self.source, expected=EXPECTED)
        most = max(operator.parallel or 1 for operator in self.found.values())
        note = f"up to {most} processors of a step worked side by side"
        return Plan(self.source, "clickhouse", tuple(self.found.values()), (note,))

    def _operator(self, step: int) -> PlanOperator:
        """Adds a step after all whose rows it reads."""
        if step in self.found:
            return self.found[step]
        below = self._inputs(step)
        inputs = [self._operator(each) for each in below]
        out = [each for each in self.of[step] if self._readers(each) != {step}]
        results = sum(each.rows for each in out)
        rows = sum(each.results for each in inputs) if inputs else results
        busy = Counter(
            (each.name, self._depth(each)) for each in self.of[step] if each.taken or each.rows
        )
        first = self.of[step][0]
        self.found[step] = found = PlanOperator(
            name=self.names(re.sub("(?<=[a-z])(?=[A-Z])", " ", first.kind)),
            kind=first.kind,
            rows=rows,
            results=results,
            row_bytes=sum(each.bytes for each in out) / results if results else 0.0,
            inputs=tuple(each.name for each in inputs),
            table=first.about.rpartition(".")[2] or None if not inputs else None,
            parallel=max(busy.values(), default=1),
        )
        return found

    def _depth(self, processor: _Processor) -> int:
        """Steps' processors of one name that follow each other have others."""
        within = (self.by_id[parent] for parent in processor.parents)
        return 1 + max(
            (self._depth(one) for one in within if one.step == processor.step), default=0
        )

    def _readers(self, processor: _Processor) -> set[int]:
        """Steps that read what it puts out."""
        return {self.by_id[parent].step for parent in processor.parents}

    def _inputs(self, step: int) -> list[int]:
        """Steps whose rows it reads, one that a hash table is made of last."""
        into: dict[int, bool] = {}
        for each in self.by_id.values():
            for parent in each.parents:
                if each.step not in (0, step) and self.by_id[parent].step == step:
                    into[each.step] = into.get(each.step, False) or self._builds(parent, step)
        return sorted(into, key=lambda other: into[other])

    def _builds(self, processor: int, step: int) -> bool:
        """Whether its rows go into a hash table within the step."""
        this = self.by_id[processor]
        return this.step == step and (
            this.name.startswith(BUILDS) or any(self._builds(one, step) for one in this.parents)
        )

"""PostgreSQL's ``EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)`` (version 10 and later)."""

from functools import partial
from pathlib import Path
from typing import Any

from ...inputs import InputError
from .plans import Names, Plan, PlanOperator, amount, below

PAGE_BYTES = 8192.0
NEEDED = ("Node Type", "Actual Rows", "Actual Loops", "Plan Width")


def is_postgres(document: Any) -> bool:
    """Whether a JSON document is one."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, dict) and isinstance(first.get("Plan"), dict)


def read_postgres(path: Path, document: Any) -> Plan:
    """The plan; raises InputError of one without what ANALYZE adds."""
    reader = _Reader(str(path))
    reader.operator(document[0]["Plan"])
    notes = ["pages of tables are taken to have 8 KiB, as PostgreSQL is usually built"]
    if reader.processes > 1:
        notes.append(f"{reader.processes} processes worked on it, the leader among them")
    return Plan(str(path), "postgresql", tuple(reader.operators), tuple(notes))


class _Reader:
    def __init__(self, source: str) -> None:
        self.source, self.names, self.processes = source, Names(), 1
        self._amount = partial(amount, source=source)
        self.operators: list[PlanOperator] = []

    def operator(self, node: Any) -> PlanOperator:
        """Adds a node after all below it."""
        missing = [key for key in NEEDED if not isinstance(node, dict) or key not in node]
        if missing:
            raise InputError(
                "a plan without what was measured",
                self.source,
                token=missing[0],
                expected="EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)",
            )
        self.processes = max(self.processes, 1 + int(self._amount(node, "Workers Launched")))
        children = below(node, "Plans", self.source)
        inputs = list(map(self.operator, children))
        results = self._of_loops(node, "Actual Rows")
        removed = sum(
            self._of_loops(node, key) for key in node if key.startswith("Rows Removed by")
        )
        pages = self._pages(node) - sum(map(self._pages, children))
        rows = sum(each.results for each in inputs) if inputs else results + removed
        table = node.get("Relation Name")
        size = self._amount(node, "Plan Width")
        if table and rows:
            size = pages * PAGE_BYTES / max(rows, 1.0)
        found = PlanOperator(
            name=self.names(str(node["Node Type"])),
            kind=str(node["Node Type"]),
            rows=rows,
            results=results,
            row_bytes=size,
            inputs=tuple(each.name for each in inputs),
            table=None if inputs or table is None else str(table),
        )
        self.operators.append(found)
        return found

    def _of_loops(self, node: dict[str, Any], key: str) -> float:
        """Of all: rows are averages over loops."""
        rows = self._amount(node, key) * self._amount(node, "Actual Loops")
        return self._amount({f"{key}' by 'Actual Loops": rows}, f"{key}' by 'Actual Loops")

    def _pages(self, node: dict[str, Any]) -> float:
        return sum(self._amount(node, f"Shared {what} Blocks") for what in ("Hit", "Read"))

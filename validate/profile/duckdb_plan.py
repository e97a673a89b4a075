"""DuckDB's profile as JSON: ``PRAGMA enable_profiling = 'json'`` (versions 1 and 2)."""

from pathlib import Path
from typing import Any

from ...inputs import InputError
from .plans import Names, Plan, PlanOperator, amount, below

# By version: names of the keys.
FIELDS = (
    ("operator_type", "operator_cardinality", "result_set_size"),
    ("type", "intermediate_rows", "intermediate_size_bytes"),
)
SCANNED = ("operator_rows_scanned", "rows_scanned")
NO_WORK = ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE", "QUERY", "COLUMN_DATA_SCAN_END", "")


def is_duckdb(document: Any) -> bool:
    """Whether a JSON document is one."""
    return isinstance(document, dict) and _roots(document) is not None


def read_duckdb(path: Path, document: Any) -> Plan:
    """The plan; raises InputError of one of another version."""
    roots = _roots(document)
    assert roots is not None
    reader = _Reader(str(path))
    for root in roots:
        reader.operator(root)
    if not reader.operators:
        raise InputError("no operators in DuckDB's profile", str(path), expected="a query's")
    return Plan(str(path), "duckdb", tuple(reader.operators))


def _roots(document: dict[str, Any]) -> list[Any] | None:
    for key in ("operator", "children"):
        if isinstance(document.get(key), list) and ("query_name" in document or key == "operator"):
            return list(document[key])
    return None


class _Reader:
    def __init__(self, source: str) -> None:
        self.source, self.names = source, Names()
        self.operators: list[PlanOperator] = []

    def operator(self, node: Any) -> PlanOperator | None:
        """Adds an operator after all below it; None where these do no work either."""
        kind, results, size = self._fields(node)
        children = map(self.operator, below(node, "children", self.source))
        inputs = [each for each in children if each is not None]
        if kind in NO_WORK:
            return inputs[0] if inputs else None
        scanned = max(amount(node, key, self.source) for key in SCANNED)
        about = node.get("extra_info", {})
        table = about.get("Table") if isinstance(about, dict) else None
        # A join's second input is its hash table, which is there before it is probed.
        probes = inputs[:1] if "JOIN" in kind else inputs
        rows = sum(each.results for each in probes) if inputs else max(scanned, results)
        groups = round(amount(node, "total_row_groups_to_scan", self.source))
        found = PlanOperator(
            name=self.names(kind),
            kind=kind,
            rows=rows + (sum(each.results for each in inputs[1:]) if "JOIN" in kind else 0.0),
            results=results,
            row_bytes=size / max(results, 1.0),
            inputs=tuple(each.name for each in inputs),
            table=None if inputs or not table else str(table).rpartition(".")[2],
            row_groups=groups if groups and not inputs else None,
        )
        self.operators.append(found)
        return found

    def _fields(self, node: Any) -> tuple[str, float, float]:
        for kind, rows, size in FIELDS:
            if isinstance(node, dict) and kind in node and rows in node:
                results, size_bytes = (amount(node, key, self.source) for key in (rows, size))
                return str(node[kind]), results, size_bytes
        keys = ", ".join(node) if isinstance(node, dict) else repr(node)
        raise InputError(
            "an operator of another version of DuckDB's profile",
            self.source,
            token=keys,
            expected=" or ".join(", ".join(fields) for fields in FIELDS),
        )

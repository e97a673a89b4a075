"""ClickHouse's processors of one query: rows of ``system.processors_profile_log`` as JSON.

A step of the plan has several processors, which work side by side; ``parent_ids`` are those that
read what one puts out. FORMAT JSONEachRow has an object a line, FORMAT JSON all in one.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...inputs import InputError
from .plans import MOST, Names, Plan, PlanOperator, wrong

NUMBERS = {
    **dict.fromkeys(("id", "plan_step"), 2.0**64),
    **dict.fromkeys(("input_rows", "output_rows", "output_bytes"), MOST),
}
DIGITS = re.compile(r"\d{1,20}")
WORDS = ("plan_step_name", "plan_step_description", "name")
EXPECTED = "rows of a query from system.processors_profile_log, FORMAT JSON or JSONEachRow"


def is_clickhouse(head: str) -> bool:
    """Whether a file that begins so is one."""
    return head.startswith("{") and any(f'"{name}"' in head for name in ("parent_ids", *WORDS[:2]))


def read_clickhouse(path: Path, text: str) -> Plan:
    """The plan, a step an operator; raises InputError of one that lacks columns or rows."""
    try:
        found = _Steps([_processor(row, str(path), line) for line, row in _rows(text)]).found
    except json.JSONDecodeError as failure:
        at = failure.lineno, failure.colno
        raise InputError("damaged or cut off", str(path), *at, expected=EXPECTED) from None
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as failure:
        lacks = str(failure.args[0]) if isinstance(failure, (KeyError, ValueError)) else None
        raise InputError("not all is there", str(path), token=lacks, expected=EXPECTED) from None
    most = max(operator.parallel or 1 for operator in found.values())
    note = f"up to {most} processors of a step worked side by side"
    return Plan(str(path), "clickhouse", tuple(found.values()), (note,))


def _rows(text: str) -> Iterator[tuple[int | None, Any]]:
    """Of either format; where each has a line of its own, with that."""
    if not text.partition("\n")[0].rstrip().endswith("}"):
        yield from ((None, row) for row in json.loads(text)["data"])
        return
    for above, line in enumerate(text.splitlines()):
        yield above + 1, json.loads("\n" * above + line)  # failures tell the line


def _processor(row: Any, source: str, line: int | None) -> dict[str, Any]:
    """Numbers of 64 bits are words, as some versions have them."""

    def whole(name: str, value: Any, most: float) -> int:
        if isinstance(value, bool) or not DIGITS.fullmatch(str(value)) or int(value) > most:
            raise wrong(name, source, value, f"a whole number from 0 to {most:g}", line)
        return int(value)

    numbers = {name: whole(name, row[name], most) for name, most in NUMBERS.items()}
    if not isinstance(row["parent_ids"], list):
        raise wrong("parent_ids", source, row["parent_ids"], "a list", line)
    parents = [whole("parent_ids", each, 2.0**64) for each in row["parent_ids"]]
    words = {name: str(row[name]) for name in (*WORDS, *({"query_id"} & row.keys()))}
    return {**numbers, **words, "parent_ids": parents}


class _Steps:
    def __init__(self, processors: list[dict[str, Any]]) -> None:
        by_id = {each["id"]: each for each in processors}
        if len(by_id) < len(processors) or len({each.get("query_id") for each in processors}) > 1:
            raise ValueError("several queries")
        self.processors, self.names = processors, Names()
        self.found: dict[int, PlanOperator] = {}
        for each in processors:
            each["readers"] = [by_id[parent] for parent in each["parent_ids"]]
            each["read_by"] = {reader["plan_step"] for reader in each["readers"]}
        for each in processors:
            if each["plan_step"]:  # others put out what the client gets
                self._operator(each["plan_step"])
        if not self.found:
            raise KeyError("steps of a plan")

    def _operator(self, step: int) -> PlanOperator:
        """Adds a step after all whose rows it reads."""
        if step in self.found:
            return self.found[step]
        inputs = [self._operator(each) for each in self._inputs(step)]
        own = [each for each in self.processors if each["plan_step"] == step]
        out = [each for each in own if each["read_by"] != {step}]
        results = float(sum(each["output_rows"] for each in out))
        busy = (each for each in own if each["input_rows"] or each["output_rows"])
        alike = Counter((each["name"], _depth(each)) for each in busy)
        about, kind = own[0]["plan_step_description"], own[0]["plan_step_name"]
        self.found[step] = PlanOperator(
            name=self.names(re.sub("(?<=[a-z])(?=[A-Z])", " ", kind)),
            kind=kind,
            rows=sum(each.results for each in inputs) if inputs else results,
            results=results,
            row_bytes=sum(each["output_bytes"] for each in out) / max(results, 1.0),
            inputs=tuple(each.name for each in inputs),
            table=None if inputs else about.rpartition(".")[2] or None,
            parallel=max(alike.values(), default=1),
        )
        return self.found[step]

    def _inputs(self, step: int) -> list[int]:
        """Steps whose rows it reads, one that a hash table is made of last."""
        into: dict[int, bool] = {}
        for each in self.processors:
            if each["plan_step"] not in (0, step) and step in each["read_by"]:
                into[each["plan_step"]] = any(_builds(reader, step) for reader in each["readers"])
        return sorted(into, key=into.__getitem__)


def _depth(processor: dict[str, Any]) -> int:
    """In its step: processors of one name that follow each other are no threads."""
    step, readers = processor["plan_step"], processor["readers"]
    return 1 + max((_depth(one) for one in readers if one["plan_step"] == step), default=0)


def _builds(processor: dict[str, Any], step: int) -> bool:
    """Whether its rows go into a hash table within the step."""
    return processor["plan_step"] == step and (
        processor["name"].startswith("FillingRightJoinSide")
        or any(_builds(reader, step) for reader in processor["readers"])
    )

"""By which settings records differ that are compared."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .output import Part, latency, table

if TYPE_CHECKING:
    from ..sim.run.record import Record

SHOWN_MAX, VALUE_MAX = 8, 32
PROSE = {"name", "title", "source", "notes", "calibrated_on", "measurements"}
NAMED = ("machine", "workload")  # of another name, hardly any field is equal
MISSING = "–"
ABOVE, POLICY = ("machine", "plane"), re.compile(r"policies\.[^.]+\.policy")
TIME = re.compile(r"([\d.]+) ns")  # as times of a scenario are kept


def different_settings(records: Sequence[Record]) -> list[dict[str, Any]]:
    """``name`` (as after ``--set``) and ``values`` of each that is not the same in all records; of
    another machine or workload, its name alone. None: it is not set.
    """
    named = [part for part in NAMED if len({str(_name(record, part)) for record in records}) > 1]
    all_values = [
        {part: _name(record, part) for part in named}
        | {
            path: value
            for path, value in _leaves(record.settings)
            if path.partition(".")[0] not in named
        }
        for record in records
    ]
    paths = dict.fromkeys(path for values in all_values for path in values)
    rows = [{"name": path, "values": [one.get(path) for one in all_values]} for path in paths]
    return [row for row in rows if any(value != row["values"][0] for value in row["values"])]


def settings_parts(found: Sequence[Mapping[str, Any]], letters: Sequence[str]) -> Iterator[Part]:
    """A table of them, without what the table above has: machine, policies, plane."""
    # Another policy has other settings of its own.
    policies = [
        row["name"].removesuffix("policy") for row in found if POLICY.fullmatch(row["name"])
    ]
    rows = [
        row
        for row in found
        if row["name"] not in ABOVE and not row["name"].startswith(tuple(policies))
    ]
    if not rows:
        return
    yield ""
    cells = ([row["name"], *map(_written, row["values"])] for row in rows[:SHOWN_MAX])
    yield table(("setting", *letters), cells, long_names=True)
    if len(rows) > SHOWN_MAX:
        yield f"and {len(rows) - SHOWN_MAX} more: --json has all"


def _name(record: Record, part: str) -> Any:
    described = record.settings.get(part)
    return described.get("name") if isinstance(described, Mapping) else described


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of each; of a fact with its source, the value."""
    if isinstance(value, Mapping) and value and "value" not in value:
        for name, inner in value.items():
            if name not in PROSE:
                yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(one, (Mapping, list)) for one in value):
        for k, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{k}")
    else:
        yield path, value["value"] if isinstance(value, Mapping) and value else value


def _written(value: Any) -> str:
    text = MISSING if value is None else str(value)
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        text = shlex.join(value)
    if time := TIME.fullmatch(text):
        text = latency(float(time[1]))
    return text if len(text) <= VALUE_MAX else text[: VALUE_MAX - 1] + "…"

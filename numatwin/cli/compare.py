"""``numatwin compare``: compares records, each figure with its ratio to the first record's.

Figures of random runs have intervals, and so has how they differ (``sim/run/comparison.py``).
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .files import Records, record_folders
from .options import Json
from .output import Part, figure, latency, percent, present, table

if TYPE_CHECKING:
    from ..sim.run.record import Record

Row = dict[str, Any]

PATH_MAX = 36  # characters that fit beside the other columns of a terminal
IDENTITY = ("scenario", "scenario_hash", "policy", "plane", "seed", "replications", "warm_up_s")
ROUNDING = 1e-12  # relative; what differs by less is equal
SAME = 0.01  # relative; an interval around 0 within it is no difference, as 'regress' has it

# What a drop and a recovery are held against.
_LEVELS = {
    "best": "Recovery: to the best level that any of these records settles at before the next "
    "change;\nso the figures of a record depend on the records that it is compared with.",
    "own": "Recovery: to the level that each record itself settles at before the next change.",
}


def compare(records: Records, json: Json = False) -> None:
    """Compare records; ratios are to the first one."""
    from ..reports.comparison import compare_records
    from ..reports.decisions import decisions
    from ..sim.run.record import load_record

    paths = list(record_folders(records))
    if len(paths) < 2:
        raise typer.BadParameter("expected two records or more", param_hint="RECORD...")
    loaded = [load_record(path) for path in paths]
    rows, decided = compare_records(*loaded).rows, decisions(loaded)
    present(
        json,
        lambda: {
            "records": [_identity(*pair) for pair in zip(paths, loaded, strict=True)],
            "settings": different_settings(loaded),
            "rows": rows,
            "decisions": decided,
        },
        _parts(paths, loaded, [row for row in rows if _tells(row)], decided),
    )


def _parts(
    paths: list[Path], loaded: "list[Record]", rows: list[Row], decided: list[Row]
) -> Iterator[Part]:
    from ..reports.comparison import DIRECTIONS
    from ..reports.decisions import decision_lines
    from ..sim.run.comparison import noise_of

    count = len(loaded)  # named A, B … Z, then by number
    columns = [chr(65 + k) if count <= 26 else str(k + 1) for k in range(count)]
    yield table(
        ("", "scenario", "policy", "machine", "plane", "record"),
        (
            (letter, one.scenario, one.policy, one.machine["name"], one.plane, path)
            for letter, path, one in zip(columns, _short(paths), loaded, strict=True)
        ),
        left=6,
    )
    # Those of two scenarios hardly have a line in common.
    if len({one.scenario for one in loaded}) == 1:
        yield from settings_parts(different_settings(loaded), columns)
    yield ""
    yield table(("", *columns), (_cells(row) for row in rows))
    notes = [DIRECTIONS] if any(row["better"] for row in rows) else []
    notes += [_LEVELS[one] for one in dict.fromkeys(row["level"] for row in rows if "level" in row)]
    notes += [*_not_recovered(rows, columns), *decision_lines(decided, columns)]
    predictions = [loaded[one["prediction"]] for one in decided if one["prediction"] is not None]
    if noise := noise_of(predictions):
        notes.append(f"Note: the prediction's facts were measured on a {noise}")
    yield from (f"\n{note}" for note in [*notes, *_notes(loaded, columns, rows)])


def _tells(row: Mapping[str, Any]) -> bool:
    """Whether a row is worth a line: use that is nowhere above 0% is not."""
    if row["metric"].startswith("utilisation."):
        return any(value is not None and percent(value) != percent(0.0) for value in row["values"])
    return any(value is not None for value in [*row["values"], *row.get("notes", ())])


def _not_recovered(rows: list[Row], letters: list[str]) -> list[str]:
    """Which records end before it is known what they recover to."""
    from ..reports.comparison import NOT_BY_THE_END

    found = []
    for row in rows:
        of = [
            letter
            for letter, note in zip(letters, row.get("notes", ()), strict=False)
            if note == NOT_BY_THE_END
        ]
        if of:
            found.append(f"{', '.join(of)}: {row['metric'].split('.')[1]}: {NOT_BY_THE_END}.")
    return found


def _notes(records: "list[Record]", letters: list[str], rows: list[Row]) -> list[str]:
    """What intervals mean, where there are any."""
    from ..sim.run.comparison import level_of
    from ..sim.run.replications import unsettled, unsettled_notes

    random = [k for k, record in enumerate(records) if record.replications]
    if not random:
        return []
    runs = ", ".join(f"{letters[k]}: {records[k].replications}" for k in random)
    notes = [
        f"Intervals: {100 * level_of(records):g}%, each on its own, over replications ({runs})."
    ]
    found = [row["differences"] for row in rows]
    by_method: dict[str, list[str]] = {}
    for k, letter in enumerate(letters):
        of = [each[k]["paired"] for each in found if each[k] is not None]
        if of:
            method = _method(records[0], records[k], any(of)).format(letters[0])
            by_method.setdefault(method, []).append(letter)
    notes += [f"{', '.join(named)}: {method}." for method, named in by_method.items()]
    warnings = [unsettled(record.warnings) for record in records]
    return [*notes, *unsettled_notes(zip(letters, warnings, strict=True), ", ".join)]


def _method(first: "Record", other: "Record", paired: bool) -> str:
    """How a record was compared with the first one, in words."""
    if paired:
        return "compared pair by pair with {}'s replications, which have the same draws"
    if not first.replications:
        return "compared with {}, whose plane draws nothing at random"
    if not other.replications:
        return "compared with the mean of {}; its own plane draws nothing at random"
    return "compared with {} as independent samples (Welch)"


def _short(paths: list[Path]) -> list[str]:
    """The paths; of long ones what differs, without the folders that all of them are in."""
    texts = [str(path) for path in paths]
    if max(map(len, texts)) <= PATH_MAX:
        return texts
    parents = [path.parent.parts for path in paths]
    levels = enumerate(zip(*parents, strict=False))
    common = next((k for k, names in levels if len({*names}) > 1), min(map(len, parents)))
    return [str(Path("…", *path.parts[common:])) if common > 1 else str(path) for path in paths]


def _identity(path: Path, record: "Record") -> dict[str, Any]:
    return {
        "path": str(path),
        **{name: getattr(record, name) for name in IDENTITY},
        "policies": dict(record.policies),
        "machine": record.machine["name"],
    }


def _differences(found: Mapping[str, Any], first: float | None) -> str:
    """``×1.02 [1.01, 1.03]``; where the interval holds 0 ``cannot tell: ±25%``, or, if it is
    within ±1%, ``no difference within ±0.6%``; ``no difference`` where both do the same.
    """
    from ..reports.decisions import ratio_texts
    from ..reports.words import plain

    low, high = found["interval"]
    most, size = max(abs(low), abs(high)), abs(first or 0.0)
    if most <= ROUNDING * size:
        return "no difference"
    if low <= 0 <= high:
        if not size:
            return "cannot tell"
        said = "no difference within" if most <= SAME * size else "cannot tell:"
        return f"{said} ±{plain(100 * most / size, 2)}%"
    if found["ratio_interval"] is None or not first:
        return ""
    ratio, *bounds = ratio_texts(1 + found["value"] / first, *found["ratio_interval"])
    return f"{ratio} [{', '.join(bounds).replace('×', '')}]"


def _cells(row: Row) -> list[str]:
    from ..reports.comparison import arrow

    unit = row["unit"]
    cells = [re.sub(r"_(Bps|ns|s|J|W)\b", "", row["metric"]).replace(".", " ") + arrow(row)]
    notes = row.get("notes") or [None] * len(row["values"])
    for k, value in enumerate(row["values"]):
        cell = "not recovered" if notes[k] else figure(value, unit)
        if row["intervals"][k] is not None:
            low, high = row["intervals"][k]
            cell += f"\n[{figure(low, unit)}, {figure(high, unit)}]"
        if row["differences"][k] is not None:
            cell += f"\n{_differences(row['differences'][k], row['values'][0])}"
        elif k and row["ratios"][k] is not None:
            cell += f" ×{row['ratios'][k]:.2f}"
        cells.append(cell)
    return cells


SHOWN_MAX, VALUE_MAX = 8, 32
PROSE = {"name", "title", "source", "notes", "calibrated_on", "measurements"}
NAMED = ("machine", "workload")  # of another name, hardly any field is equal
MISSING = "–"
ABOVE, POLICY = ("machine", "plane"), re.compile(r"policies\.[^.]+\.policy")
TIME = re.compile(r"([\d.]+) ns")  # as times of a scenario are kept


def different_settings(records: "Sequence[Record]") -> list[dict[str, Any]]:
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


def _name(record: "Record", part: str) -> Any:
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

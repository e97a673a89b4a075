"""Measured throughputs of a user's own engine: CSV, a run a row; and the runs that these are of.

``operation``, ``throughput`` and at least one more column; ``threads`` (in all), ``nodes``,
``size`` (also ``keys`` or ``entries``), ``spread``, and any field of a scenario by its path, such
as ``workload.objects.index.value_size``. Empty lines and those that begin with ``#`` are left out.
Evidence for ``numatwin infer`` may also say which ``scenario`` ran on which ``machine``, the
``source`` that published it, and the bytes per second in ``memory_traffic`` and ``link_traffic``; a
row without any figure is a run that is thought of.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...inputs import Document, InputError, parse_quantity
from ...inputs.csv_rows import csv_rows, field_column
from ...inputs.fields import near
from ...inputs.text_lines import text_lines
from ...sim.run.scenario import Scenario, scenario_of_document
from ...sim.run.what_if import Predictor
from ...sim.systems.registry import system_of
from ..systems.registry import validation_of

SUFFIX = ".csv"
BYTES_MAX, ROWS_MAX = 2**20, 500
COUNTS = {"threads": "threads", "nodes": "nodes", "size": "size", "keys": "size", "entries": "size"}
COUNT_MAX = 2**48
KNOWN = (*COUNTS, "operation", "throughput", "spread")
REQUIRED = ("operation", "throughput")
TRAFFIC = {"memory_traffic": "memory", "link_traffic": "links"}
EVIDENCE = ("scenario", "machine", "source", *TRAFFIC)
SPREAD_MAX = 1.0
# Relative standard deviation of a figure of which none is noted.
ASSUMED_SPREAD = 0.03


@dataclass(frozen=True)
class EngineRow:
    """A measured run: of ``operation`` alone, operations per second in all; not a number of
    evidence that has none.

    ``spread``: its relative standard deviation, None where that is not told. ``fields``: of the
    scenario, by path. ``columns``: by name of a column, where its field begins, from 1.
    """

    file: str
    line: int
    columns: Mapping[str, int]
    operation: str
    throughput: float
    threads: int | None = None
    nodes: int | None = None
    size: int | None = None
    spread: float | None = None
    fields: tuple[tuple[str, str], ...] = ()
    traffic: tuple[tuple[str, float], ...] = ()
    """By way (``memory``, ``links``)."""
    scenario: str = ""
    machine: str = ""
    source: str = ""

    @property
    def place(self) -> tuple[object, ...]:
        """What was measured: rows with the same are repetitions."""
        return (self.operation, self.threads, self.nodes, self.size, self.fields)

    @property
    def label(self) -> str:
        """What was measured, in words."""
        counts = (("threads", self.threads), ("nodes", self.nodes), ("keys", self.size))
        words = [
            f"{count:,} {name if count != 1 else name[:-1]}" for name, count in counts if count
        ]
        words += [f"{path.rpartition('.')[2]} {value}" for path, value in self.fields]
        return ", ".join([self.operation, *words])

    def error(
        self, column: str, message: str, token: str | None = None, expected: str | None = None
    ) -> InputError:
        """The InputError for a column of this row; for the whole row where it has none such."""
        size = self.columns.get(column, 1)
        return InputError(message, self.file, self.line, size, token, expected)


def load_rows(path: Path, evidence: bool = False) -> tuple[EngineRow, ...]:
    """The rows of the file at ``path``; raises InputError with line and column. ``evidence``: with
    the columns and the rows that only evidence has.
    """
    name = str(path)
    try:
        lines = text_lines(path, BYTES_MAX)
    except OSError as failure:
        raise InputError(f"cannot be read: {failure.strerror}", name) from None
    counted = ("" if not line.strip() or line.lstrip().startswith("#") else line for line in lines)
    rows = csv_rows(counted, name)
    header = next(rows, None)
    if header is None:
        raise InputError("empty file", name, expected=f"a header such as {','.join(KNOWN[:3])},…")
    names = _checked_header(header[1], name, header[0], evidence)
    found = []
    for line, fields in rows:
        found.append(_row(names, fields, name, line, evidence))
        if len(found) > ROWS_MAX:
            raise InputError("too many rows", name, line, expected=f"at most {ROWS_MAX}")
    if not found:
        raise InputError("no rows", name, header[0] + 1, expected="a measured run a row")
    return tuple(found)


def _checked_header(fields: list[str], name: str, line: int, evidence: bool) -> list[str]:
    known = (*KNOWN, *EVIDENCE) if evidence else KNOWN
    names, meant = [field.strip() for field in fields], dict[str, str]()

    def refused(
        message: str, expected: str, index: int = 0, token: str | None = None
    ) -> InputError:
        return InputError(message, name, line, field_column(fields, index), token, expected)

    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(fields) == 1 and separator in fields[0]:
            raise refused(f"columns divided by {called}", "commas")
    for index, column in enumerate(names):
        if column not in known and "." not in column:
            expected = near(column, known) or f"one of {', '.join(known)}, or the path of a field"
            raise refused("unknown column", expected, index, column)
        counted = COUNTS.get(column, column)
        if counted in meant:
            other = meant[counted]
            twice = "the same column twice" if other == column else f"{other} says it too"
            raise refused(twice, "each once", index, column)
        meant[counted] = column
    for column in REQUIRED:
        if column not in names:
            raise refused(f"no column '{column}'", f"also {column}", token=",".join(names))
    if not evidence and not any(column in COUNTS or "." in column for column in names):
        message, expected = "no column says how the runs differ", "also threads, nodes or keys"
        raise refused(message, expected, token=",".join(names))
    return names


def _row(names: list[str], fields: list[str], name: str, line: int, evidence: bool) -> EngineRow:
    columns = {column: field_column(fields, index) for index, column in enumerate(names)}
    texts = {column: text.strip() for column, text in zip(names, fields, strict=True)}

    def refused(column: str, message: str, expected: str) -> InputError:
        return InputError(
            f"{column}: {message}", name, line, columns[column], texts[column], expected
        )

    counts: dict[str, int] = {}
    for column, text in texts.items():
        if column in COUNTS and text:
            plain = text.replace("_", "")
            if not (plain.isascii() and plain.isdigit() and 0 < int(plain) <= COUNT_MAX):
                raise refused(column, "not a count", "a whole number above 0")
            counts[COUNTS[column]] = int(plain)
    if not texts["operation"]:
        raise refused("operation", "missing", "an operation of the scenario, such as lookup")
    given = texts["throughput"] or not evidence
    throughput = _rate(texts["throughput"]) if given else math.nan
    if throughput is None:
        expected = "operations per second, above 0, such as 12500000"
        raise refused("throughput", "not a throughput", expected)
    traffic = []
    for column, way in TRAFFIC.items():
        if texts.get(column):
            Bps = _rate(texts[column], "bandwidth")
            if Bps is None:
                raise refused(column, "not a bandwidth", "bytes per second, such as 12.5 GB/s")
            traffic.append((way, Bps))
    spread = _spread(texts["spread"], throughput) if texts.get("spread") else None
    if spread is None and texts.get("spread"):
        expected = "the standard deviation, in operations per second or in percent, such as 2%"
        raise refused("spread", "not a spread", expected)
    return EngineRow(
        name,
        line,
        columns,
        texts["operation"],
        throughput,
        spread=spread,
        fields=tuple((path, text) for path, text in texts.items() if "." in path and text),
        traffic=tuple(traffic),
        scenario=texts.get("scenario", ""),
        machine=texts.get("machine", ""),
        source=texts.get("source", ""),
        **counts,
    )


def _rate(text: str, dimension: str = "rate") -> float | None:
    """Per second: a number with its unit, or a plain one of operations; None for anything else, and
    0 or less.
    """
    found = math.nan
    with suppress(ValueError):
        found = parse_quantity(text, dimension)
    with suppress(ValueError):
        found = float(text) if dimension == "rate" else found
    return found if 0.0 < found < math.inf else None


def _spread(text: str, throughput: float) -> float | None:
    """Relative to the throughput; None where it is none."""
    found = (_rate(text.removesuffix("%")) or math.nan) / (100.0 if text[-1] == "%" else throughput)
    return found if 0.0 < found <= SPREAD_MAX else None


@dataclass(frozen=True)
class OwnEngine:
    """How a user's own engine of a system's kind is fitted to its throughputs.

    ``scenario``: what runs where the user names no other. ``settings``: of that scenario on the
    user's machine and a row, the settings that make it the row's run; raises InputError.
    """

    scenario: str
    settings: Callable[[Scenario, EngineRow], Sequence[str]]


def own_engine(whole: Scenario) -> OwnEngine | None:
    """How engines of users are fitted, of the scenario's system."""
    calibration = validation_of(system_of(whole.system).name).calibration
    found: OwnEngine | None = None if calibration is None else calibration.load().own
    return found


def run_of_row(
    base: Document, settings: Sequence[str], machine: str | None, whole: Scenario, row: EngineRow
) -> Scenario:
    """The scenario that a row is of; raises InputError with the row's place."""
    operations = whole.workload.at(0.0).operations
    if row.operation not in operations:
        raise row.error(
            "operation",
            f"scenario {whole.name} has no such operation",
            row.operation,
            f"one of {', '.join(operations)}, or another scenario",
        )
    lines = [
        f"workload.operations.{name}.share={float(name == row.operation):g}" for name in operations
    ]
    lines += _counted(whole, row)
    try:
        run = scenario_of_document(
            base,
            (*settings, *lines, *(f"{path}={value}" for path, value in row.fields)),
            machine=machine,
            plane="flow" if "flow" in system_of(whole.system).planes else None,
        )
        Predictor(run)  # which tells whether the data fit
        return run
    except InputError as failure:
        path = next((p for p, _ in row.fields if p in f"{failure.file} {failure.message}"), "")
        raise row.error(path, f"cannot be run: {failure}") from None


def _counted(whole: Scenario, row: EngineRow) -> Sequence[str]:
    """What a row's threads, nodes and size mean in the scenario."""
    own = own_engine(whole)
    if own is not None:
        return own.settings(whole, row)
    for column, count in (("threads", row.threads), ("nodes", row.nodes), ("size", row.size)):
        if count is not None:
            message = f"{column}: systems of this kind say it by fields of the scenario"
            raise row.error(column, message, str(count), "a column such as system.nodes")
    return ()

"""Output for people (tables, numbers with units) and for programs (JSON)."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

from ..inputs.json_text import json_text

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..reports.predicted_measured import Cell
    from ..reports.predicted_measured import Table as ReportTable

WIDTH_WITHOUT_TERMINAL = 100
WIDTH_MAX = 1_000
ROWS_MAX = 40  # of a report's table
_PADDING = re.compile(r" +$", re.MULTILINE)
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Whole:
    """A table that is not wrapped off a terminal, where lines have no end."""

    table: Table


Part: TypeAlias = "str | Text | Table | Whole"
"""Of what a command says: a line, a paragraph, a table."""


Progress: TypeAlias = Callable[..., None]
"""Takes the part of the work that is done, 0 to 1, and what is being done where that changes."""


def present(json: bool, plain: Callable[[], Any], parts: Iterable[Part]) -> None:
    """A command's answer: ``plain`` as one JSON object, or ``parts`` for people."""
    if json:
        print_json(plain())
    else:
        show(parts)


def show(parts: Iterable[Part], to: Console | None = None) -> None:
    """Prints parts as they come. A line is not broken: the terminal does that."""
    to = to or console()
    width = to.width
    for part in parts:
        if isinstance(part, Whole):
            to.width = width if to.is_terminal else WIDTH_MAX
            to.print(part.table)
            to.width = width
        else:
            to.print(part, soft_wrap=isinstance(part, str))


def print_json(value: Any) -> None:
    """One JSON object on standard output; in ASCII, so that no locale can spoil it."""
    print(json_text(value))


def console(*, stderr: bool = False) -> Console:
    """A rich console; off a terminal its width is fixed, and no line ends in blanks, for scripts to
    read.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    whole = stream.isatty()
    return Console(
        file=stream if whole else cast("IO[str]", _WithoutPadding(stream)),
        width=None if whole else WIDTH_WITHOUT_TERMINAL,
        highlight=False,
        emoji=False,
        markup=False,
    )


class _WithoutPadding:
    """A stream that gets lines without the blanks by which tables fill their last column."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """What rich prints is whole lines."""
        self._stream.write(_PADDING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A progress bar on standard error, where that is a terminal."""
    with progress_bars(what) as (tell,):
        yield tell


@contextmanager
def progress_bars(*titles: str) -> Iterator[tuple[Progress, ...]]:
    """One for each of the consecutive ``titles``; each is visible while it progresses."""
    if not sys.stderr.isatty():
        yield (lambda *_: None,) * len(titles)
        return
    from rich.progress import Progress as Display

    with Display(console=console(stderr=True), transient=True) as display:
        tasks = [display.add_task(what, total=1.0, visible=what == titles[-1]) for what in titles]

        def progress_of(at: int) -> Progress:
            def tell(share: float, part: str | None = None, /) -> None:
                display.update(tasks[at], completed=share, description=part, visible=True)
                for other in tasks[:at] if share < 1.0 else ():
                    display.update(other, visible=False)
                for other in tasks[at + 1 :]:
                    display.update(other, visible=share >= 1.0)

            return tell

        yield tuple(map(progress_of, range(len(titles))))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    long_names: bool = False,
    whole: bool = False,
) -> Table:
    """A plain table; the first ``left`` columns are text, the others numbers.

    The first one names the rows: it is never cut where others can be wrapped; ``long_names``, such
    as paths of fields, are broken first, and alone where the others are to stay ``whole``.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for k, column in enumerate(columns):
        made.add_column(
            Text(column),
            justify="left" if k < left else "right",
            no_wrap=whole if k else not long_names,
            overflow="fold" if k or long_names else "ellipsis",  # a path is broken, not cut
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def whole_table(columns: Sequence[str], rows: Iterable[Sequence[str]], **options: Any) -> Whole:
    """A ``table`` of long cells."""
    return Whole(table(columns, rows, **options))


def report_parts(tables: Iterable[ReportTable], most: int | None = ROWS_MAX) -> Iterator[Part]:
    """Those of a report that have rows, each below its title; of each, ``most`` rows."""

    def text(cell: Cell) -> str:
        noted = f"{cell.text} ({cell.note})" if cell.note else cell.text
        return f"{noted} *" if cell.bad else noted

    for one in tables:
        if one.rows:
            yield f"\n{one.title}\n"
            rows = [list(map(text, row)) for row in one.rows[:most]]
            yield whole_table(one.columns, rows, left=one.texts)
        if most is not None and len(one.rows) > most:
            yield f"… and {len(one.rows) - most} more: --json or --report has them all"


def facts(named: Iterable[tuple[str, str | None]]) -> Whole:
    """Names and values in two columns; a None value leaves its row out."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column()
    for name, value in named:
        if value is not None:
            made.add_row(Text(name), Text(value))
    return Whole(made)


def wrapped(text: str) -> Text:
    """A paragraph, broken at the width of the output."""
    from rich.text import Text

    return Text(text)


def below(notes: Sequence[str]) -> list[Part]:
    """Notes below a result, a line each."""
    return ["", *notes] if notes else []


def written_to(files: Mapping[str, Path | None]) -> Iterator[Part]:
    """Where the files of a result are, each by what it is; None was not written."""
    yield from (f"\n{what}: {path}" for what, path in files.items() if path is not None)


def number(value: float | None, unit: str = "") -> str:
    """``2.31 G/s``, ``122.9 GB/s``: four digits, a decimal prefix; ``–`` if unknown."""
    if value is None or not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.4g}")
    for scale, prefix in _PREFIXES:
        if abs(rounded) >= scale:
            return f"{rounded / scale:.4g} {prefix}{unit}"
    return f"{rounded:.4g} {unit}".rstrip()


def signed(value: float, size: str) -> str:
    """Of a ``value`` whose ``size`` is written already, the same with its sign; none where no more
    than zeros is left of it.
    """
    nothing = not any(digit in size for digit in "123456789")
    return size if nothing else ("−" if value < 0 else "+") + size


def binary_size(size_bytes: float) -> str:
    """``8 GiB``, ``24 MiB``; ``–`` if unknown."""
    from ..inputs.quantities import size_text

    return size_text(size_bytes)


def latency(value_ns: float | None) -> str:
    """``129 ns``, ``4.2 µs``, ``1.3 ms``; ``–`` if unknown."""
    from ..inputs.quantities import time_text

    if value_ns is None or not math.isfinite(value_ns):
        return "–"
    return time_text(value_ns * 1e-9)


def figure(value: float | None, unit: str) -> str:
    """A metric's value: a time, a share (unit ``1``), or a number with its unit."""
    if unit in ("ns", "s"):
        return latency(value if unit == "ns" or value is None else value * 1e9)
    return percent(value) if unit == "1" else number(value, unit.removeprefix("1"))


def percent(value: float | None) -> str:
    """``93.6%``; ``–`` if unknown."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f}%"

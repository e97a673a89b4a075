"""Recorded key histograms: CSV with the header ``key_from,key_to,count``, a range of keys a row.

``key_to`` is the first key after the range. Ranges rise and do not overlap; nobody asked for the
keys in the gaps.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..inputs import InputError
from ..inputs.text_lines import text_lines
from .keys import Recorded

HEADER = ["key_from", "key_to", "count"]
BYTES_MAX = 64 * 2**20
ROWS_MAX = 1_000_000


def load_histogram(path: Path, keys: int) -> Recorded:
    """The histogram in the file at ``path`` over ``keys`` keys; raises InputError with the line.

    OSError where the file cannot be read.
    """
    name = str(path)
    lines = text_lines(path, BYTES_MAX)
    rows: list[tuple[int, int, float]] = []
    for line, fields in _rows(lines, name):
        rows.append(_row(fields, rows[-1][1] if rows else 0, keys, name, line))
        if len(rows) > ROWS_MAX:
            raise InputError("too many rows", name, line, expected=f"at most {ROWS_MAX:,}")
    if not any(count for _, _, count in rows):
        raise InputError(
            "no accesses", name, len(lines) or 1, expected="a row with a count above 0"
        )
    table = np.array(rows)
    return Recorded(keys, table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def _rows(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """The line and the fields of each row after the header; empty lines are passed over."""
    reader = csv.reader(lines, strict=True)
    try:
        header = next(reader, [])
        if [field.strip() for field in header] != HEADER:
            raise InputError(
                "not a key histogram",
                name,
                1,
                1,
                ",".join(header),
                f"the header {','.join(HEADER)}",
            )
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as failure:
        raise InputError(f"not CSV: {failure}", name, reader.line_num) from None


def _row(fields: list[str], above: int, keys: int, name: str, line: int) -> tuple[int, int, float]:
    """One row, whose range must begin at ``above`` or higher and end within ``keys``."""

    def refused(index: int, message: str, expected: str) -> InputError:
        column = sum(len(field) + 1 for field in fields[:index]) + 1
        return InputError(
            f"{HEADER[index]}: {message}", name, line, column, fields[index], expected
        )

    if len(fields) != len(HEADER):
        raise InputError("wrong row", name, line, 1, ",".join(fields), f"{len(HEADER)} fields")
    bounds: list[int] = []
    for index, (low, high) in enumerate(((above, keys - 1), (above + 1, keys))):
        text = fields[index].strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise refused(index, "not a key", "a whole number")
        bounds.append(int(text))
        if index:
            low = bounds[0] + 1
        if not low <= bounds[index] <= high:
            raise refused(index, "out of order or of the domain", f"{low} to {high}")
    try:
        count = float(fields[2])
    except ValueError:
        count = math.nan
    if not (math.isfinite(count) and count >= 0):
        raise refused(2, "not a count", "a number of at least 0")
    return bounds[0], bounds[1], count

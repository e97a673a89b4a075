"""Rows of CSV that others wrote."""

import csv
from collections.abc import Iterable, Iterator, Sequence

from .errors import InputError


def csv_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Line and fields of each row, the header first; empty lines are left out.

    Raises InputError for what is no CSV, and for a row that is not as long as the header.
    """
    reader, wanted = csv.reader(lines, strict=True), 0
    try:
        for fields in filter(None, reader):
            wanted = wanted or len(fields)
            if len(fields) != wanted:
                found, line = ",".join(fields), reader.line_num
                raise InputError("wrong row", name, line, 1, found, f"{wanted} fields")
            yield reader.line_num, fields
    except csv.Error as failure:
        raise InputError(f"not CSV: {failure}", name, reader.line_num) from None


def field_column(fields: Sequence[str], index: int) -> int:
    """The column of the line where a field begins, from 1."""
    return sum(len(field) + 1 for field in fields[:index]) + 1

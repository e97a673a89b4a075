"""Lines of a text file of limited size."""

from __future__ import annotations

from pathlib import Path

from .errors import InputError
from .regular import check_regular


def text_lines(path: Path, bytes_max: int) -> list[str]:
    """The lines of a file in UTF-8; raises InputError, and OSError where it cannot be read."""
    check_regular(path)
    with open(path, "rb") as stream:
        content = stream.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise InputError(f"too large: expected at most {bytes_max:,} bytes", str(path))
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        raise InputError("not text", str(path), line, expected="UTF-8") from None

"""The header of a member of a tar archive: a block of 512 bytes (POSIX.1-1988, GNU, V7).

Read here rather than with ``tarfile.TarInfo``, which takes several times as long: it reads a dozen
fields that are of no use here, and a saved sysfs tree has a hundred thousand members.
"""

from __future__ import annotations

import tarfile
from typing import NamedTuple

BLOCK = 512


class TarHeader(NamedTuple):
    """What a header says. ``type`` is one of tarfile's ``*TYPE``."""

    name: str
    size: int
    type: bytes
    link: str


def read_header(block: bytes) -> TarHeader:
    """The header in ``block``; raises ValueError where it is none."""
    if len(block) != BLOCK or _number(block[148:156]) not in _checksums(block):
        raise ValueError("does not fit its checksum")
    size, kind, name = _number(block[124:136]), block[156:157], _text(block[:100])
    if size < 0:
        raise ValueError("a negative size")
    if kind == tarfile.AREGTYPE:  # V7 has no type for folders
        kind = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
    if block[257:263] == b"ustar\0" and block[345]:
        name = f"{_text(block[345:500])}/{name}"
    return TarHeader(name, size, kind, _text(block[157:257]))


def _checksums(block: bytes) -> tuple[int, int]:
    """The sum of the bytes, the checksum's own as blanks; some old tars took them as signed."""
    rest = block[:148] + block[156:]
    unsigned = 256 + sum(rest)
    if rest.isascii():
        return unsigned, unsigned
    return unsigned, unsigned - 256 * sum(byte > 127 for byte in rest)


def _number(digits: bytes) -> int:
    """Octal digits, or the bytes of a large number behind a byte of 0x80 (0xff: a negative one)."""
    if digits[0] >= 0x80:
        return int.from_bytes(digits[1:]) if digits[0] == 0x80 else -1
    return int(digits.partition(b"\0")[0].strip() or b"0", 8)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")

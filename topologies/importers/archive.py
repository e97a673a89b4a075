"""Tar archives, read as a stream into memory, never unpacked to disk.

The loop over the members is written here because ``tarfile`` itself reads extended headers and
sparse maps of any size into memory and can be made to run forever by a crafted one; the members of
a saved sysfs tree need none of that.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO

from ...inputs import InputError

BUFFER_BYTES = 256 * 1024
BLOCK = tarfile.BLOCKSIZE
_LONG_HEADER_MAX = 64 * 1024

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x5d\x00\x00", "lzma"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


@dataclass(frozen=True)
class ArchiveLimits:
    """How much an archive may hold. A full sysfs tree has some 300 KiB and 300 files per CPU.

    ``kept_bytes_max``: of the files that are of use; ``large_bytes_max``: of all members above 64
    KiB, which a sysfs tree hardly has, so that a decompression bomb is stopped early.
    """

    members_max: int = 400_000
    total_bytes_max: int = 1 << 30
    large_bytes_max: int = 64 << 20
    kept_bytes_max: int = 64 << 20


@dataclass(frozen=True)
class Members:
    """What is in an archive: contents by path, and targets of links by path (no leading ``./``)."""

    files: dict[str, bytes]
    links: dict[str, str]


def plain_stream(compressed: io.BufferedReader[Any], name: str) -> io.BufferedReader[Any]:
    """``compressed`` without its compression, if it has one, and with a buffer to look ahead."""
    with damage_reported(name):
        head = compressed.peek(8)
    kind = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    opened: Any
    if kind == "gzip":
        opened = gzip.GzipFile(fileobj=compressed)
    elif kind == "bzip2":
        opened = bz2.BZ2File(compressed)
    elif kind in ("xz", "lzma"):
        opened = lzma.LZMAFile(compressed)  # noqa: SIM115 - closed with its stream
    elif kind == "zstd":
        opened = _zstd(name).ZstdFile(compressed)
    else:
        return compressed
    return io.BufferedReader(opened, BUFFER_BYTES)


def _zstd(name: str) -> Any:
    """The standard library's module (Python 3.14), else its backport."""
    for module in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return import_module(module)
    raise InputError("compressed with zstd: the package backports.zstd reads it", name)


@contextlib.contextmanager
def damage_reported(name: str) -> Iterator[None]:
    """Turns what a read may raise, damaged compression above all, into an InputError."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as failure:
        raise _damaged(name, failure) from None
    except Exception as failure:  # ZstdError, whose module may not be there to name it
        if type(failure).__name__ != "ZstdError":
            raise
        raise _damaged(name, failure) from None


def _damaged(name: str, failure: Exception) -> InputError:
    if isinstance(failure, OSError) and failure.strerror:
        return InputError(f"cannot be read: {failure.strerror}", name)
    return InputError(f"damaged or cut off: {str(failure).rstrip('.')}", name)


def read_exactly(stream: BinaryIO, size: int, name: str) -> bytes:
    """The next ``size`` bytes, fewer at the end; raises InputError for damaged compression."""
    parts = []
    with damage_reported(name):
        while size > 0 and (part := stream.read(min(size, 1 << 20))):
            parts.append(part)
            size -= len(part)
    return b"".join(parts)


def is_tar(head: bytes) -> bool:
    """Whether ``head``, the first bytes of a stream, begins with a tar header."""
    try:
        _read_header(head[:BLOCK])
    except tarfile.HeaderError:
        return False
    return True


def _read_header(block: bytes) -> tarfile.TarInfo:
    return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")


def read_members(
    stream: BinaryIO,
    name: str,
    wanted: Callable[[str], bool],
    limits: ArchiveLimits | None = None,
) -> Members:
    """The ``wanted`` members (by path) of the tar archive in ``stream``.

    Raises InputError for an archive that is cut off, damaged or beyond ``limits``, and for a member
    with an absolute path or one that leads upward.
    """
    return _Reader(stream, name, wanted, limits or ArchiveLimits()).members()


class _Reader:
    def __init__(
        self, stream: BinaryIO, name: str, wanted: Callable[[str], bool], limits: ArchiveLimits
    ) -> None:
        self._stream, self._name, self._wanted, self._limits = stream, name, wanted, limits
        self._total = self._large = self._kept = 0
        self._files: dict[str, bytes] = {}
        self._links: dict[str, str] = {}

    def members(self) -> Members:
        count = 0
        changes: dict[str, str] = {}  # what extended headers say of the next member
        while (header := self._header()) is not None:
            count += 1
            if count > self._limits.members_max:
                raise self._refused(f"more than {self._limits.members_max:,} members")
            if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
                text = self._text(header).rstrip("\0")
                is_name = header.type == tarfile.GNUTYPE_LONGNAME
                changes["path" if is_name else "linkpath"] = text
            elif header.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE):
                records = self._records(header)
                if header.type != tarfile.XGLTYPE:
                    changes |= records
            else:
                self._member(header, changes)
                changes = {}
        return Members(self._files, self._links)

    def _member(self, header: tarfile.TarInfo, changes: dict[str, str]) -> None:
        path = self._checked(changes.get("path", header.name))
        size = header.size
        if "size" in changes:
            size = self._size(changes["size"])
        is_file = header.type in tarfile.REGULAR_TYPES
        if header.type == tarfile.GNUTYPE_SPARSE or any(
            key.startswith("GNU.sparse") for key in changes
        ):
            raise self._refused(f"a sparse member '{path}'")
        if header.type in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            if self._wanted(path):
                target = changes.get("linkpath", header.linkname)
                if header.type == tarfile.LNKTYPE:  # names its target from the top of the archive
                    target = "../" * path.count("/") + self._checked(target)
                self._links[path] = target
        elif is_file and self._wanted(path):
            self._kept += size
            if self._kept > self._limits.kept_bytes_max:
                raise self._refused("its files are too large for a sysfs tree")
            self._files[path] = self._data(size)
            return
        if is_file or header.type not in tarfile.SUPPORTED_TYPES:
            self._skip(size)

    def _header(self) -> tarfile.TarInfo | None:
        """The next header, None at the archive's end mark."""
        block = self._read(BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            header = _read_header(block)
        except tarfile.HeaderError:
            raise self._refused("damaged: a header does not fit its checksum") from None
        if header.size < 0:
            raise self._refused("damaged: a member of negative size")
        return header

    def _text(self, header: tarfile.TarInfo) -> str:
        if header.size > _LONG_HEADER_MAX:
            raise self._refused("an extended header is too long")
        return self._data(header.size).decode("utf-8", "surrogateescape")

    def _records(self, header: tarfile.TarInfo) -> dict[str, str]:
        """The records ``<length> <key>=<value>\\n`` of a POSIX extended header."""
        rest = self._text(header).encode("utf-8", "surrogateescape").rstrip(b"\0")
        records = {}
        while rest:
            length, space, _ = rest[:20].partition(b" ")
            size = int(length) if length.isdigit() else 0
            record = rest[len(length) + 1 : size]
            key, equals, value = record.partition(b"=")
            if not space or not equals or not record.endswith(b"\n") or size > len(rest):
                raise self._refused("damaged: an extended header is unreadable")
            records[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
            rest = rest[size:]
        return records

    def _size(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self._refused("damaged: the size of a member is unreadable")
        return int(text)

    def _checked(self, path: str) -> str:
        """The path without ``./`` and final slash; refuses one that leads out of the archive."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or "\0" in path:
            raise InputError("a member's path leads out of the archive", self._name, token=path)
        return "/".join(parts)

    def _data(self, size: int) -> bytes:
        self._account(size)
        data = self._read(size)
        self._read(-size % BLOCK)
        return data

    def _skip(self, size: int) -> None:
        self._account(size)
        left = size + -size % BLOCK
        while left:
            left -= len(self._read(min(left, 1 << 20)))

    def _account(self, size: int) -> None:
        if size > 64 * 1024:
            self._large += size
            if self._large > self._limits.large_bytes_max:
                raise self._refused("its files are too large for a sysfs tree")

    def _read(self, size: int) -> bytes:
        self._total += size
        if self._total > self._limits.total_bytes_max:
            raise self._refused(f"more than {self._limits.total_bytes_max >> 20:,} MiB unpacked")
        data = read_exactly(self._stream, size, self._name)
        if len(data) < size:
            raise self._refused("cut off: it has no end mark")
        return data

    def _refused(self, why: str) -> InputError:
        return InputError(f"not a usable archive: {why}", self._name)

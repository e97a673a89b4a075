"""Tar archives, unpacked within limits; files without their compression."""

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
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from ...inputs import InputError

BUFFER_BYTES = 256 * 1024
BLOCK = tarfile.BLOCKSIZE
_LONG_HEADER_MAX = 64 * 1024
_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
             tarfile.SOLARIS_XHDTYPE)  # fmt: skip

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
        tarfile.TarInfo.frombuf(head[:BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def unpack(
    stream: BinaryIO,
    name: str,
    folder: Path,
    wanted: Callable[[str], object],
    limits: ArchiveLimits | None = None,
) -> None:
    """Unpacks the ``wanted`` members (by path) of the tar archive in ``stream`` into ``folder``.

    Links are made last, so that nothing is written through one; they may lead anywhere. Raises
    InputError for an archive that is cut off, damaged or beyond ``limits``, and for a member with
    an absolute path or one that leads upward.
    """
    bounded = _Bounded(stream, name, limits or ArchiveLimits())
    try:
        # It reads by the method `read` alone, of which its types ask more.
        source, headers = cast(BinaryIO, bounded), bounded.headers()
        with tarfile.open(fileobj=source, mode="r|", tarinfo=headers, encoding="utf-8") as archive:
            links = _unpacked(archive, bounded, folder, wanted)
        for path in links:
            path.parent.mkdir(parents=True, exist_ok=True)
        for path, target in links.items():
            path.symlink_to(target)
    except (tarfile.TarError, ValueError, OverflowError) as failure:
        what = "cut off: it has no end mark" if bounded.ended else f"damaged: {failure}"
        raise bounded.refused(what) from None
    except OSError as failure:
        raise bounded.refused(f"cannot be unpacked: {failure.strerror}") from None


def _unpacked(
    archive: tarfile.TarFile, bounded: _Bounded, folder: Path, wanted: Callable[[str], object]
) -> dict[Path, str]:
    """Writes files; what is left are links, by place and target."""
    links: dict[Path, str] = {}
    while (member := archive.next()) is not None:
        vars(archive)["members"].clear()  # else it keeps them all
        bounded.count(member)
        path = bounded.checked(member.name)
        if not wanted(path):
            continue
        if member.issym():
            links[folder / path] = member.linkname
        elif member.islnk():  # names its target from the top of the archive
            links[folder / path] = "../" * path.count("/") + bounded.checked(member.linkname)
        elif (file := archive.extractfile(member)) is not None:
            bounded.keep(member.size)
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(file.read())
    if not bounded.marked:
        raise bounded.refused("damaged: a header is unreadable")
    return links


class _Bounded:
    """An archive's bytes, read within limits. ``ended``: there are no more; ``marked``: the last
    header was its end mark."""

    def __init__(self, stream: BinaryIO, name: str, limits: ArchiveLimits) -> None:
        self._stream, self._name, self._limits = stream, name, limits
        self._total = self._members = self._large = self._kept = 0
        self.ended = self.marked = False

    def read(self, size: int) -> bytes:
        data = read_exactly(self._stream, size, self._name)
        self.ended = self.ended or len(data) < size
        self._total += len(data)
        if self._total > self._limits.total_bytes_max:
            raise self.refused(f"more than {self._limits.total_bytes_max >> 20:,} MiB unpacked")
        return data

    def headers(self) -> type[tarfile.TarInfo]:
        """Of this archive: refused where they would take much memory or are of no use here."""
        bounded = self

        class Header(tarfile.TarInfo):
            @classmethod
            def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
                """Raises InputError for a header that is refused."""
                bounded.marked = len(buf) == BLOCK and not buf.strip(b"\0")
                if len(buf) < BLOCK:
                    raise bounded.refused("cut off: it has no end mark")
                header = super().frombuf(buf, encoding, errors)
                if header.type in _EXTENDED and header.size > _LONG_HEADER_MAX:
                    raise bounded.refused("an extended header is too long")
                if header.type == tarfile.GNUTYPE_SPARSE:
                    raise bounded.refused(f"a sparse member '{header.name}'")
                if header.size < 0:
                    raise bounded.refused("damaged: a member of negative size")
                return header

        return Header

    def count(self, member: tarfile.TarInfo) -> None:
        """Counts a member; raises InputError where there are too many, or too large ones."""
        self._members += 1
        if self._members > self._limits.members_max:
            raise self.refused(f"more than {self._limits.members_max:,} members")
        if any(key.startswith("GNU.sparse") for key in member.pax_headers):
            raise self.refused(f"a sparse member '{member.name}'")
        self._large += member.size if member.size > 64 * 1024 else 0
        if self._large > self._limits.large_bytes_max:
            raise self.refused("its files are too large for a sysfs tree")

    def keep(self, size: int) -> None:
        self._kept += size
        if self._kept > self._limits.kept_bytes_max:
            raise self.refused("its files are too large for a sysfs tree")

    def checked(self, path: str) -> str:
        """The path without ``./`` and final slash; refuses one that leads out of the archive."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or "\0" in path:
            raise InputError("a member's path leads out of the archive", self._name, token=path)
        return "/".join(parts)

    def refused(self, why: str) -> InputError:
        return InputError(f"not a usable archive: {why}", self._name)

"""A saved or live system seen as a tree of small text files."""

import errno
import os
import re
import stat
from collections import deque
from pathlib import Path
from typing import BinaryIO

from ...inputs import InputError
from ...inputs.number_sets import parse_list, parse_mask
from .archive import ArchiveLimits, unpack

_FILE_BYTES_MAX = 16 << 20  # /proc/cpuinfo of a large machine has a few MiB, any sysfs file KiB
_TOO_MANY = "a loop of links, or too long a chain of them"
_DEPTH_MAX = 8  # how far below a folder of the user's the tree may begin
_FOLDERS_MAX = 20_000
_LISTS = ("list", "/online", "/possible")  # files of numbers as such; others are masks

# What is of use of an archive.
_WANTED = re.compile(
    r"(?:.*/)?(?:devices/system/(?:cpu|node)(?:/.*)?|proc/(?:cpuinfo|meminfo)"
    r"|(?:class|devices/virtual)/dmi(?:/id(?:/(?:sys|board)_vendor)?)?"
    r"|firmware/acpi/tables/(?:HMAT|SRAT))",
    re.DOTALL,
)


class Tree:
    """Files in a folder of this host's file system, by their path in the system:
    ``sys/devices/system/node/node0/cpulist``. Nothing ``inside`` does not hold is read. Messages
    call the folder as ``renamed`` says: by the name of the archive that it was unpacked from.
    """

    def __init__(
        self, sys: Path, proc: Path, inside: Path | None, renamed: tuple[str, str] = ("", "")
    ) -> None:
        self._roots, self._renamed = {"sys": sys, "proc": proc}, renamed
        self._inside = None if inside is None else os.path.realpath(inside)

    def read(self, path: str) -> str | None:
        """The file's text without the blanks around it; None where there is no such file."""
        data = self.data(path)  # old kernels end some with a NUL
        return None if data is None else data.decode("utf-8", "replace").strip("\0 \t\r\n")

    def data(self, path: str) -> bytes | None:
        """The file's bytes; None where there is no such file."""
        try:
            where = self._find(path)
            # Without O_NONBLOCK, a FIFO in a saved tree would wait for a writer.
            handle = os.open(where, os.O_RDONLY | os.O_NONBLOCK)
            with open(handle, "rb") as stream:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    return None
                data = stream.read(_FILE_BYTES_MAX + 1)
        except OSError as failure:
            self._refuse_loop(failure, path)
            return None
        if len(data) > _FILE_BYTES_MAX:
            raise InputError("too large", self.full_path(path))
        return data

    def names(self, path: str) -> list[str]:
        """What is in the folder, sorted; [] where there is no such folder."""
        try:
            return sorted(os.listdir(self._find(path)))
        except OSError as failure:
            self._refuse_loop(failure, path)
            return []

    def numbered(self, path: str, names: str) -> set[int]:
        """The numbers in ``names`` (a pattern with a number as its group) in the folder."""
        found = (re.fullmatch(names, name, re.ASCII) for name in self.names(path))
        return {int(match[1]) for match in found if match}

    def numbers(self, path: str) -> frozenset[int] | None:
        """The file's list or mask of numbers; None where there is no such file."""
        text = self.read(path)
        if text is None:
            return None
        try:
            return parse_list(text) if path.endswith(_LISTS) else parse_mask(text)
        except ValueError as failure:
            raise self.error(path, str(failure), text or "an empty file") from None

    def error(
        self, path: str, message: str, token: str | None, expected: str | None = None, line: int = 1
    ) -> InputError:
        """The InputError for a line of a file."""
        return InputError(message, self.full_path(path), line, None, token, expected)

    def full_path(self, path: str) -> str:
        """The path as an error message should give it."""
        return self._path(path).replace(*self._renamed, 1)

    def _path(self, path: str) -> str:
        first, _, rest = path.partition("/")
        return str(self._roots[first] / rest)

    def _find(self, path: str) -> str:
        where = self._path(path)
        if self._inside is not None:
            try:
                where = os.path.realpath(where, strict=True)
            except RecursionError:  # it takes a call for each link
                raise InputError(_TOO_MANY, self.full_path(path)) from None
            if os.path.commonpath([where, self._inside]) != self._inside:
                raise FileNotFoundError(where)
        return where

    def _refuse_loop(self, failure: OSError, path: str) -> None:
        if failure.errno == errno.ELOOP:
            # The operating system does not tell a loop from a long chain.
            raise InputError(_TOO_MANY, self.full_path(path)) from None


def this_host() -> Tree:
    """The tree of this host."""
    return Tree(Path("/sys"), Path("/proc"), inside=None)


def archive_tree(
    stream: BinaryIO, name: str, folder: Path, limits: ArchiveLimits | None = None
) -> Tree:
    """The tree in the tar archive in ``stream``, unpacked into ``folder``; raises InputError."""
    unpack(stream, name, folder, _WANTED.fullmatch, limits)
    return folder_tree(folder, "archive", name)


def folder_tree(folder: Path, kind: str = "folder", name: str = "") -> Tree:
    """The tree that begins in ``folder``, called ``name`` in messages, or somewhere below it;
    raises InputError.
    """
    waiting = deque([(folder, 0)])
    found: list[Path] = []
    seen = found_depth = 0
    while waiting:
        directory, depth = waiting.popleft()
        if found and depth > found_depth:
            break
        if any((directory / "devices/system" / kind).is_dir() for kind in ("cpu", "node")):
            found.append(directory)
            found_depth = depth
            continue
        seen += 1
        if (depth < _DEPTH_MAX or kind == "archive") and seen < _FOLDERS_MAX:
            waiting.extend((below, depth + 1) for below in _folders(directory))
    if not found:
        expected = "a tree with sys/devices/system/node or sys/devices/system/cpu"
        raise InputError(f"no sysfs tree in this {kind}", name or str(folder), expected=expected)
    renamed = (str(folder), name or str(folder))
    if len(found) > 1:
        first, second = (str(path).replace(*renamed, 1) for path in sorted(found)[:2])
        raise InputError(
            f"more than one sysfs tree: '{first}' and '{second}'", renamed[1], expected="one"
        )
    (sys,) = found
    top = sys.parent if os.path.basename(os.path.realpath(sys)) == "sys" else sys
    return Tree(sys, top / "proc", top, renamed)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(found)

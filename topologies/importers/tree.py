"""A saved or live system seen as a tree of small text files, wherever it is kept."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from pathlib import Path
from typing import BinaryIO, Protocol

from ...inputs import InputError
from .archive import ArchiveLimits, read_members

_FILE_BYTES_MAX = 16 << 20  # /proc/cpuinfo of a large machine has a few MiB, any sysfs file KiB
_TOO_MANY = "a loop of links, or too long a chain of them"
_LINKS_MAX = 40  # as the kernel allows on one path
_DEPTH_MAX = 8  # how far below the given folder the tree may begin
_FOLDERS_MAX = 20_000

_SYSFS_MEMBER = re.compile(r"(?:(?P<root>.*)/)?devices/system/(?:cpu|node)(?:/|$)", re.DOTALL)
_BOARD_MEMBER = re.compile(
    r"(?:.*/)?(?:class|devices/virtual)/dmi(?:/id(?:/(?:sys|board)_vendor)?)?", re.DOTALL
)
_TABLE_MEMBER = re.compile(r"(?:.*/)?firmware/acpi/tables/(?:HMAT|SRAT)", re.DOTALL)
_PROC_MEMBER = re.compile(r"(?:.*/)?proc/(?:cpuinfo|meminfo)", re.DOTALL)


class Tree(Protocol):
    """Files by their path in the system: ``sys/devices/system/node/node0/cpulist``."""

    def read(self, path: str) -> str | None:
        """The file's text without the blanks around it; None where there is no such file."""

    def data(self, path: str) -> bytes | None:
        """The file's bytes; None where there is no such file."""

    def names(self, path: str) -> list[str]:
        """What is in the folder, sorted; [] where there is no such folder."""

    def full_path(self, path: str) -> str:
        """The path as an error message should give it."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip("\0 \t\r\n")  # old kernels end some with a NUL


class FolderTree:
    """A tree in a folder of this host's file system; nothing outside the folder is read."""

    def __init__(self, sys: Path, proc: Path, inside: Path | None) -> None:
        self._roots = {"sys": sys, "proc": proc}
        self._inside = None if inside is None else os.path.realpath(inside)

    def read(self, path: str) -> str | None:
        data = self.data(path)
        return None if data is None else _text(data)

    def data(self, path: str) -> bytes | None:
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
        try:
            return sorted(os.listdir(self._find(path)))
        except OSError as failure:
            self._refuse_loop(failure, path)
            return []

    def full_path(self, path: str) -> str:
        first, _, rest = path.partition("/")
        return str(self._roots[first] / rest)

    def _find(self, path: str) -> str:
        where = self.full_path(path)
        if self._inside is not None:
            try:
                where = os.path.realpath(where, strict=True)
            except RecursionError:  # it takes a call for each link
                raise InputError(_TOO_MANY, where) from None
            if os.path.commonpath([where, self._inside]) != self._inside:
                raise FileNotFoundError(where)
        return where

    def _refuse_loop(self, failure: OSError, path: str) -> None:
        if failure.errno == errno.ELOOP:
            # The operating system does not tell a loop from a long chain.
            raise InputError(_TOO_MANY, self.full_path(path)) from None


def this_host() -> FolderTree:
    """The tree of this host."""
    return FolderTree(Path("/sys"), Path("/proc"), inside=None)


def folder_tree(folder: Path) -> FolderTree:
    """The tree that begins in ``folder`` or somewhere below it; raises InputError."""
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
        if depth < _DEPTH_MAX and seen < _FOLDERS_MAX:
            waiting.extend((below, depth + 1) for below in _folders(directory))
    name = str(folder)
    sys = Path(_only([str(path) for path in found], name, "folder"))
    top = sys.parent if os.path.basename(os.path.realpath(sys)) == "sys" else sys
    return FolderTree(sys, top / "proc", inside=top)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(found)


class ArchiveTree:
    """A tree in memory, from an archive; links are followed inside it only."""

    def __init__(self, files: dict[str, bytes], links: dict[str, str], root: str, name: str):
        """``root``: the path in the archive of the folder that holds ``devices/system``."""
        self._files, self._links, self._name = files, links, name
        above, _, last = root.rpartition("/")
        self._roots = {"sys": root, "proc": f"{above}/proc" if above else "proc"}
        self._top = above if last == "sys" else root
        self._folders: dict[str, set[str]] = {"": set()}
        for path in (*files, *links):
            above, _, last = path.rpartition("/")
            while last and last not in self._folders.setdefault(above, set()):
                self._folders[above].add(last)
                above, _, last = above.rpartition("/")

    def read(self, path: str) -> str | None:
        data = self.data(path)
        return None if data is None else _text(data)

    def data(self, path: str) -> bytes | None:
        node = self._find(path)
        return None if node is None else self._files.get(node)

    def names(self, path: str) -> list[str]:
        node = self._find(path)
        return [] if node is None else sorted(self._folders.get(node, ()))

    def full_path(self, path: str) -> str:
        return f"{self._name}/{self._inner(path)}"

    def _inner(self, path: str) -> str:
        first, _, rest = path.partition("/")
        return f"{self._roots[first]}/{rest}".lstrip("/")

    def _find(self, path: str) -> str | None:
        """The path with its links resolved, None where it leads out of the archive."""
        left = deque(self._inner(path).split("/"))
        parts: list[str] = []
        met: set[tuple[str, ...]] = set()
        while left:
            part = left.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if not parts:
                    return None
                parts.pop()
                continue
            parts.append(part)
            target = self._links.get("/".join(parts))
            if target is None:
                continue
            state = ("/".join(parts), *left)
            if state in met:
                raise InputError("a loop of links", self.full_path(path))
            met.add(state)
            if len(met) > _LINKS_MAX:
                expected = f"at most {_LINKS_MAX} that lead to one another"
                raise InputError(
                    "too long a chain of links", self.full_path(path), expected=expected
                )
            parts.pop()
            if target.startswith("/"):
                parts = self._top.split("/")
            left.extendleft(reversed(target.split("/")))
        return "/".join(parts)


def archive_tree(stream: BinaryIO, name: str, limits: ArchiveLimits | None = None) -> ArchiveTree:
    """The tree in the tar archive in ``stream``; raises InputError."""
    members = read_members(stream, name, _is_wanted, limits)
    roots = {
        match["root"] or ""
        for path in (*members.files, *members.links)
        if (match := _SYSFS_MEMBER.match(path))
    }
    shallowest = min((root.count("/") for root in roots), default=0)
    root = _only([r for r in roots if r.count("/") == shallowest], name, "archive")
    return ArchiveTree(members.files, members.links, root, name)


def _is_wanted(path: str) -> bool:
    others = (_PROC_MEMBER, _BOARD_MEMBER, _TABLE_MEMBER)
    return bool(_SYSFS_MEMBER.match(path) or any(kind.fullmatch(path) for kind in others))


def _only(found: list[str], name: str, kind: str) -> str:
    expected = "a tree with sys/devices/system/node or sys/devices/system/cpu"
    if not found:
        raise InputError(f"no sysfs tree in this {kind}", name, expected=expected)
    if len(found) > 1:
        first, second = sorted(found)[:2]
        raise InputError(
            f"more than one sysfs tree: '{first}' and '{second}'", name, expected="one"
        )
    return found[0]

"""Guests that have booted, kept in the cache: the next one like them begins where they stood.

A guest is kept once, when it says that it is ready: before it mounts any file of the host, so that
it finds these as they are. QEMU writes its memory (without empty pages) and devices by its own
migration, and reads them with ``-incoming``. The oldest give way to new ones.
"""

import contextlib
import hashlib
import json
import os
import shlex
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .platforms import cache_folder

KEPT_BYTES = 2 << 30
LOOK_S = 0.02
_BANDWIDTH_BPS = 10**11  # as fast as the disk


def snapshot_file(command: Sequence[str], qemu: str) -> Path:
    """Of guests that ``qemu`` is to start with ``command``, which names no files of the host's.

    Its folder is there; the file itself may not be.
    """
    state = Path(qemu).stat()
    words = [f"{state.st_size} {state.st_mtime_ns}", *command]
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()
    folder = cache_folder() / "ready"
    folder.mkdir(exist_ok=True)
    return folder / f"{digest[:24]}.guest"


def opened(file: Path) -> int | None:
    """A descriptor of a guest that was kept, if it was; another session may remove the file."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    os.utime(descriptor)  # used last
    return descriptor


def incoming(descriptor: int) -> list[str]:
    """What makes QEMU begin with it."""
    return ["-incoming", f"exec:cat /proc/{os.getpid()}/fd/{descriptor}"]


class Monitor:
    """QEMU's monitor at the other end of ``end`` (QMP). Raises OSError where QEMU ended."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._lines = end, end.makefile("rb")
        self._answer()  # its greeting
        self.ask("qmp_capabilities")

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a command; RuntimeError where QEMU refuses it."""
        self._end.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._answer()
            if "error" in answer:
                raise RuntimeError(str(answer["error"].get("desc", name)))
            if isinstance(found := answer.get("return"), dict):
                return found

    def _answer(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise ConnectionResetError("QEMU ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def resume(self, limit_s: float) -> None:
        """Waits until the guest has been read, and lets it run; RuntimeError at the time limit."""
        until = time.monotonic() + limit_s
        while self.ask("query-status")["status"] == "inmigrate":
            if time.monotonic() > until:  # QEMU waits for ever for a file that holds nothing
                raise RuntimeError("the guest cannot be read")
            time.sleep(LOOK_S)
        self.ask("cont")

    def keep(self, file: Path) -> None:
        """Writes the guest into ``file``, whole or not at all; it goes on afterwards."""
        part = file.with_suffix(f".{os.getpid()}.part")
        self.ask("stop")
        try:
            self.ask("migrate-set-parameters", **{"max-bandwidth": _BANDWIDTH_BPS})
            self.ask("migrate", uri=f"exec:cat > {shlex.quote(str(part))}")
            while (status := self.ask("query-migrate").get("status")) not in _ENDS:
                time.sleep(LOOK_S)
            if status == "completed":
                _make_room(file.parent, part.stat().st_size)
                part.replace(file)
        except (OSError, RuntimeError):
            pass  # a full disk: the next guest boots, too
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        self.ask("cont")

    def close(self) -> None:
        """The socket itself stays open."""
        self._lines.close()


_ENDS = ("completed", "failed", "cancelled")


def _make_room(folder: Path, size_bytes: int) -> None:
    """Removes those that were used longest ago, and what a kill left half written."""
    old_s = time.time() - 3600.0
    for part in folder.glob("*.part"):
        with contextlib.suppress(OSError):
            if part.stat().st_mtime < old_s:
                part.unlink()
    kept = sorted(folder.glob("*.guest"), key=lambda file: file.stat().st_mtime)
    left = size_bytes + sum(file.stat().st_size for file in kept)
    for file in kept:
        if left <= KEPT_BYTES:
            return
        left -= file.stat().st_size
        file.unlink(missing_ok=True)

"""Which CPUs a process, or a control group, may use: set while it is steered, and given back.

Before anything is set, what was there is written to a file of this user's state folder, which goes
once it is given back: whoever is killed in between leaves the file, and the next start finds it.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...inputs import InputError, write_text_atomically
from ...inputs.number_sets import format_list, parse_list
from .process import LiveProcess

CGROUPS = Path("/sys/fs/cgroup")


@dataclass
class Affinity:
    """Of all threads of a process; new threads inherit from who makes them."""

    process: LiveProcess
    before: dict[int, list[int]]

    @classmethod
    def of(cls, process: LiveProcess) -> "Affinity":
        return cls(process, {tid: _affinity(tid) for tid in process.thread_ids()})

    @property
    def cpus(self) -> list[int]:
        """That the process could use before."""
        return sorted({cpu for cpus in self.before.values() for cpu in cpus})

    def processes(self) -> list[LiveProcess]:
        """That it is of."""
        return [self.process]

    def set(self, cpus: list[int]) -> None:
        """Raises InputError where that is not permitted."""
        for tid in self.process.thread_ids():
            _set_affinity(tid, cpus)

    def give_back(self) -> None:
        """Threads that came later get what the first one had."""
        if not self.process.alive:
            return
        first = self.before.get(self.process.pid, self.cpus)
        for tid in self.process.thread_ids():
            _set_affinity(tid, self.before.get(tid, first))

    def as_json(self) -> dict[str, Any]:
        started = self.process.started
        return {"pid": self.process.pid, "started": started, "before": self.before}


@dataclass
class Cpuset:
    """Of a control group with a cpuset, of version 2 or 1."""

    folder: Path
    before: str

    @classmethod
    def of(cls, group: str) -> "Cpuset":
        """``group``: its path, whole or below /sys/fs/cgroup (or its cpuset). Raises InputError."""
        tried = [CGROUPS / group.lstrip("/"), CGROUPS / "cpuset" / group.lstrip("/"), Path(group)]
        for folder in tried:
            with suppress(OSError):
                return cls(folder, (folder / "cpuset.cpus").read_text().strip())
        exists = any((folder / "cgroup.procs").exists() for folder in tried)
        raise InputError(
            "--cgroup: no cpuset" if exists else "--cgroup: no such control group",
            token=group,
            expected="a group below /sys/fs/cgroup with the cpuset controller",
        )

    @property
    def cpus(self) -> list[int]:
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            with suppress(OSError):
                return sorted(parse_list((self.folder / name).read_text().strip()))
        return []

    def processes(self) -> list[LiveProcess]:
        found = []
        with suppress(OSError):
            for text in (self.folder / "cgroup.procs").read_text().split():
                with suppress(InputError):
                    found.append(LiveProcess(int(text)))
        return found

    def set(self, cpus: list[int]) -> None:
        """Raises InputError where that is not permitted."""
        self._write(format_list(cpus))

    def give_back(self) -> None:
        if self.folder.exists():
            self._write(self.before)

    def as_json(self) -> dict[str, Any]:
        return {"cgroup": str(self.folder), "before": self.before}

    def _write(self, text: str) -> None:
        try:
            (self.folder / "cpuset.cpus").write_text(f"{text}\n")
        except OSError as failure:
            raise InputError(
                f"the cpuset of {self.folder} cannot be set: {failure.strerror}",
                expected="root, or a group that is delegated to this user",
            ) from None


Masks = Affinity | Cpuset


def _affinity(tid: int) -> list[int]:
    try:
        return sorted(os.sched_getaffinity(tid))
    except OSError:
        return []


def _set_affinity(tid: int, cpus: list[int]) -> None:
    if not cpus:
        return
    try:
        os.sched_setaffinity(tid, cpus)
    except ProcessLookupError:
        pass  # it has ended
    except OSError as failure:
        raise InputError(
            f"the CPUs of thread {tid} cannot be set: {failure.strerror}",
            expected="a process of the same user, or CAP_SYS_NICE",
        ) from None


@dataclass
class Journal:
    """A file that says what to give back, for as long as it is not given back."""

    file: Path
    masks: Masks

    @classmethod
    def of(cls, masks: Masks) -> "Journal":
        """Raises InputError where the state folder cannot be written to."""
        me = LiveProcess(os.getpid())
        file = state_folder() / f"{me.pid}-{me.started}.json"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise InputError(f"{file.parent}: cannot be made: {failure.strerror}") from None
        write_text_atomically(file, json.dumps(masks.as_json()))
        return cls(file, masks)

    def give_back(self) -> None:
        self.masks.give_back()
        self.file.unlink(missing_ok=True)


def state_folder() -> Path:
    """Of this user (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "numatwin" / "cores"


def left_behind() -> Iterator[Journal]:
    """What steering that was killed has not given back; files of processes that have ended, or
    that are damaged, go."""
    for file in sorted(state_folder().glob("*-*.json")):
        pid, _, started = file.stem.partition("-")
        with suppress(InputError, ValueError):
            if LiveProcess(int(pid)).started == started:
                continue  # it steers now
        try:
            masks = _masks(json.loads(file.read_text()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError):
            masks = None
        if masks is None:
            file.unlink(missing_ok=True)
        else:
            yield Journal(file, masks)


def _masks(found: dict[str, Any]) -> Masks | None:
    if "cgroup" in found:
        folder = Path(found["cgroup"])
        return Cpuset(folder, str(found["before"])) if folder.exists() else None
    process = LiveProcess(int(found["pid"]))
    if process.started != found["started"]:
        return None
    before = {int(tid): [int(cpu) for cpu in cpus] for tid, cpus in found["before"].items()}
    return Affinity(process, before)

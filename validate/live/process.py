"""What /proc tells of a process: the times and places of its threads, and where its pages lie.

Formats: proc(5), numa(7); Documentation/scheduler/sched-stats.rst of Linux for ``schedstat``.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from ...inputs import InputError
from ...inputs.text_lines import kernel_text

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat, counted from the state, which follows the name's last bracket.
STATE, USER_TICKS, SYSTEM_TICKS, STARTED, PROCESSOR = 0, 11, 12, 19, 36
SUMMED = ("Rss", "AnonHugePages", "Locked", "Swap")


@dataclass(frozen=True)
class Thread:
    """``run_s``: on a CPU so far; ``wait_s``: ready, and waiting for one (None: not told);
    ``cpu``: where it ran last; ``moves``: from CPU to CPU so far (None: not told).
    """

    run_s: float
    wait_s: float | None
    cpu: int
    moves: int | None


class LiveProcess:
    """The process ``pid`` as it is now; raises InputError where there is none."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self.pid, self.folder = pid, proc / str(pid)
        fields = self._stat(self.folder)
        if fields is None or fields[STATE] in "ZX":
            raise InputError(f"no process {pid} runs on this host")
        self.started = fields[STARTED]
        self.name = (self.folder / "comm").read_text(errors="replace").strip()

    @property
    def alive(self) -> bool:
        """Whether it still runs, and its number is not another one's by now."""
        fields = self._stat(self.folder)
        return fields is not None and fields[STATE] not in "ZX" and fields[STARTED] == self.started

    def thread_ids(self) -> list[int]:
        """Of those that run now; none once it has ended."""
        try:
            return sorted(int(name) for name in os.listdir(self.folder / "task"))
        except OSError:
            return []

    def threads(self) -> dict[int, Thread]:
        """By number. One that ends meanwhile is left out."""
        found = ((tid, self._thread(self.folder / "task" / str(tid))) for tid in self.thread_ids())
        return {tid: thread for tid, thread in found if thread is not None}

    def _thread(self, folder: Path) -> Thread | None:
        fields = self._stat(folder)
        if fields is None:
            return None
        run_s = (int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])) / TICKS_PER_S
        wait_s = None
        if len(times := kernel_text(folder / "schedstat").split()) == 3:
            run_s, wait_s = int(times[0]) / 1e9, int(times[1]) / 1e9
        moves = next(
            (
                int(line.rpartition(":")[2])
                for line in kernel_text(folder / "sched").splitlines()
                if line.startswith("se.nr_migrations")
            ),
            None,
        )
        return Thread(run_s, wait_s, int(fields[PROCESSOR]), moves)

    def pages(self) -> dict[str, dict[int, int]] | None:
        """Bytes by kind (heap, stack, file, anonymous) and node; None where that is not told."""
        try:
            lines = (self.folder / "numa_maps").read_text(errors="replace").splitlines()
        except OSError:
            return None
        found: dict[str, dict[int, int]] = {}
        for line in lines:
            words = line.split()
            of_kind = found.setdefault(_kind(words), {})
            facts = dict(word.split("=", 1) for word in words[2:] if "=" in word)
            page_bytes = 1024 * int(facts.get("kernelpagesize_kB", 4))
            for name, count in facts.items():
                if name[0] == "N" and name[1:].isdigit():
                    of_kind[int(name[1:])] = of_kind.get(int(name[1:]), 0) + int(count) * page_bytes
        return {kind: nodes for kind, nodes in found.items() if nodes}

    def memory_bytes(self) -> dict[str, int] | None:
        """What smaps sums up; None where that is not told."""
        rows = (line.split() for line in kernel_text(self.folder / "smaps_rollup").splitlines())
        found = {row[0][:-1]: int(row[1]) * 1024 for row in rows if row[0][:-1] in SUMMED}
        return found or None

    @staticmethod
    def _stat(folder: Path) -> list[str] | None:
        return kernel_text(folder / "stat").rpartition(")")[2].split() or None


def _kind(words: list[str]) -> str:
    for word in words[2:]:
        if word in ("heap", "stack"):
            return word
        if word.startswith("file="):
            return "file"
    return "anonymous"

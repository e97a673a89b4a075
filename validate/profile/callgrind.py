"""Output files of callgrind: counts by function, with calls.

The format is that of Valgrind's manual, "Callgrind Format Specification": names may be compressed
to numbers, positions relative; lines after ``calls=`` are of the function called.

A program under callgrind, once for each set of simulated caches.
"""

import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...inputs import InputError
from .counts import CallGraph, Floats, count

MAGIC = "# callgrind format"
NAMES = ("fn", "cfn", "jfn", "ob", "cob", "fl", "fi", "fe", "cfi", "cfl", "jfi")
OTHERS = re.compile("version|creator|cmd|pid|part|thread|desc|summary|event|jump|jcnd")
POSITION = re.compile(r"(?:[+-]?\d+|0x[0-9a-fA-F]+|\*)$")
COUNT = re.compile(r"\d{1,20}")  # of 64 bits
NAMED = re.compile(r"\((\d+)\)(?: (.*))?$")
CACHE = re.compile(r"desc: (I1|D1|LL) cache: (\d+) B")
UNNAMED = re.compile(r"0x[0-9a-f]+$|\?\?\?$")
STRIPPED = 0.5  # of the instructions are in functions without names


def is_callgrind(head: str) -> bool:
    """Whether a file that begins so is one."""
    return head.startswith(MAGIC) or ("\nevents: Ir" in head and "\npositions:" in head)


def read_callgrind(path: Path, text: str) -> CallGraph:
    """The counts in the file; raises InputError."""
    return _Reader(str(path)).read(text.splitlines())


class _Reader:
    def __init__(self, source: str) -> None:
        self.source, self.at = source, 0
        self.events: tuple[str, ...] = ()
        self.positions = 1
        self.names: dict[str, dict[str, str]] = defaultdict(dict)  # by kind, then number
        self.function: dict[str, int] = {}
        self.own: dict[int, Floats] = {}
        self.called: dict[tuple[int, int], float] = defaultdict(float)
        self.object = ""
        self.caches = {"D1": 0.0, "LL": 0.0, "I1": 0.0}
        self.totals: Floats = np.full(1, np.nan)

    def read(self, lines: Iterable[str]) -> CallGraph:
        now = callee = -1
        callee_object: str | None = None
        rows = self._numbered(lines)
        for line in rows:
            key, equals, value = line.partition("=")
            if equals and key in NAMES:
                name = self._name("fn" if "fn" in key else "ob" if "ob" in key else "fl", value)
                if key == "fn":
                    now, callee_object = self._function(name, self.object), None
                elif key == "cfn":
                    callee = self._function(name, callee_object or self.object)
                elif key == "ob":
                    self.object = name
                elif key == "cob":
                    callee_object = name
            elif key == "calls" and equals:
                costs = self._costs(next(rows, ""), self.positions)
                self.called[now, callee] += float(costs[0])
                callee_object = None
            elif POSITION.match(line.split(" ", 1)[0]):
                if now < 0:
                    raise self._wrong(line, "a function ('fn=') before its counts")
                self.own[now] = self._costs(line, self.positions) + self.own.get(now, 0.0)
            else:
                self._header(line)
        self._check_end()
        return self._graph()

    def _check_end(self) -> None:
        """All counts are in the totals: of one part, or of several together."""
        counts = sum(self.own.values(), np.zeros(len(self.events)))
        if not self.own or not (self.totals == counts).all():
            raise InputError(
                "an unfinished callgrind file: no counts, or not the 'totals:' of these at its end",
                self.source,
                self.at,
                expected="the file of a program that has ended, or of callgrind_control --dump",
            )

    def _numbered(self, lines: Iterable[str]) -> Iterator[str]:
        for self.at, line in enumerate(lines, 1):
            if line and not line.startswith("#"):
                yield line

    def _header(self, line: str) -> None:
        key, _, value = line.partition(":")
        if key == "events":
            self.events = tuple(value.split())
        elif key == "positions":
            self.positions = len(value.split())
        elif key == "totals":
            self.totals = np.nan_to_num(self.totals) + self._costs(line, 1)
        elif found := CACHE.match(line):
            self.caches[found[1]] = count(found[2], self.source, self.at)
        elif key == "version" and value.strip() != "1":
            raise self._wrong(value.strip(), "version 1 of callgrind's format")
        elif not OTHERS.fullmatch(key.partition("=")[0]):
            raise self._wrong(line, "a line of callgrind's format")

    def _name(self, kind: str, written: str) -> str:
        found = NAMED.match(written)
        if found is None:
            return written
        if found[2] is not None:
            self.names[kind][found[1]] = found[2]
        if found[1] not in self.names[kind]:
            raise self._wrong(written, "a number that has been given a name before")
        return self.names[kind][found[1]]

    def _function(self, name: str, of: str) -> int:
        if UNNAMED.match(name):
            name = f"{Path(of).name}:{name}"
        # Of recursion: name'2 is the same function.
        return self.function.setdefault(re.sub(r"'\d+$", "", name), len(self.function))

    def _costs(self, line: str, positions: int) -> Floats:
        found = np.zeros(len(self.events))
        written = line.split()[positions:]
        fit = 0 < len(found) >= len(written)
        if not fit or not all(map(COUNT.fullmatch, written)):
            expected = f"a position and counts of {' '.join(self.events) or 'events'}"
            raise self._wrong(line, expected)
        found[: len(written)] = [float(each) for each in written]
        return found

    def _wrong(self, token: str, expected: str) -> InputError:
        return InputError("not callgrind's format", self.source, self.at, None, token, expected)

    def _graph(self) -> CallGraph:
        if "Ir" not in self.events:
            raise self._wrong(" ".join(self.events), "Ir among the events")
        own = np.zeros((len(self.function), len(self.events)))
        own[list(self.own)] = list(self.own.values())
        names = tuple(self.function)
        executed = own[:, self.events.index("Ir")]
        unnamed = np.array([bool(UNNAMED.search(name)) for name in names])
        notes = []
        if executed[unnamed].sum() > STRIPPED * executed.sum():
            part = executed[unnamed].sum() / executed.sum()
            notes.append(f"{part:.0%} of the instructions are in functions without names")
        pairs = np.array(list(self.called), dtype=np.int64).reshape(-1, 2)
        return CallGraph(
            self.source,
            self.events,
            names,
            own,
            pairs[:, 0],
            pairs[:, 1],
            np.array(list(self.called.values())),
            (self.caches["D1"], self.caches["LL"]),
            code_cache=self.caches["I1"],
            notes=tuple(notes),
        )


# A miss curve of seven points from 32 KiB to 64 MiB; twice a prefetcher, behind a first cache and
# one of 2 MiB, which tells what is read in order. It goes from a line to the next: with lines of
# 256 B it follows strides of up to 256 B, as those of processors do. Last, caches of 4 KiB: how
# soon first caches fill (``refills``).
RUNS = (
    ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64"),
    ("--I1=524288,16,64", "--D1=524288,16,64", "--LL=8388608,16,64"),
    ("--D1=33554432,16,64", "--LL=67108864,16,64"),
    ("--D1=32768,8,64", "--LL=32768,8,256", "--simulate-hwpref=yes"),
    ("--D1=32768,8,64", "--LL=2097152,16,256", "--simulate-hwpref=yes"),
    ("--I1=4096,8,64", "--D1=4096,8,64", "--LL=1048576,16,64"),
)


def run_counted(command: Sequence[str], *, region: bool = False) -> tuple[CallGraph, ...]:
    """Counts of all runs. ``region``: only what the program marks by ``callgrind_control -i on``
    and ``off``. Raises InputError where it cannot be started, or fails."""
    for program, package in ((command[0], None), ("valgrind", "sudo apt-get install valgrind")):
        if shutil.which(program) is None:
            raise InputError("no such program", token=program, hint=package)
    with ThreadPoolExecutor(len(RUNS)) as pool:
        return tuple(pool.map(lambda options: _run(command, options, region=region), RUNS))


def _run(command: Sequence[str], options: Sequence[str], *, region: bool) -> CallGraph:
    prefetched = "--simulate-hwpref=yes" in options
    with tempfile.TemporaryDirectory(prefix="numatwin-") as folder:
        out = Path(folder) / "callgrind.out"
        valgrind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
        valgrind += [f"--log-file={folder}/log", "--cache-sim=yes", "--branch-sim=yes"]
        valgrind += ["--collect-systime=nsec", *options]
        valgrind += ["--instr-atstart=no"] if region else []
        valgrind += [] if prefetched else ["--simulate-wb=yes"]
        done = subprocess.run([*valgrind, *command], check=False, stdout=subprocess.DEVNULL)
        if done.returncode or not out.exists():
            raise InputError(f"{command[0]} ended with status {done.returncode} while counted")
        graph = read_callgrind(out, out.read_text(encoding="utf-8", errors="replace"))
    return replace(graph, source=" ".join(command), prefetched=prefetched)

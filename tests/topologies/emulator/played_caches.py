"""The plugin's caches, compiled without QEMU; and the same protocol in a page of Python."""

import ctypes
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PLUGIN = Path(__file__).parents[3] / "topologies" / "emulator" / "plugin"
MIB = 1 << 20
LINE = 64
STREAMS = 32

Pair = tuple[int, int]
Counts = dict[str, dict[Pair, int]]


@dataclass(frozen=True)
class Shape:
    """Nodes of equal memory and processors. ``levels``: (processors that share one, sets, ways)."""

    nodes: int
    cpus_per_node: int
    levels: tuple[tuple[int, int, int], ...]
    snoop_domain: tuple[int, ...] = ()
    coherent: bool = True
    owned: bool = False
    exclusive: bool = False
    node_mib: int = 1
    instructions: bool = False
    window: int | None = None

    @property
    def cpus(self) -> int:
        """Processors in all."""
        return self.nodes * self.cpus_per_node

    def node_of(self, cpu: int) -> int:
        """The node of a processor."""
        return cpu // self.cpus_per_node

    def home_of(self, address: int) -> int:
        """The node of an address."""
        return address // (self.node_mib * MIB)

    def settings(self) -> str:
        """As the plugin reads them."""
        bytes_ = self.node_mib * MIB
        lines = [f"nodes {self.nodes}"]
        lines += [f"memory {k} {k * bytes_:#x} {bytes_:#x}" for k in range(self.nodes)]
        lines += [f"level {self.cpus // by} {sets} {ways}" for by, sets, ways in self.levels]
        for cpu in range(self.cpus):
            lines.append(
                f"cpu {self.node_of(cpu)} {' '.join(str(cpu // by) for by, _, _ in self.levels)}"
            )
        domains = self.snoop_domain or (0,) * self.nodes
        lines.append(f"snoop_domain {' '.join(map(str, domains))}")
        lines += [f"coherent {int(self.coherent)}", f"owned {int(self.owned)}"]
        lines += [f"exclusive {int(self.exclusive)}", f"interval {int(self.instructions)}"]
        lines += [] if self.window is None else [f"window {self.window}"]
        lines += ["out -", ""]
        return "\n".join(lines)


@cache
def _library() -> ctypes.CDLL:
    folder = tempfile.mkdtemp(prefix="played-")
    target = Path(folder) / "played.so"
    files = [HERE / "hierarchy_harness.cpp", PLUGIN / "hierarchy.cpp"]
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-g0", "-fPIC", "-shared"]
    command += ["-pthread", "-Wall", "-Wextra", "-Werror", "-I", str(PLUGIN), "-o", str(target)]
    subprocess.run([*command, *map(str, files)], check=True)
    library = ctypes.CDLL(str(target))
    target.unlink()
    Path(folder).rmdir()
    handle, text, flag = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool
    u32, u64 = ctypes.c_uint, ctypes.c_uint64
    library.play.restype, library.interacts.restype = handle, flag
    library.play.argtypes = [text]
    library.forget.argtypes = library.interacts.argtypes = [handle]
    library.access_once.argtypes = [handle, u32, u64, u32, flag]
    library.stream.argtypes = [handle, u32, u64, u64, u64, flag]
    library.begin_block.argtypes = [handle, u32, u64, u64, u32, u32, flag]
    library.storm.argtypes = [handle, u64, u64, u64]
    library.write_totals.argtypes = [handle, text]
    return library


class Played:
    """The plugin's caches; addresses are physical."""

    def __init__(self, shape: Shape) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".settings") as file:
            file.write(shape.settings())
            file.flush()
            self._handle = _library().play(file.name.encode())
        if self._handle is None:
            raise ValueError(shape)

    def __del__(self) -> None:
        if self._handle is not None:
            _library().forget(self._handle)

    def interacts(self) -> bool:
        """Whether counts of one processor depend on others."""
        return bool(_library().interacts(self._handle))

    def access(self, cpu: int, address: int, write: bool, size: int = 8) -> None:
        """One access."""
        _library().access_once(self._handle, cpu, address, size, write)

    def read(self, cpu: int, *addresses: int) -> None:
        """Reads of 8 B."""
        for address in addresses:
            self.access(cpu, address, False)

    def write(self, cpu: int, *addresses: int) -> None:
        """Writes of 8 B."""
        for address in addresses:
            self.access(cpu, address, True)

    def stream(self, cpu: int, address: int, count: int, stride: int, write: bool = False) -> None:
        """``count`` accesses of 8 B, ``stride`` bytes from one to the next."""
        _library().stream(self._handle, cpu, address, count, stride, write)

    def block(
        self,
        cpu: int,
        begin: int,
        end: int,
        ending: int = 0,
        *,
        instructions: int = 2,
        fused: bool = False,
    ) -> None:
        """A block begins; ``ending``: 1 a branch, 2 an indirect jump, 3 a system call."""
        _library().begin_block(self._handle, cpu, begin, end, instructions, ending, fused)

    def storm(self, count: int, lines: int, seed: int) -> None:
        """``count`` accesses of each processor at the same time, to so many lines of each node."""
        _library().storm(self._handle, count, lines, seed)

    def counts(self) -> Counts:
        """All that was counted so far, by name and pair, zeros left out."""
        found: Counts = defaultdict(dict)
        with tempfile.NamedTemporaryFile("r", suffix=".counts") as file:
            _library().write_totals(self._handle, file.name.encode())
            for line in file:
                name, row, column, count = line.split()
                if int(count):
                    found[name][int(row), int(column)] = int(count)
        return dict(found)


class Reference:
    """The protocol, written to be read: lists of lines, most recently used last.

    ``holders[line]``: the domains that hold it; ``owner[line]``: "E" or "M" if there is but one.
    ``keeper[line]``: of a shared line, the domain that has modified it (MOESI).
    ``writer[line]``: the first-level cache that may write it without asking.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.caches: list[list[list[list[int]]]] = [
            [[[] for _ in range(sets)] for _ in range(shape.cpus // by)]
            for by, sets, _ in shape.levels
        ]
        self.holders: dict[int, set[int]] = defaultdict(set)
        self.owner: dict[int, str] = {}
        self.keeper: dict[int, int] = {}
        self.writer: dict[int, int] = {}
        self.streams: list[list[int]] = [[] for _ in range(shape.cpus)]
        self.oldest = [0] * shape.cpus
        self.counted: Counts = defaultdict(lambda: defaultdict(int))

    def counts(self) -> Counts:
        """As those of Played, without bytes."""
        return {name: dict(pairs) for name, pairs in self.counted.items() if pairs}

    def _add(self, name: str, row: int, column: int) -> None:
        self.counted[name][row, column] += 1

    def _set(self, level: int, instance: int, line: int) -> list[int]:
        return self.caches[level][instance][line % self.shape.levels[level][1]]

    def _instance(self, level: int, cpu: int) -> int:
        return cpu // self.shape.levels[level][0]

    def _node(self, domain: int) -> int:
        return self.shape.node_of(domain * self.shape.levels[-1][0])

    def _home(self, line: int) -> int:
        return self.shape.home_of(line * LINE)

    def _snoops(self, node: int, other: int) -> bool:
        domains = self.shape.snoop_domain
        return bool(domains) and node != other and domains[node] == domains[other] != 0

    def access(self, cpu: int, address: int, write: bool) -> None:
        """One access within a line."""
        line, node = address // LINE, self.shape.node_of(cpu)
        self._add("writes_user" if write else "reads_user", node, self._home(line))
        last = len(self.shape.levels) - 1
        domain = self._instance(last, cpu)
        first = self._instance(0, cpu)
        level = next(
            (k for k in range(last + 1) if line in self._set(k, self._instance(k, cpu), line)),
            last + 1,
        )
        if level:
            self._add("found", node, level)
            if self._follows(cpu, line) and level > last:
                self._add("streamed_misses", node, self._home(line))
        if level == 0 and (not write or self.writer.get(line) == first):
            self._use(0, cpu, line)
            return
        if level > last:
            self._fetch(cpu, domain, line, write)
        elif write:
            self._make_own(cpu, domain, line)
        if level >= last:
            self._use(last, cpu, line)
        if write:
            for other in range(
                domain * self.shape.levels[last][0], (domain + 1) * self.shape.levels[last][0]
            ):
                for k in range(last):
                    if self._instance(k, other) != self._instance(k, cpu):
                        self._drop(k, self._instance(k, other), line)
            self.writer[line] = first
        elif self.writer.get(line) != first:
            self.writer.pop(line, None)
        for k in range(last):
            if level != 0 or k == 0:
                self._use(k, cpu, line)

    def _follows(self, cpu: int, line: int) -> bool:
        """Whether the line is next to the last one of a stream; else it begins one."""
        streams = self.streams[cpu]
        for k, last in enumerate(streams):
            if abs(line - last) <= 1:
                streams[k] = line
                return line != last
        self.streams[cpu] = streams = streams or [-STREAMS] * STREAMS
        streams[self.oldest[cpu] % STREAMS] = line
        self.oldest[cpu] += 1
        return False

    def _use(self, level: int, cpu: int, line: int) -> None:
        found = self._set(level, self._instance(level, cpu), line)
        if line in found:
            found.remove(line)
        elif len(found) == self.shape.levels[level][2]:
            if self.shape.exclusive and level == len(self.shape.levels) - 1:
                self._spare_held(self._instance(level, cpu), found)
            victim = found.pop(0)
            if level == len(self.shape.levels) - 1:
                self._evicted(cpu, victim)
        found.append(line)

    def _spare_held(self, domain: int, found: list[int]) -> None:
        """Puts what no private cache holds first; what one holds counts as used now."""
        for _ in found:
            if not self._held_above(domain, found[0]):
                return
            found.append(found.pop(0))

    def _held_above(self, domain: int, line: int) -> bool:
        by, last = self.shape.levels[-1][0], len(self.shape.levels) - 1
        return any(
            line in self._set(k, self._instance(k, cpu), line)
            for k in range(last)
            for cpu in range(domain * by, (domain + 1) * by)
        )

    def _drop(self, level: int, instance: int, line: int) -> None:
        found = self._set(level, instance, line)
        if line in found:
            found.remove(line)

    def _drop_domain(self, domain: int, line: int) -> None:
        by = self.shape.levels[-1][0]
        for k in range(len(self.shape.levels)):
            for cpu in range(domain * by, (domain + 1) * by):
                self._drop(k, self._instance(k, cpu), line)
        if self.holders[line] == {domain}:
            self.writer.pop(line, None)
        self.holders[line].discard(domain)

    def _evicted(self, cpu: int, line: int) -> None:
        domain = self._instance(len(self.shape.levels) - 1, cpu)
        if self.owner.get(line) == "M" or self.keeper.get(line) == domain:
            self._add("write_backs", self._node(domain), self._home(line))
            self.keeper.pop(line, None)
        self._drop_domain(domain, line)
        if not self.holders[line]:
            self.owner.pop(line, None)

    def _ask(self, node: int, line: int, there: int) -> bool:
        if not self._snoops(node, there):
            self._add("probes", self._home(line), there)
            return True
        return False

    def _fetch(self, cpu: int, domain: int, line: int, write: bool) -> None:
        node, home = self.shape.node_of(cpu), self._home(line)
        self._add("write_misses_user" if write else "read_misses_user", node, home)
        modified, kept = self.owner.get(line) == "M", line in self.keeper
        if not (modified or kept):
            self._add("memory_reads", node, home)
        if write:
            self._take_from_others(cpu, domain, line, data=True)
            self.holders[line], self.owner[line] = {domain}, "M"
            return
        if line in self.owner:
            (holder,) = self.holders[line]
            there = self._node(holder)
            asked = self._ask(node, line, there)
            if modified:
                self._add("transfers", node, there)
                if self.shape.owned:
                    self.keeper[line] = holder
                else:
                    self._add("downgrades", there, home)
                    if node == home and asked:
                        self._add("home_downgrades", there, home)
                self.writer.pop(line, None)
            elif asked:
                self._add("answers", there, home)
            del self.owner[line]
        elif kept:
            there = self._node(self.keeper[line])
            self._ask(node, line, there)
            self._add("transfers", node, there)
        elif not self.holders[line]:
            self.owner[line] = "E"
        self.holders[line].add(domain)

    def _make_own(self, cpu: int, domain: int, line: int) -> None:
        if line not in self.owner:
            self._add("upgrades", self.shape.node_of(cpu), self._home(line))
            self._take_from_others(cpu, domain, line, data=False)
        self.owner[line] = "M"

    def _take_from_others(self, cpu: int, domain: int, line: int, *, data: bool) -> None:
        node, keeper = self.shape.node_of(cpu), self.keeper.pop(line, None)
        for holder in sorted(self.holders[line] - {domain}):
            modified = self.owner.get(line) == "M" or (data and holder == keeper)
            there = self._node(holder)
            asked = self._ask(node, line, there)
            self._add("invalidations", node, there)
            if modified:
                self._add("transfers", node, there)
            elif asked:
                self._add("answers", there, node)
            self._drop_domain(holder, line)


def without_bytes(counts: Counts) -> Counts:
    """What the reference counts too."""
    return {name: pairs for name, pairs in counts.items() if "bytes" not in name}


def both(shape: Shape, steps: Sequence[tuple[int, int, bool]]) -> tuple[Counts, Counts]:
    """What the plugin's caches and the reference count of (processor, address, write)."""
    played, reference = Played(shape), Reference(shape)
    for step in steps:
        played.access(*step)
        reference.access(*step)
    return without_bytes(played.counts()), reference.counts()

"""Runs a command in a guest and counts its memory traffic."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from ...inputs import InputError
from ..machine import CacheLevel, Machine
from .command_line import Plugin, memory_ranges, topology
from .guest import GuestFailure, GuestRun, run_in_guest
from .guest_machine import GuestMachine, guest_machine
from .platforms import X86_64, cache_folder, qemu_version
from .traffic import Traffic, read_counts, snoop_domains


@dataclass(frozen=True)
class Counting:
    """What is counted. ``caches`` False: accesses alone; ``coherence`` False: each cache alone.

    ``interval``: instructions of one processor after which an interval ends; 0: no instructions
    are counted, and no intervals. ``user_only``: what the kernel accesses is left out, and takes no
    room in caches: between two interrupts, a guest executes a few per cent of what a machine does.
    ``from_s``, ``for_s``: a region that begins so many seconds after the command, and after which
    the command is ended; by default as the command marks it.
    """

    caches: bool = True
    coherence: bool = True
    interval: int = 0
    user_only: bool = False
    from_s: float | None = None
    for_s: float | None = None

    @property
    def region(self) -> tuple[str, str]:
        """As ``run_counted`` of the guest takes it."""
        return (
            "-" if self.from_s is None else f"{self.from_s:g}",
            "-" if self.for_s is None else f"{self.for_s:g}",
        )


@dataclass(frozen=True)
class CountedRun:
    """A command that ran in a guest, and its traffic."""

    run: GuestRun
    traffic: Traffic


class NotStarted(GuestFailure):
    """A command that the guest could not start: it said why. ``run``: its status, as of a shell."""

    def __init__(self, message: str, run: GuestRun) -> None:
        super().__init__(message)
        self.run, self.status = run, run.status


def run_counted(
    machine: Machine | GuestMachine,
    command: Sequence[str],
    counting: Counting | None = None,
    **options: Any,
) -> CountedRun:
    """Runs ``command`` as ``run_in_guest`` does (``options`` are its), and counts its traffic.

    Raises InputError, NotStarted where the guest has no such command, and GuestFailure where the
    guest ended before the command did.
    """
    if not command:
        raise InputError(
            "counting needs a command", expected="numatwin emulate … --count -- COMMAND"
        )
    guest = machine if isinstance(machine, GuestMachine) else guest_machine(machine)
    if guest.platform is not X86_64:
        raise InputError(
            "traffic is not counted of this architecture",
            token=guest.architecture,
            expected=X86_64.architecture,
        )
    counting = counting or Counting()
    caches = played_caches(guest) if counting.caches else PlayedCaches.none(guest)
    with _unnamed_file() as settings, _unnamed_file() as counts:
        text = plugin_settings(guest, caches, _path(counts), counting)
        _path(settings).write_text(text, encoding="utf-8")
        arguments = {"settings": str(_path(settings))}
        plugin = Plugin(traffic_plugin(), arguments, (settings.fileno(), counts.fileno()))
        marker = compiled("run_counted", ("run_counted.cpp",), (), "")  # of where it is counted
        words = [str(marker), *counting.region, *command]
        run = run_in_guest(guest, words, plugins=[plugin], **options)
        spans = read_counts(
            _path(counts), len(guest.machine.nodes), len(caches.levels), len(caches.cpu_node)
        )
    if not spans:
        raise NotStarted("the command could not be started, so nothing was counted", run)
    traffic = Traffic(
        guest.machine,
        caches.line_bytes,
        tuple(level.level for level in caches.levels),
        spans["command"],
        spans.get("regions"),
        (*guest.notes, *caches.notes, *_notes(len(caches.cpu_node), counting)),
        tuple(counts for name, counts in spans.items() if name.startswith("interval ")),
        caches.cpu_node,
    )
    broken = traffic.whole.broken_laws(len(caches.cpu_node)) if counting.coherence else []
    if broken:
        raise InputError(f"the counts do not add up: {'; '.join(broken)}")
    return CountedRun(run, traffic)


def _unnamed_file() -> FileIO:
    """In memory: whatever ends this process and QEMU, nothing is left of it."""
    return FileIO(os.memfd_create("numatwin-counts"), "r+")


def _path(file: FileIO) -> Path:
    """Of an open file, here and in QEMU, which inherits it."""
    return Path(f"/proc/self/fd/{file.fileno()}")


def _notes(processors: int, counting: Counting) -> Iterator[str]:
    """What was not counted, and what it means that a host with fewer processors takes turns."""
    host = len(os.sched_getaffinity(0))
    if processors > host:
        yield (
            f"{processors} processors took turns on {host} of this host: lines that several write "
            "at the same time were handed over less often than on the machine"
        )
    if counting.user_only:
        yield "what the kernel accesses is left out"


def plugin_settings(
    guest: GuestMachine, caches: "PlayedCaches", out: Path, counting: Counting
) -> str:
    """What the plugin reads (``plugin/settings.hpp``); nodes are positions in the machine."""
    lines = [f"nodes {len(guest.machine.nodes)}"]
    lines += [
        f"memory {node} {first:#x} {end - first:#x}"
        for first, end, node in reported_memory(guest, qemu_version())
    ]
    lines.append(f"line_shift {caches.line_bytes.bit_length() - 1}")
    lines += [f"level {level.instances} {level.sets} {level.ways}" for level in caches.levels]
    for cpu, node in enumerate(caches.cpu_node):
        lines.append(" ".join(map(str, ("cpu", node, *(k.instance[cpu] for k in caches.levels)))))
    lines.append("snoop_domain " + " ".join(map(str, snoop_domains(guest.machine))))
    rules = guest.machine.description.coherence
    owned = int(rules is not None and bool(rules.owned))
    lines += [f"coherent {int(counting.coherence)}", f"owned {owned}"]
    lines += [f"exclusive {int(caches.exclusive)}", f"interval {counting.interval}"]
    windows = [guest.machine.nodes[node].reorder_window for node in set(caches.cpu_node)]
    if windows and None not in windows:
        lines.append(f"window {round(min(filter(None, windows)))}")
    lines += [f"user_only {int(counting.user_only)}", f"out {out}", ""]
    return "\n".join(lines)


def reported_memory(guest: GuestMachine, qemu: tuple[int, int]) -> list[tuple[int, int, int]]:
    """(first byte, byte after the last, node) at the addresses that QEMU reports to plugins.

    QEMU 9 reports those of the guest's physical memory. QEMU 7.2 adds a block's place among all
    blocks to its place in memory, so that with a block per node each node begins at twice its
    offset (without the hole for devices, which neither knows of). Raises InputError for others.
    """
    if qemu >= (9, 0):
        return [(first, end, guest.nodes[number]) for first, end, number in memory_ranges(guest)]
    if qemu >= (8, 0):
        raise InputError(
            "counting", token=f"QEMU {qemu[0]}.{qemu[1]}", expected="QEMU 7.2, or 9.0 or later"
        )
    found = []
    offset = 0
    for number, size in enumerate(guest.memory_bytes):
        if size:
            found.append((2 * offset, 2 * offset + size, guest.nodes[number]))
        offset += size
    return found


SOURCES = Path(__file__).with_name("plugin")
PLUGIN_SOURCES = ("traffic_plugin.cpp", "hierarchy.cpp")
_FLAGS = ("-std=c++20", "-O3", "-g0", "-Wall", "-Wextra", "-Werror")
_LIBRARY = ("-fPIC", "-shared", "-fvisibility=hidden")


def traffic_plugin() -> Path:
    """The plugin for the QEMU of this host; raises InputError where it cannot be compiled."""
    version = plugin_interface(qemu_version())
    flags = (*_LIBRARY, f"-DNUMATWIN_PLUGIN_VERSION={version}")
    return compiled("traffic", PLUGIN_SOURCES, flags, ".so")


def plugin_interface(qemu: tuple[int, int]) -> int:
    """The version of the plugin interface that is asked of a version of QEMU."""
    if qemu < (9, 0):
        return 1
    return 2 if qemu < (9, 1) else 3


def compiled(name: str, sources: Sequence[str], flags: Sequence[str], suffix: str) -> Path:
    """The file made from ``sources``, out of the cache where nothing changed; raises InputError."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    digest = hashlib.sha256(" ".join((*compiler, *_FLAGS, *flags, *sources)).encode())
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in (".cpp", ".hpp", ".h", ".inc"):
            digest.update(path.name.encode() + path.read_bytes())
    target = cache_folder() / f"{name}-{digest.hexdigest()[:12]}{suffix}"
    if target.exists():
        return target
    if shutil.which(compiler[0]) is None:
        raise InputError(
            f"counting needs a C++ compiler, and '{compiler[0]}' is not here "
            "(Debian: apt-get install g++)"
        )
    with tempfile.TemporaryDirectory(prefix=".compiling-", dir=target.parent) as folder:
        made = Path(folder) / target.name
        files = [str(SOURCES / source) for source in sources]
        command = [*compiler, *_FLAGS, *flags, "-o", str(made), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            reason = (errors or done.stderr.strip().splitlines() or ["no reason given"])[0]
            raise InputError(f"the counting plugin cannot be compiled: {reason}")
        made.replace(target)
    return target


ASSUMED_FIRST = CacheLevel(1, 32 * 1024, 1, 64.0, None)
# Where the machine file does not tell. Of the last level, as of a Xeon E5-4640 (hwloc test data,
# 192em64t-24n8c2t).
PRIVATE_WAYS_MIN, LAST_WAYS = 8, 20
# Sets are a power of two, or rows of up to so many, of which so many keep a size to a part in 32.
ROW_SETS, ROWS_MIN = 64, 16
WAYS_MAX = 255  # of cache_sets.hpp


@dataclass(frozen=True)
class PlayedLevel:
    """Caches of one level, all of one shape. ``instance``: the cache of each processor."""

    level: int
    sets: int
    ways: int
    instances: int
    instance: tuple[int, ...]

    @property
    def lines(self) -> int:
        """Lines that one cache holds."""
        return self.sets * self.ways


@dataclass(frozen=True)
class PlayedCaches:
    """All levels, first level first; empty where the machine file tells of no caches.

    ``cpu_node``: the node of each processor, by its position in the machine. ``notes``: what
    differs from the machine file, or was assumed. ``exclusive``: the last level cannot include
    those above it, and has the size of them all.
    """

    levels: tuple[PlayedLevel, ...]
    cpu_node: tuple[int, ...]
    line_bytes: int
    notes: tuple[str, ...]
    exclusive: bool = False

    @staticmethod
    def none(guest: GuestMachine) -> "PlayedCaches":
        """No caches, where accesses alone are counted."""
        return PlayedCaches((), processor_nodes(guest), 64, ())


def processor_nodes(guest: GuestMachine) -> tuple[int, ...]:
    """The node, by its position in the machine, of each of QEMU's processors."""
    places = topology(guest)
    numbers = [k for k in range(len(guest.nodes)) if guest.node(k).threads]
    return tuple(
        guest.nodes[number] for number in numbers for _ in range(places.cores * places.threads)
    )


def shape_of(size_bytes: float, line_bytes: int, ways_min: int) -> tuple[int, int]:
    """(sets, ways) of a cache: the most sets, a power of two, that leave so many ways or more.

    The size is kept to half a way: to a part in sixteen, where there are eight.
    """
    lines = max(ways_min, round(size_bytes / line_bytes))
    sets = 1 << ((lines // ways_min).bit_length() - 1)
    return sets, min(WAYS_MAX, round(lines / sets))


def shape_with(ways: int, size_bytes: float, line_bytes: int) -> tuple[int, int]:
    """(sets, ways) of a cache of so many ways, whose size is kept to a part in 32; of fewer than
    sixteen sets, as of ``shape_of``.
    """
    ways = min(ways, WAYS_MAX)
    sets = size_bytes / line_bytes / ways
    if sets < ROWS_MIN:
        return shape_of(size_bytes, line_bytes, ways)
    power = 1 << (int(sets).bit_length() - 1)
    row = power if power == sets else min(ROW_SETS, power // ROWS_MIN)
    return round(sets / row) * row, ways


def played_caches(guest: GuestMachine) -> PlayedCaches:
    """The caches of a guest's processors, as its machine file tells them."""
    cpu_nodes = processor_nodes(guest)
    kinds = {guest.machine.nodes[node].caches for node in cpu_nodes}
    positions = sorted(set(cpu_nodes))
    node = guest.machine.nodes[positions[0]]
    line_bytes = int(node.caches[0].line_bytes) if node.caches else 64
    if not node.caches:
        return PlayedCaches((), cpu_nodes, line_bytes, ("no caches are known: none is simulated",))
    notes = []
    if len(kinds) > 1:
        notes.append(f"all nodes have the caches of node {node.id}")
    caches = list(node.caches)
    if len(caches) == 1:
        caches.insert(0, ASSUMED_FIRST)
        notes.append("a first-level cache of 32 KiB is assumed")
    size_bytes = [cache.size_bytes for cache in caches]
    if node.exclusive:
        size_bytes[-1] += node.bytes_above_last_cache
        notes.append(
            "the last-level cache is smaller than those above it together, and cannot include "
            "them: it is simulated with the size of all levels, and evicts nothing from the others"
        )
    shapes = [
        shape_with(cache.ways, size, line_bytes)
        if cache.ways
        else shape_of(size, line_bytes, PRIVATE_WAYS_MIN)
        for cache, size in zip(caches[:-1], size_bytes, strict=False)
    ]
    shapes.append(shape_with(caches[-1].ways or LAST_WAYS, size_bytes[-1], line_bytes))
    notes += _notes_on_ways(caches, [ways for _, ways in shapes])
    levels = tuple(
        _level(cpu_nodes, topology(guest).threads, cache, shape)
        for cache, shape in zip(caches, shapes, strict=True)
    )
    return PlayedCaches(levels, cpu_nodes, line_bytes, tuple(notes), node.exclusive)


def _notes_on_ways(caches: list[CacheLevel], played: list[int]) -> Iterator[str]:
    assumed = [
        f"{ways} ways of L{cache.level}"
        for cache, ways in zip(caches, played, strict=True)
        if cache.ways is None
    ]
    if assumed:
        yield f"{', '.join(assumed)} are assumed"
    for cache, ways in zip(caches, played, strict=True):
        if cache.ways not in (None, ways):
            yield f"L{cache.level} is simulated with {ways} ways instead of {cache.ways}"
    yield "replacement is LRU"


def _level(
    cpu_nodes: tuple[int, ...], threads_per_core: int, cache: CacheLevel, shape: tuple[int, int]
) -> PlayedLevel:
    """Instances are counted over all nodes; processors of a core are neighbours."""
    first = 0
    instance: list[int] = []
    for position in dict.fromkeys(cpu_nodes):
        count = cpu_nodes.count(position)
        of_node = [k // threads_per_core // cache.shared_by_cores for k in range(count)]
        instance += [first + k for k in of_node]
        first += of_node[-1] + 1
    sets, ways = shape
    return PlayedLevel(cache.level, sets, ways, first, tuple(instance))

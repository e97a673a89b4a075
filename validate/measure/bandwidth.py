"""Bandwidth of streams by number of threads, by traffic and by node pair; latency under load."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .bench import LINE_BYTES, Bench, Member, Samples, ends, methods_of
from .layout import NodeLayout

if TYPE_CHECKING:
    from ...engine_native._engine import Traffic

READ, STREAMS, MIX, LOADED = methods_of("bandwidth").values()
WINDOW_NS = 1_000_000


class Stream(NamedTuple):
    """What streams do: its name in the engine, and of Intel MLC; lines that pass the memory
    controller over lines that the program touches, as a plain store reads its line, then writes;
    and the share of them that are written."""

    kind: str
    mix: str | None
    through: float
    written: float


TRAFFICS = {
    "read": Stream("READ", None, 1.0, 0.0),
    "update": Stream("UPDATE", "1:1 Reads-Writes", 1.0, 1 / 2),
    "copy": Stream("COPY", "2:1 Reads-Writes", 1.5, 1 / 3),
    "triad": Stream("TRIAD", "3:1 Reads-Writes", 4.0 / 3.0, 1 / 4),
    "nt-store": Stream("NON_TEMPORAL", "0:1 Reads-Writes, non-temporal", 1.0, 1.0),
    "nt-copy": Stream("NON_TEMPORAL_COPY", "1:1 Reads-Writes, non-temporal", 1.0, 1 / 2),
}
# Additions between two pieces of 4 KiB, falling: from hardly any load to all that there is.
DELAYS = (20_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 100, 0)
QUICK_DELAYS = (4_000, 1_000, 250, 0)


def measure(bench: Bench) -> Iterator[float]:
    """Thread counts, traffics, node pairs, the whole machine."""
    start, home = bench.layout.first
    bench.arena(home)
    yield 0.05
    counts = thread_counts(len(start.cores))
    for at, threads in enumerate(counts):
        samples = _read(bench, start.cores[:threads], home)
        bench.add("read-bandwidth", samples, "bandwidth", READ, threads=threads, traffic="read",
                  **ends(start, home))  # fmt: skip
        yield 0.05 + 0.3 * (at + 1) / len(counts)
    pairs = [(a, b) for a in bench.layout.starts for b in bench.layout.homes]
    for at, (a, b) in enumerate(pairs):
        samples = _read(bench, a.cores, b)
        bench.add("memory.bandwidth", samples, "bandwidth", READ, threads=len(a.cores),
                  traffic="read", **ends(a, b))  # fmt: skip
        yield 0.35 + 0.3 * (at + 1) / len(pairs)
    if len(bench.layout.starts) > 1:
        members = [m for node in bench.layout.starts for m in _readers(bench, node.cores, node)]
        samples = bench.run(members, limit_s=0.2, window_ns=WINDOW_NS).rates()
        bench.add("machine.bandwidth", samples, "bandwidth", READ, threads=len(members),
                  traffic="read")  # fmt: skip
    yield from _traffics(bench, start, home)


def thread_counts(most: int) -> list[int]:
    """1, 2, 4 and so on, and ``most``."""
    counts = [1]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    return counts if most == 1 else [*counts, most]


def _streams(
    bench: Bench,
    cpus: Sequence[int],
    home: NodeLayout,
    traffic: "Traffic",
    delay: int = 0,
    *,
    part: tuple[float, float] = (0.0, 1.0),
) -> list[Member]:
    """A stream on each CPU, each through its own share of that part of the node's arena."""
    from ...engine_native._engine import stream

    arena = bench.arena(home)
    first, last = (int(edge * arena.size_bytes) for edge in part)
    share = (last - first) // len(cpus) // LINE_BYTES * LINE_BYTES
    return [
        (cpu, stream(arena, first + k * share, share, traffic, delay)) for k, cpu in enumerate(cpus)
    ]


def _readers(bench: Bench, cpus: Sequence[int], home: NodeLayout) -> list[Member]:
    from ...engine_native._engine import Traffic

    return _streams(bench, cpus, home, Traffic.READ)


def _read(bench: Bench, cpus: Sequence[int], home: NodeLayout) -> Samples:
    return bench.run(_readers(bench, cpus, home), limit_s=0.2, window_ns=WINDOW_NS).rates()


def _traffics(bench: Bench, start: NodeLayout, home: NodeLayout) -> Iterator[float]:
    from ...engine_native import _engine

    counts = [len(start.cores)] if bench.effort.quick else [*{1, len(start.cores)}]
    cases = [(name, threads) for name in TRAFFICS if name != "read" for threads in counts]
    for at, (name, threads) in enumerate(cases):
        traffic = TRAFFICS[name]
        if name.startswith("nt-") and not _engine.has_non_temporal_stores():
            continue
        members = _streams(
            bench, start.cores[:threads], home, getattr(_engine.Traffic, traffic.kind)
        )
        bench.written(home)
        samples = bench.run(members, limit_s=0.2, window_ns=WINDOW_NS).rates()
        bench.add("stream-bandwidth", samples, "bandwidth", STREAMS, threads=threads, traffic=name,
                  **ends(start, home))  # fmt: skip
        if threads == len(start.cores) and traffic.mix is not None:
            bench.add("mix-bandwidth", samples.scaled(traffic.through), "bandwidth",
                      MIX.format(name, threads), threads=threads, traffic=name,
                      **ends(start, home))  # fmt: skip
        yield 0.65 + 0.35 * (at + 1) / len(cases)


def measure_loaded(bench: Bench) -> Iterator[float]:
    """Latency seen by one core while all others read from their own nodes, more and more."""
    from ...engine_native._engine import Traffic, chase

    first, home = bench.layout.first
    arena = bench.arena(home)
    size = arena.size_bytes // 2
    lines = bench.cycle(home, size)
    yield 0.1
    chaser, others = first.cores[0], first.cores[1:]
    if len(bench.layout.cpus) < 2:
        bench.warn("loaded latency: not measured: one CPU cannot load the memory and measure")
        return
    delays = QUICK_DELAYS if bench.effort.quick else DELAYS
    for at, delay in enumerate([None, *delays]):
        # Each load from another line on: the caches may hold those that were loaded last. Of the
        # cycle as it was laid they hold some at first.
        start = lines // (len(delays) + 1) * at
        members: list[Member] = [(chaser, chase(arena, start, lines // 4 if at == 0 else 1024))]
        if delay is not None:
            if others:
                members += _streams(bench, others, home, Traffic.READ, delay, part=(0.5, 1.0))
            for node in bench.layout.starts[1:]:
                if node.memory_bytes:
                    members += _streams(bench, node.cores, node, Traffic.READ, delay)
        done = bench.run(members, limit_s=0.3, window_ns=WINDOW_NS)
        # The one that chases loads a line at a time.
        bytes_each = [LINE_BYTES] + [1] * (len(members) - 1)
        rates = done.amounts * bytes_each / done.elapsed_ns * 1e9
        load = {"threads": len(members) - 1, "delay": delay}
        bench.add("loaded.latency", done.ns_each(), "time", LOADED, size=size, **load)
        bench.add("loaded.bandwidth", done.of(rates.sum(axis=1)), "bandwidth", LOADED, **load)
        yield 0.1 + 0.9 * (at + 1) / (len(delays) + 1)

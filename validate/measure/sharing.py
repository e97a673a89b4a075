"""Atomic operations alone and contended, and messages from core to core."""

import random
from collections.abc import Iterator
from itertools import combinations

from .bandwidth import thread_counts
from .bench import Bench

ALONE = "atomic operations on a line that no other core uses"
CONTENDED = "atomic operations of all threads on one line; time of one as a thread sees it"
SEPARATE_LINES = 4  # a processor may fetch lines in pairs
PING_PONG = "a word on one line written and answered in turn; half a round trip"


def measure_atomics(bench: Bench) -> Iterator[float]:
    """fetch-add and increments by compare-and-swap, on one core and on many."""
    from ...engine_native._engine import cas_increments, fetch_adds

    makers = {"fetch-add": fetch_adds, "cas-increment": cas_increments}
    home = bench.layout.homes[0]
    block = bench.block(home, 2 << 20, what="atomics")
    yield 0.1
    cores = bench.layout.cores
    cases = [(name, threads) for name in makers for threads in thread_counts(len(cores))]
    for at, (name, threads) in enumerate(cases):
        members = [(cpu, makers[name](block, SEPARATE_LINES)) for cpu in cores[:threads]]
        done = bench.run(members, limit_s=0.2)
        method = ALONE if threads == 1 else CONTENDED
        # The mean over threads, from the rate of all: they wait for one another.
        each = done.of(threads / (done.amounts / done.elapsed_ns).sum(axis=1))
        bench.add(name, each, "time", method, threads=threads, home=home.id)
        yield 0.1 + 0.9 * (at + 1) / len(cases)


def measure_messages(bench: Bench) -> Iterator[float]:
    """One-way latency between CPUs, hardware threads of one core included."""
    from ...engine_native._engine import ping_pong

    pairs = list(combinations(sorted(bench.layout.cpus), 2))
    if not pairs:
        bench.warn("messages: not measured: there is only one CPU")
        return
    most = bench.effort.pairs_max
    if len(pairs) > most:
        bench.warn(f"messages: {most} of {len(pairs):,} pairs of CPUs, drawn at random")
        pairs = sorted(random.Random(1).sample(pairs, most))
    node_of = {cpu: node.id for node in bench.layout.nodes for cpu in node.cpus}
    blocks = {node.id: bench.block(node, 2 << 20, what="messages") for node in bench.layout.homes}
    for at, (cpu, peer) in enumerate(pairs):
        home = node_of[cpu] if node_of[cpu] in blocks else min(blocks)
        block = blocks[home]
        members = [
            (cpu, ping_pong(block, SEPARATE_LINES, True)),
            (peer, ping_pong(block, SEPARATE_LINES, False)),
        ]
        samples = bench.run(members, limit_s=0.2).ns_each()
        bench.add("message.latency", samples, "time", PING_PONG, cpu=cpu, peer=peer, home=home)
        yield (at + 1) / len(pairs)

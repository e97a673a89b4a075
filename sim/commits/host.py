"""Commits between processes of one host: what their steps cost, and how they share processors.

From measured facts of single steps (``processes`` of a machine file) to the same parameters that a
cluster has: a message costs its sender, and its receiver, time of a processor.

- Over shared memory, RSI's verbs are the client's own loads, stores and atomics: no server takes
  part. What a READ or WRITE of a block costs depends on how much memory the records take, as caches
  and the processor's tables of pages hold a part of it.
- Over other transports the engine's servers work for the verbs (UCX emulates them over TCP), and
  2PC's messages are messages. Each end's own time per message is what was measured of many at a
  time; what the first of them took longer is paid once a look, however many that finds.
- A line that another processor has changed comes from its cache: of the timestamps' bits one when
  a client looks at them, one when it sets its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...topologies import Machine
from ...topologies.processes import BlockCost, EndCost, ProcessCosts, TransportCosts
from ...workloads import Workload
from ...workloads.key_specs import HotRangeSpec, ZipfSpec
from .host_spreads import Part, direct_spreads, end_spread, wake_spread
from .parameters import MessageCost
from .processors import Processors, homes
from .sizes import WORD, Records, Sizes
from .spread import Spread

PS_PER_S = 1e12
# How the engine plays it (engine_native/rsi): looks before it sleeps, with processors for all and
# without; blocks that a server keeps of what clients create, and of each client at the most.
SPINS, SPINS_CROWDED = 64, 1
INSERT_BYTES, INSERTS_KEPT_MAX, INSERTS_KEPT_MIN = 64 << 20, 4096, 4
CLOCKS = 2  # looks at the clock, of a transaction
# Linux 6.18, kernel/sched/fair.c: sysctl_sched_base_slice, scaled by the logarithm of the
# processors, of which so many count. It ends at a tick: that is the turn which is measured.
BASE_SLICE_S, CPUS_COUNTED = 0.7e-3, 8
CACHE_SHARE = 0.5  # of a cache, for a region that it holds: the rest goes to other data


@dataclass(frozen=True)
class HostCosts:
    """Costs of messages by type, of a server's work on records, and the processors; how steps on
    messages vary, by type, and being woken."""

    messages: Mapping[str, tuple[MessageCost, ...]]
    read_work_ps: int
    install_work_ps: int
    processors: Processors
    spreads: Mapping[str, Spread]
    wake_spread: Spread | None


class BlockCosts:
    """Seconds of a step by size of the block and of the memory that blocks lie in.

    Between measured points in proportion to the size, and to the logarithm of the region; beyond
    the last as that, below the first in proportion to the size. ``together``: while others work on
    the same memory.
    """

    def __init__(self, blocks: Sequence[BlockCost], *, together: bool = False) -> None:
        self._end = "_together" if together and blocks[0].get_together is not None else ""
        self._regions = sorted({block.region.value for block in blocks})
        self._rows = {
            region: sorted(
                (b for b in blocks if b.region.value == region), key=lambda b: b.size.value
            )
            for region in self._regions
        }

    @property
    def largest_region(self) -> float:
        """Of the measured ones."""
        return self._regions[-1]

    def seconds(self, step: str, size: float, region: float) -> float:
        """``step``: get, update or insert."""
        at_regions = [self._at(step, size, known) for known in self._regions]
        return float(np.interp(math.log(region), np.log(self._regions), at_regions))

    def _at(self, step: str, size: float, region: float) -> float:
        row = self._rows[region]
        known = [(b.size.value, getattr(b, step + self._end)) for b in row]
        return _along([(at, value.value) for at, value in known if value is not None], size)


class Ends:
    """Seconds at the two ends of a transport, by operation, size and number posted at once."""

    def __init__(self, costs: TransportCosts) -> None:
        self.costs = costs
        self._of: dict[tuple[str, int], list[EndCost]] = {}
        for end in costs.ends:
            self._of.setdefault((end.operation, end.count), []).append(end)

    def total(self, operation: str, part: str, size: float, count: float) -> float:
        """Of ``count`` together; a straight line through the measured counts."""
        points = []
        for (of, known), ends in sorted(self._of.items()):
            if of == operation:
                at = [(e.size.value, getattr(e, part).value) for e in ends]
                points.append((float(known), known * _along(sorted(at), size, floor=True)))
        return _along(points, count)

    def each(self, operation: str, part: str, size: float) -> float:
        """Of one more among several."""
        counts = sorted(count for of, count in self._of if of == operation)
        first, last = counts[0], counts[-1]
        if first == last:
            return self.total(operation, part, size, first) / first
        more = self.total(operation, part, size, last) - self.total(operation, part, size, first)
        return max(more / (last - first), 0.0)

    def once(self, operation: str, part: str, size: float) -> float:
        """What the first of them takes longer than the others."""
        return max(self.total(operation, part, size, 1) - self.each(operation, part, size), 0.0)


def _along(points: Iterable[tuple[float, float]], at: float, *, floor: bool = False) -> float:
    """On lines through the points; beyond them on the last two's, and on the first two's (with
    ``floor``: as the first)."""
    known = list(points)
    if len(known) == 1 or (floor and at <= known[0][0]):
        return known[0][1]
    upper = next((k for k in range(1, len(known)) if at <= known[k][0]), len(known) - 1)
    (x0, y0), (x1, y1) = known[upper - 1], known[upper]
    return max(y0 + (y1 - y0) * (at - x0) / (x1 - x0), 0.0)


@dataclass(frozen=True)
class Host:
    """A run on one host. ``storage``: servers with records; a timestamp server is another one."""

    clients: int
    storage: int
    transport: str
    one_sided: bool
    versions: int
    record_bytes: float
    vector_bytes: float
    cpus: int

    @property
    def direct(self) -> bool:
        """Whether verbs need no server."""
        return self.one_sided and self.transport == "shm"

    @property
    def active(self) -> int:
        """Processes that want a processor."""
        return self.clients if self.direct else self.clients + self.storage + 1

    @property
    def together(self) -> bool:
        """Whether clients run at the same time."""
        return min(self.clients, self.cpus) > 1

    @property
    def crowded(self) -> bool:
        """Whether some must wait for one."""
        return self.active > self.cpus

    @property
    def block_bytes(self) -> float:
        """Of a record, with all its versions."""
        return self.versions * (WORD + self.record_bytes)

    @property
    def insert_bytes(self) -> float:
        """Of all places that created records take in turn."""
        kept = INSERT_BYTES // (self.clients * self.block_bytes)
        kept = max(min(kept, INSERTS_KEPT_MAX), INSERTS_KEPT_MIN)
        return self.storage * self.clients * kept * self.block_bytes


def host_costs(
    host: Host,
    facts: ProcessCosts,
    sizes: Sizes,
    machine: Machine,
    workload: Workload,
    records: Records,
) -> HostCosts:
    """Of all messages, in the order of ``sizes``."""
    blocks = BlockCosts(facts.blocks, together=host.together)
    region = _Region(host, machine, workload, blocks)
    ends = Ends(facts.transports[host.transport]) if not host.direct else None
    spreads: dict[str, Spread] = {}
    if ends is not None and (spread := end_spread(ends.costs)) is not None:
        spreads = dict.fromkeys(sizes, spread)
    if not host.one_sided:
        assert ends is not None
        messages = {
            name: tuple(_message(ends, size) for size in of_type) for name, of_type in sizes.items()
        }
        messages = _with_begin(messages, "snapshot-request", _begin_s(facts, records))
    elif ends is None:
        messages, spreads = _direct(host, facts, blocks, region, records, sizes)
    else:
        messages = _served(host, ends, facts, records, sizes)
    read_s = region.mean("get", host.block_bytes)
    insert_s = blocks.seconds("insert", host.block_bytes, host.insert_bytes)
    processors = _processors(host, facts, ends)
    return HostCosts(
        messages=messages,
        read_work_ps=_ps(read_s),
        install_work_ps=_ps(insert_s * records.changed / records.written),
        processors=processors,
        spreads=spreads,
        wake_spread=None if ends is None else wake_spread(ends.costs, processors),
    )


def _processors(host: Host, facts: ProcessCosts, ends: Ends | None) -> Processors:
    shared = Processors(
        count=host.cpus,
        slice_ps=_ps(BASE_SLICE_S * (1 + int(math.log2(min(host.cpus, CPUS_COUNTED))))),
        tick_ps=max(_ps(facts.slice.value), 1),
        switch_ps=_ps(max(facts.turn.value - facts.give_way.value, 0.0)),
        yield_ps=_ps(facts.give_way.value),
        gives_way=host.crowded,
        homes=homes(
            host.clients,
            host.storage,
            1,
            host.cpus,
            served=not host.direct,
            manages=not host.one_sided,
        ),
    )
    if ends is None:
        return shared
    costs = ends.costs
    size = costs.sleeper_size.value
    operation = "get" if host.one_sided else "message"
    post_s = ends.total("message", "post", size, 1)
    there_s = post_s + ends.total("message", "serve", size, 1)
    # On one processor all comes in turn: the message, going to sleep, the other one's waking up.
    sleep_s = max(costs.sleeper_same.value - there_s - costs.arm.value, 0.0)
    other = costs.sleeper_other or costs.sleeper_same
    posted = costs.post_sleeper.value if costs.post_sleeper else post_s
    # What both ends take longer where their lines lie in another processor's caches: requests and
    # answers alternate, so that either end has both.
    across_s = 0.0
    if costs.post_across is not None and costs.serve_across is not None:
        across_s += max(costs.post_across.value - post_s, 0.0)
        across_s += max(costs.serve_across.value - (there_s - post_s), 0.0)
    interrupt_s = 0.0
    if costs.interrupted is not None:
        # Less what the sleeper does there in any case: it takes over, receives, answers (which
        # wakes who asked), sleeps, and the other one takes over again.
        takes_over_s = max(facts.turn.value - facts.give_way.value, 0.0)
        own_s = there_s + max(posted - post_s, 0.0) + costs.arm.value + sleep_s + takes_over_s
        interrupt_s = max(costs.interrupted.value - own_s, 0.0)
    looks = (SPINS_CROWDED if host.crowded else SPINS) + 1
    return replace(
        shared,
        look_ps=_ps(ends.once(operation, "serve", size)),
        spin_ps=_ps(looks * costs.look.value + costs.arm.value),
        sleep_ps=_ps(sleep_s),
        notify_ps=_ps(max(posted - post_s, 0.0)),
        across_ps=_ps(across_s),
        interrupt_ps=_ps(interrupt_s),
        wake_ps=_ps(max(other.value - there_s - sleep_s - across_s, 0.0)),
    )


def _begin_s(facts: ProcessCosts, records: Records) -> float:
    """A client's own time for each transaction: it draws records, looks at the clock and at its
    timestamps, and counts what it did."""
    drawn = records.reads + records.writes - records.updates
    note_s = facts.note.value if facts.note is not None else 0.0
    return (
        drawn * facts.key_draw.value + CLOCKS * facts.clock.value + facts.timestamp.value + note_s
    )


def _direct(
    host: Host,
    facts: ProcessCosts,
    blocks: BlockCosts,
    region: _Region,
    records: Records,
    sizes: Sizes,
) -> tuple[dict[str, tuple[MessageCost, ...]], dict[str, Spread]]:
    """All is the client's own time; answers cost nothing. And how it varies."""
    size = host.block_bytes
    lines_s = 0.0
    if facts.line is not None:
        # Others' lines, of those that run at the same time.
        lines_s = (min(host.clients, host.cpus) - 1) * facts.line.value
    get_s = region.mean("get", size)
    # They were measured one after the other: on a restless host one may be more than both.
    update_s = max(region.mean("update", size) - get_s, 0.0)
    insert_s = blocks.seconds("insert", size, host.insert_bytes)
    lock_s = min(facts.word_add.value, update_s)
    updates = records.updates
    written_s = updates * max(update_s - lock_s, 0.0) + (records.writes - updates) * insert_s
    words_s = _along(
        [(8.0, facts.word_get.value), (8192.0, facts.words_get.value)], host.vector_bytes
    )
    begin_s = words_s + _begin_s(facts, records)
    seconds = {
        "snapshot-read": begin_s + lines_s,
        "read": get_s,
        "cas": lock_s,
        "write": written_s / records.writes,
        "unlock": facts.word_add.value,
        "bit": facts.word_add.value + lines_s,
        "claim": facts.word_add.value + lines_s,
        "break": facts.word_add.value,
    }
    spreads = direct_spreads(
        facts,
        records,
        together=host.together,
        begin_s=begin_s,
        lines_s=lines_s,
        lock_s=lock_s,
        reads=region.parts("get", size),
        writes=[
            (often, at, max(both_s - blocks.seconds("get", size, at), 0.0))
            for often, at, both_s in region.parts("update", size)
        ],
        inserts=(1.0, host.insert_bytes, insert_s),
    )
    messages = {name: (MessageCost(send_ps=_ps(seconds.get(name, 0.0))),) for name in sizes}
    return messages, {name: spread for name, spread in spreads.items() if name in sizes}


def _served(
    host: Host, ends: Ends, facts: ProcessCosts, records: Records, sizes: Sizes
) -> dict[str, tuple[MessageCost, ...]]:
    """Verbs that a server works for: by the client posted and completed, by the server served."""
    block = host.block_bytes

    def verb(operation: str, size: float) -> tuple[float, float, float]:
        post, serve, complete = (
            ends.each(operation, part, size) for part in ("post", "serve", "complete")
        )
        return post, serve, complete

    def sum_of(*parts: tuple[float, float, float]) -> tuple[float, float, float]:
        post, serve, complete = map(sum, zip(*parts, strict=True))
        return post, serve, complete

    # All blocks of a server are flushed together: a share of that is each one's.
    each_server = max(records.writes / host.storage, 1.0)
    put = tuple(
        ends.total("put", part, block, each_server) / each_server
        - (ends.once("put", part, block) / each_server if part != "post" else 0.0)
        for part in ("post", "serve", "complete")
    )
    word, cas, add = verb("get", WORD), verb("compare-and-swap", WORD), verb("add", WORD)
    verbs = {
        "snapshot-read": verb("get", host.vector_bytes),
        "read": sum_of(verb("get", block), word),  # and its first word again
        "cas": cas,
        "write": put,
        "unlock": verb("put", 2 * WORD),
        "bit": add,
        "claim": cas,
        "break": cas,
    }
    begin_s = _begin_s(facts, records)
    messages: dict[str, tuple[MessageCost, ...]] = {}
    for name, answer in ANSWERS.items():
        if name not in sizes:
            continue
        post_s, serve_s, complete_s = verbs[name]
        if name == "snapshot-read":
            post_s += begin_s
        messages[name] = (MessageCost(send_ps=_ps(post_s), receive_ps=_ps(serve_s)),)
        messages[answer] = (MessageCost(receive_ps=_ps(complete_s)),)
    # The signaled one is flushed: what the first of several takes longer.
    flush = {part: ends.once("add", part, WORD) for part in ("post", "serve", "complete")}
    messages["bit-done"] = (
        MessageCost(send_ps=_ps(flush["serve"]), receive_ps=_ps(flush["complete"])),
    )
    for name in sizes:
        if name not in messages:
            messages[name] = tuple(_message(ends, size) for size in sizes[name])
    return {name: messages[name] for name in sizes}


ANSWERS = {
    "snapshot-read": "snapshot-data",
    "read": "record",
    "cas": "cas-result",
    "write": "write-done",
    "unlock": "unlock-done",
    "bit": "bit-done",
    "claim": "claim-result",
    "break": "break-result",
}


def _message(ends: Ends, size: float) -> MessageCost:
    return MessageCost(
        send_ps=_ps(ends.each("message", "post", size)),
        receive_ps=_ps(ends.each("message", "serve", size)),
    )


def _with_begin(
    messages: Mapping[str, tuple[MessageCost, ...]], name: str, begin_s: float
) -> dict[str, tuple[MessageCost, ...]]:
    changed = dict(messages)
    (cost,) = changed[name]
    changed[name] = (replace(cost, send_ps=cost.send_ps + _ps(begin_s)),)
    return changed


class _Region:
    """Mean cost of a step on a record, by how often which records are asked for."""

    def __init__(
        self, host: Host, machine: Machine, workload: Workload, blocks: BlockCosts
    ) -> None:
        (operation,) = workload.operations.values()
        self._keys = operation.keys
        self._records = workload.objects[operation.object].records
        self._blocks = blocks
        self._caches = [level.size_bytes for level in machine.nodes[0].caches]

    def mean(self, step: str, size: float) -> float:
        """Seconds."""
        return sum(often * seconds for often, _, seconds in self.parts(step, size))

    def parts(self, step: str, size: float) -> list[Part]:
        """By region: how often a record lies in it, its bytes, and seconds there."""
        whole = self._records * size
        keys = self._keys
        shares = [(1.0, whole)]
        if isinstance(keys, HotRangeSpec):
            # Who is asked for often stays in a cache.
            shares = [(keys.share, (keys.end - keys.first) * size), (1.0 - keys.share, whole)]
        if isinstance(keys, ZipfSpec):
            shares = self._zipf(size, whole, keys.exponent)
        return [
            (often, region, self._blocks.seconds(step, size, region)) for often, region in shares
        ]

    def _zipf(self, size: float, whole: float, exponent: float) -> list[tuple[float, float]]:
        """Each cache holds the most popular records that fit; the rest is in memory."""
        ranks = np.arange(1, min(self._records, 1_000_000) + 1, dtype=np.float64)
        share = np.cumsum(ranks**-exponent)
        share /= share[-1]
        shares, held_before = [], 0.0
        for cache in sorted(self._caches):
            fits = int(min(CACHE_SHARE * cache / size, len(ranks)))
            held = float(share[fits - 1]) if fits else 0.0
            shares.append((max(held - held_before, 0.0), max(fits * size, size)))
            held_before = max(held, held_before)
        return [*shares, (1.0 - held_before, whole)]


def _ps(seconds: float) -> int:
    return round(seconds * PS_PER_S)

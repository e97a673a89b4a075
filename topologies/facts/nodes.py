"""Facts of nodes that a source does not tell: cores, caches, memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...inputs import Quantity
from ..schema import Cache, Memory, NodeType
from .catalogue import Entry, core_of, facts
from .schema import Core, CoreCache, Guess, Origin, bounds


@dataclass(frozen=True)
class Place:
    """Where the nodes of a type stand: how many share a package, what was measured of them.

    ``bandwidth_known``, ``latency_known``: of a node's own memory, from tables of pairs.
    """

    nodes_per_package: int
    bandwidth_known: bool
    latency_known: bool


def origin_of(entry: Entry | Guess) -> Origin:
    """How the entry is named in sources."""
    return Origin(entry.label) if isinstance(entry, Entry) else Origin(entry.title, guessed=True)


def with_cpus(kind: NodeType, entry: Entry | Guess, place: Place) -> NodeType:
    """The node type of a processor with what is missing filled in."""
    origin, core = origin_of(entry), core_of(entry)
    clock = kind.clock or _clock(entry, origin)
    made: dict[str, Any] = {"clock": clock}
    for name in ("ipc", "outstanding_misses", "streaming_misses", "reorder_window"):
        known = getattr(core, name)
        if getattr(kind, name) is None and known is not None:
            made[name] = origin.fact(known, core.source)
    made["caches"] = tuple(_caches(kind, entry, core, clock, place))
    if isinstance(entry, Entry):
        made |= _dies(kind, entry, made["caches"])
    if not kind.tlbs:
        made["tlbs"] = tuple(
            tlb.model_copy(update={"source": origin.text(tlb.source)}) for tlb in core.tlbs
        )
    memory: dict[str, Any] = {}
    if kind.memory.bandwidth is None and not place.bandwidth_known:
        memory["bandwidth"] = _bandwidth(kind, entry, place)
    if kind.memory.latency is None and not place.latency_known:
        latency = entry.processor.latency if isinstance(entry, Entry) else entry.latency
        memory["latency"] = origin.taken(latency.local)
    made["memory"] = kind.memory.model_copy(update=memory)
    return kind.model_copy(update=made)


def memory_only(kind: NodeType, measured_Bps: float | None, *, latency_known: bool) -> NodeType:
    """The node type of memory without CPUs with what is missing filled in: a guess by its kind.

    ``measured_Bps``: the most that a node draws from it by the source's own tables.
    """
    name = _memory_kind(kind.memory)
    known = facts().memory_nodes[name]
    origin = Origin(f"memory of kind {name}", guessed=True)
    made: dict[str, Any] = {}
    if kind.memory.bandwidth is None:
        made["bandwidth"] = (
            origin.taken(known.bandwidth)
            if measured_Bps is None
            else Quantity(measured_Bps, measured_Bps, measured_Bps, "as the nearest node draws")
        )
    if kind.memory.latency is None and not latency_known:
        made["latency"] = origin.taken(known.latency)
    return kind.model_copy(update={"memory": kind.memory.model_copy(update=made)})


def _memory_kind(memory: Memory) -> str:
    kind = memory.kind.upper()
    synonyms = {"NVM": ("NVM", "PMEM", "OPTANE"), "GPU": ("GPU",), "CXL": ("CXL",)}
    for name, words in synonyms.items():
        if any(word in kind for word in words):
            return name
    return kind if kind in facts().memory_nodes else "unknown"


def _clock(entry: Entry | Guess, origin: Origin) -> Quantity:
    if isinstance(entry, Guess):
        return origin.taken(entry.clock)
    model, family = entry.model, entry.processor
    if model.clock is None:
        return origin.taken(family.clock, family.source)
    turbo = max(model.turbo.value if model.turbo else 0.0, model.clock.value)
    return origin.quantity(
        model.clock.value, model.clock.value, turbo, f"{family.source}; range up to turbo"
    )


def _caches(
    kind: NodeType, entry: Entry | Guess, core: Core, clock: Quantity, place: Place
) -> list[Cache]:
    origin = origin_of(entry)
    last = _last_latency(entry, origin)
    found = list(kind.caches) or _unseen_caches(kind, entry, core, place)
    top = max((cache.level for cache in found), default=0)
    made = []
    for cache in found:
        latency = cache.latency
        if latency is None and cache.level <= len(core.caches):
            latency = _cycles(core.caches[cache.level - 1], clock, core, origin)
        elif latency is None and cache.level == top > 2:
            latency = last
        made.append(cache.model_copy(update={"latency": latency}))
    return made


def _dies(kind: NodeType, entry: Entry, caches: Sequence[Cache]) -> dict[str, Any]:
    """What a die's link carries, where it is known how many cores of the model are on one."""
    known, last = entry.processor.die_bandwidth, entry.processor.last_level
    if known is None or last is None or kind.die_bandwidth is not None:
        return {}
    if not (kind.caches or entry.model.cache):
        return {}
    found: dict[str, Any] = {"die_bandwidth": origin_of(entry).taken(known)}
    if last.on_die > 1:
        found["die_cores"] = last.on_die * max(cache.shared_by_cores for cache in caches)
    return found


def _cycles(cache: CoreCache, clock: Quantity, core: Core, origin: Origin) -> Quantity:
    low, high = bounds(cache.cycles)
    source = f"{cache.cycles.value:g} cycles, {cache.cycles.source or core.source}"
    value = cache.cycles.value / clock.value
    # The clock's own range is not counted twice: a faster core has faster caches.
    return origin.quantity(value, low / clock.value, high / clock.value, source)


def _last_latency(entry: Entry | Guess, origin: Origin) -> Quantity | None:
    if isinstance(entry, Guess):
        return origin.taken(entry.last_level_latency)
    last = entry.processor.last_level
    return None if last is None else origin.taken(last.latency)


def _unseen_caches(kind: NodeType, entry: Entry | Guess, core: Core, place: Place) -> list[Cache]:
    """Caches of a node whose tree has none, as virtual machines have it."""
    if isinstance(entry, Guess) or not kind.cores:
        return []
    made = [
        Cache(level=level, size=cache.size, shared_by_cores=cache.shared_by_cores, line=core.line)
        for level, cache in enumerate(core.caches, 1)
    ]
    last = entry.processor.last_level
    if last is not None:
        size, origin = entry.model.cache or last.size, origin_of(entry)
        if last.cores is None:
            # Less where firmware splits the socket; a node may have several sockets, a cache each.
            sockets = kind.processor.packages if kind.processor is not None else 1
            part, sharers = 1 / place.nodes_per_package, -(-kind.cores // sockets)
        elif entry.model.cache is None and last.each is not None:
            size, part, sharers = last.each, 1.0, min(kind.cores, last.cores)
        else:
            cores = entry.model.cores or entry.processor.cores
            part = 1 / (entry.model.caches or -(-cores // last.cores))
            sharers = min(kind.cores, round(cores * part))
        own = origin.quantity(
            size.value * part, size.low * part, size.high * part, entry.processor.source
        )
        made.append(Cache(level=3, size=own, shared_by_cores=min(sharers, 4_096), line=core.line))
    return made


def _bandwidth(kind: NodeType, entry: Entry | Guess, place: Place) -> Quantity:
    origin = origin_of(entry)
    if isinstance(entry, Guess):
        each, cores = entry.bandwidth_per_core, float(kind.cores or 1)
        return origin.quantity(
            each.value * cores,
            each.low * cores,
            each.high * cores,
            f"{cores:.0f} cores of {each.value / 1e9:g} GB/s; {each.source}",
        )
    memory, types = entry.processor.memory, facts().memory_types
    fastest = entry.model.memory or memory.type
    fast_Bps = types[fastest].channel_Bps
    slow_Bps = min(fast_Bps, types[memory.slowest or fastest].channel_Bps)
    packages = kind.processor.packages if kind.processor is not None else 1
    sockets = 1.0 if memory.per == "node" else packages / place.nodes_per_package
    low, high = bounds(memory.share)
    peak_Bps = memory.channels * fast_Bps * sockets
    value_Bps, low_Bps = memory.share.value * peak_Bps, low * memory.channels * slow_Bps * sockets
    source = (
        f"{memory.share.value:.0%} of {peak_Bps / 1e9:.4g} GB/s, {memory.channels} channels of "
        f"{fastest} a socket, reached in reads"
    )
    if slow_Bps < fast_Bps:
        source += "; fewer or slower modules give less"
    part = _part_of_socket(kind, entry, sockets)
    if part < 1.0:
        # Of what other tenants leave: from the cores' share to all.
        low_Bps *= part
        value_Bps = math.sqrt(low_Bps * high * peak_Bps)
        source += f"; a virtual machine with {part:.0%} of the cores shares it with others"
    return origin.quantity(value_Bps, low_Bps, high * peak_Bps, source)


def _part_of_socket(kind: NodeType, entry: Entry, sockets: float) -> float:
    """How much of its socket's cores a virtual machine has, 1 on real ones."""
    if kind.processor is None or not kind.processor.virtual:
        return 1.0
    whole = (entry.model.cores or entry.processor.cores) * max(sockets, 1.0 / 64)
    return min(1.0, float(kind.cores or 1) / whole)

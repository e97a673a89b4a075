"""The machine that a guest is: which nodes, how much of their memory, processors and caches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...inputs import InputError
from ...inputs.quantities import counted, size_text
from ..build import build_machine
from ..machine import Machine, Node
from ..nics import with_adapter
from ..schema import Cache, MachineDescription, NodeType
from .platforms import X86_64, Platform, host_architecture, platform_of

PROCESSORS_MAX = 64  # unless asked for more: beyond, the start takes minutes
NODES_MAX = 128  # QEMU's own bound
NODE_BYTES_MIN = 32 << 20
MEMORY_BYTES_MIN = 128 << 20  # in all: what the kernel starts with
_HOST_SHARE = 0.5  # of the host's free memory, unless asked for more
_PAGE_BYTES, _PAGE_RECORD_BYTES = 4096, 64  # Linux's ``struct page``
_MIB = 1 << 20


@dataclass(frozen=True)
class GuestMachine:
    """What a guest shows: nodes of ``machine``, which is scaled already.

    ``nodes``: the position in ``machine.nodes`` of each node of the guest, in the order of the
    guest's numbers; ``memory_bytes``: of each. ``notes``: how it differs from what was asked for.
    """

    machine: Machine
    nodes: tuple[int, ...]
    memory_bytes: tuple[int, ...]
    notes: tuple[str, ...] = ()
    architecture: str = X86_64.architecture

    @property
    def platform(self) -> Platform:
        """What guests of its architecture are like."""
        return platform_of(self.architecture)

    @property
    def page_records_bytes(self) -> float:
        """What the guest's kernel writes about its pages as it starts: memory of this host."""
        return _page_records_bytes(sum(self.memory_bytes))

    @property
    def processors(self) -> int:
        """Processors (hardware threads) of the guest."""
        return sum(self.node(k).threads for k in range(len(self.nodes)))

    def node(self, number: int) -> Node:
        """The machine's node that is the guest's node ``number``."""
        return self.machine.nodes[self.nodes[number]]


def guest_machine(
    machine: Machine,
    *,
    nodes: int | None = None,
    memory_bytes: float | None = None,
    scale: float | None = None,
    architecture: str | None = None,
) -> GuestMachine:
    """The guest of ``machine``, or of its first ``nodes``.

    ``scale`` is the part of the memory, the processors and the caches that it has,
    ``memory_bytes`` its memory in all. Where neither is given, it is made to fit: at most 64
    processors, and half of the host's free memory. ``architecture``: of its processors, by default
    this host's, whose programs run there. Raises InputError where no guest can be so.
    """
    name = machine.name
    platform = platform_of(architecture or host_architecture())
    if scale is not None and not 0 < scale <= 1:
        raise InputError("scale", token=f"{scale:g}", expected="more than 0, at most 1")
    if nodes is not None and not 1 <= nodes <= len(machine.nodes):
        raise InputError(
            "number of nodes",
            token=str(nodes),
            expected=f"1 to {len(machine.nodes)}, as {name} has",
        )
    chosen = range(len(machine.nodes) if nodes is None else nodes)
    if len(chosen) > NODES_MAX:
        raise InputError(
            f"{name} has {len(chosen):,} nodes: QEMU holds {NODES_MAX} (--nodes takes the first)"
        )
    whole = [machine.nodes[k] for k in chosen]
    if not any(node.threads for node in whole):
        raise InputError(f"{name} cannot be emulated: its processors are unknown")
    notes = [] if nodes is None else [f"the first {nodes} of {len(machine.nodes)} nodes"]
    processors = sum(node.threads for node in whole)
    part = scale or _part_of_processors(whole)
    if part < 1:
        machine = build_machine(_with_fewer(machine.description, part, scale or 1.0))
    guest_nodes = [machine.nodes[k] for k in chosen]
    left = sum(node.threads for node in guest_nodes)
    if left < processors:
        notes.append(f"{left} of {processors} processors")
    asked_bytes = sum(node.memory_bytes for node in whole)
    sizes = _memory(name, whole, memory_bytes, scale)
    if sum(sizes) < asked_bytes:
        notes.append(f"{size_text(sum(sizes))} of {size_text(asked_bytes)} of memory")
    if scale is not None and scale < 1:
        notes.append(f"caches scaled by {scale:.3g}")
    able = [node for node in guest_nodes if node.threads]
    places = max(node.cores for node in able) * max(node.threads_per_core for node in able)
    if any(node.threads < places for node in able):
        notes.append(f"each node with processors has {places} of them, as the largest")
    servers = len({*with_adapter(machine)} & {*chosen})
    if servers > 1:
        notes.append(f"its {servers} servers are nodes of one machine, and share its memory")
    if any(node.caches for node in whole):
        notes.append("its system files show QEMU's caches")
    if not platform.attributes:
        notes.append("its firmware reports no latencies and bandwidths")
    # Linux numbers nodes as it finds them: those with processors first.
    order = sorted(chosen, key=lambda k: not machine.nodes[k].threads)
    if [machine.nodes[k].id for k in order] != list(range(len(order))):
        notes.append(
            "nodes are renumbered:  "
            + ", ".join(f"{machine.nodes[k].id} is {number}" for number, k in enumerate(order))
        )
    return GuestMachine(
        machine, tuple(order), tuple(sizes[k] for k in order), tuple(notes), platform.architecture
    )


def _part_of_processors(nodes: Sequence[Node]) -> float:
    """The part of them that fits, each node's number rounded as ``_with_fewer`` rounds it."""
    most = max(node.cores for node in nodes)
    for cores in range(most, 0, -1):
        part = cores / most
        total = sum(_fewer(node.cores, part) * node.threads_per_core for node in nodes)
        if total <= PROCESSORS_MAX:
            return part
    return 1e-9


def _fewer(cores: int, part: float) -> int:
    return max(1, round(cores * part)) if cores else 0


def _with_fewer(whole: MachineDescription, part: float, scale: float) -> MachineDescription:
    """``part`` of the cores of each node, at least one, and ``scale`` of its caches.

    Threads go before the last core does. Caches keep their number per core where they can.
    """
    types = {name: _fewer_of(kind, part, scale) for name, kind in whole.node_types.items()}
    groups = tuple(group.model_copy(update={"cpus": None}) for group in whole.nodes)
    return whole.model_copy(update={"node_types": types, "nodes": groups})


def _fewer_of(kind: NodeType, part: float, scale: float) -> NodeType:
    if not kind.cores:
        return kind
    cores = _fewer(kind.cores, part)
    threads = kind.threads_per_core if kind.cores * part >= 0.75 else 1
    caches = tuple(_fewer_caches(cache, kind.cores, cores, scale) for cache in kind.caches)
    return kind.model_copy(update={"cores": cores, "threads_per_core": threads, "caches": caches})


def _fewer_caches(cache: Cache, before: int, after: int, scale: float) -> Cache:
    """The level's instances in the node hold ``scale`` of what they held in all."""
    shared = max(1, min(after, round(cache.shared_by_cores * after / before)))
    size = cache.size
    if scale < 1:
        instances = before / cache.shared_by_cores, math.ceil(after / shared)
        total = size.value * instances[0] * scale
        line = cache.line.value if cache.line else 64
        size_bytes = max(line * 8, round(total / instances[1] / line) * line)
        size = replace(size, value=min(size.value, size_bytes))
    return cache.model_copy(update={"shared_by_cores": shared, "size": size})


def _memory(
    name: str, nodes: Sequence[Node], wanted_bytes: float | None, scale: float | None
) -> list[int]:
    """Bytes of each node, in whole MiB."""
    unknown = [node.id for node in nodes if math.isnan(node.memory_bytes)]
    if unknown:
        raise InputError(
            f"{name} cannot be emulated: the memory size is unknown of node {unknown[0]}"
        )
    whole_bytes = sum(node.memory_bytes for node in nodes)
    holders = sum(node.memory_bytes > 0 for node in nodes)
    least_bytes = max(holders * NODE_BYTES_MIN, MEMORY_BYTES_MIN)
    free_bytes = _free_bytes()
    if wanted_bytes is None:
        # A power of two: guests that are alike begin where one of them was kept.
        share_bytes = max(2.0 ** math.floor(math.log2(free_bytes * _HOST_SHARE)), least_bytes)
        wanted_bytes = whole_bytes * scale if scale else min(whole_bytes, share_bytes)
    if wanted_bytes < least_bytes:
        raise InputError(
            f"{size_text(wanted_bytes)} of memory is too little for {counted(holders, 'node')}",
            expected=f"at least {size_text(least_bytes)}",
        )
    if wanted_bytes > whole_bytes:
        raise InputError(
            f"{size_text(wanted_bytes)} of memory",
            expected=f"{size_text(whole_bytes)}, as {name} has, or less",
        )
    records_bytes = _page_records_bytes(wanted_bytes)
    if records_bytes > free_bytes:
        raise InputError(
            f"{size_text(wanted_bytes)} of memory are too much for this host: the guest's kernel "
            f"writes {size_text(records_bytes)} about its pages, and {size_text(free_bytes)} are "
            "free (--memory takes less)"
        )
    return [_rounded(node.memory_bytes * wanted_bytes / whole_bytes) for node in nodes]


def _page_records_bytes(memory_bytes: float) -> float:
    return memory_bytes / _PAGE_BYTES * _PAGE_RECORD_BYTES


def _rounded(size_bytes: float) -> int:
    """In steps of 128 MiB, in which Linux counts memory, where that is not much."""
    if not size_bytes:
        return 0
    step = 128 * _MIB if size_bytes >= 1024 * _MIB else 8 * _MIB
    return max(NODE_BYTES_MIN, int(size_bytes // step) * step)


def _free_bytes() -> float:
    """Of this host, with what it holds of files in memory and can give up."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    raise InputError("/proc/meminfo tells no MemAvailable")

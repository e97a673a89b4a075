"""Assumptions where a machine file lacks a whole fact, and the other plausible values.

In addition to the numbers of ``defaults.py``: tables, curves, and effects that are left out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...topologies import Machine
from ...topologies.machine import Node
from .assumptions import LESS, MORE, Assumption, Place, Variant, written
from .defaults import ASSUMED_LATENCY_NS, TYPICAL_LOADED_LATENCY

PAIRS_MAX = 64 * 64  # a table of more pairs is not written out
CURVE_PEAK_BPS = 100e9  # any: only the shape of a curve counts
INTEL = "Intel Optimization Reference Manual"


@dataclass(frozen=True)
class _Fact:
    """A fact of nodes with cores, and what it may well be: words, and what states them."""

    name: str
    value: str
    source: str
    place: tuple[str, ...]
    lacks: Callable[[Node], bool]
    low: tuple[float | str, Callable[[Node], Any]]
    high: tuple[float | str, Callable[[Node], Any]]


def _tlb(entries: int) -> Any:
    return [{"page": "4 KiB", "entries": entries}]


_FACTS = (
    _Fact(
        "reorder window", "not limiting",
        f"Not known; 128 instructions on Nehalem, 512 on Golden Cove ({INTEL})",
        ("reorder_window",), lambda node: node.reorder_window is None,
        (128.0, lambda node: 128), (512.0, lambda node: 512),
    ),
    _Fact(
        "outstanding misses of a core while all work", "as alone",
        "Not known: cores are taken to share nothing that carries their misses",
        ("outstanding_misses_together",),
        lambda node: bool(node.outstanding_misses) and node.outstanding_misses_together is None,
        ("a tenth less", lambda node: LESS * (node.outstanding_misses or 0.0)),
        ("as alone", lambda node: node.outstanding_misses),
    ),
    _Fact(
        "translation buffers", "no page walks",
        f"Not known; 32 entries for pages of 2 MiB on Sandy Bridge, 1,536 on Skylake ({INTEL})",
        ("tlbs",), lambda node: not node.tlbs,
        (32.0, lambda node: _tlb(32)), (1536.0, lambda node: _tlb(1536)),
    ),
    _Fact(
        "caches", "none", "Not known: all data come from memory",
        ("caches",), lambda node: not node.caches,
        ("none", lambda node: []),
        (
            "1 MiB a core",
            lambda node: [{"level": 3, "size": f"{node.cores} MiB", "shared_by_cores": node.cores}],
        ),
    ),
)  # fmt: skip
# By level: a typical latency, and where it comes from. The first level counts as part of the core.
_HITS = {
    2: (5.0, f"10 to 16 cycles on Intel's cores ({INTEL})"),
    3: (30.0, "10 to 70 ns on the servers of the catalogue of facts"),
}


def missing_facts(machine: Machine) -> Iterator[Assumption]:
    """Of everything that the machine file does not say and the cost model asks for."""
    yield from _latency(machine)
    yield from _loaded_latency(machine)
    yield from _coherence(machine)
    yield from _interruptions(machine)
    yield from _links(machine)
    yield from _of_nodes(machine)
    if not _power_known(machine):
        source = "Not known of all nodes: no energy is predicted"
        yield Assumption("power of cores and memory", "unknown", "", source)


def _latency(machine: Machine) -> Iterator[Assumption]:
    """Of pairs: ``CostModel.idle_s``."""
    known, n = machine.latency_ns, len(machine.nodes)
    missing = np.isnan(known)
    missing[:, [node.memory_bytes == 0 for node in machine.nodes]] = False
    missing[[node.cores == 0 for node in machine.nodes], :] = False
    if not missing.any():
        return
    if np.isnan(known).all():
        name, source = ASSUMED_LATENCY_NS.name, ASSUMED_LATENCY_NS.source
        value = float(ASSUMED_LATENCY_NS)
    else:
        name, value = "latency between nodes", float(np.nanmax(known))
        source = "Unknown: assumed as distant as the most distant memory of known latency"

    def variant(times: float) -> Variant:
        table = [
            [
                written(times * value if lacks else ns, "ns") if lacks or ns == ns else None
                for lacks, ns in zip(*rows, strict=True)
            ]
            for rows in zip(missing.tolist(), known.tolist(), strict=True)
        ]
        return Variant(times * value, {("machine", "pair_latency"): table})

    if n * n <= PAIRS_MAX:
        yield Assumption(name, value, "ns", source, variant(LESS), variant(MORE))
    else:
        yield Assumption(name, value, "ns", source)


def _loaded_latency(machine: Machine) -> Iterator[Assumption]:
    """``CostModel.loaded_latency``."""
    if len(machine.loaded_latency) >= 3:
        return

    def variant(times: float) -> Variant:
        ratios = [(load, 1.0 + times * (ratio - 1.0)) for load, ratio in TYPICAL_LOADED_LATENCY]
        points = [
            {
                "bandwidth": written(max(load, 1e-6) * CURVE_PEAK_BPS, "B/s"),
                "latency": written(100.0 * ratio, "ns"),
            }
            for load, ratio in ratios
        ]
        return Variant(f"×{ratios[-1][1]:.3g} at peak", {("machine", "loaded_latency"): points})

    source = (
        "Median of curves that Intel MLC printed on 2-socket Ivy Bridge, Skylake and Ice Lake "
        "servers (KU Leuven's cluster documentation)"
    )
    peak = f"×{TYPICAL_LOADED_LATENCY[-1][1]:g} at peak"
    yield Assumption("rise of latency under load", peak, "", source, variant(LESS), variant(MORE))


def _coherence(machine: Machine) -> Iterator[Assumption]:
    """``CostModel.snoop_domain``."""
    with_cores = sum(node.cores > 0 for node in machine.nodes)
    known = machine.description.coherence
    if (known is not None and not known.doubtful) or with_cores < 2 or not machine.links:
        return
    none, all_probed, snoop = "no snoops", "every miss probes all nodes", {"protocol": "snoop"}
    # A snoop takes no room on links whose messages are not known to.
    requests: dict[Place, Any] = {
        ("machine", "link_types", name, "request"): "8 B"
        for name, kind in machine.description.link_types.items()
        if kind.request is None
    }
    unknown = "Unknown: assumed to be an exact directory; source snooping probes all nodes"
    yield Assumption(
        "coherence",
        all_probed if known is not None and known.protocol == "snoop" else none,
        "",
        unknown if known is None else known.source or "The machine file marks it as uncertain",
        Variant(none, {("machine", "coherence"): {"protocol": "directory"}}),
        Variant(all_probed, {("machine", "coherence"): snoop, **requests}),
        ranged=known is not None,
    )


def _interruptions(machine: Machine) -> Iterator[Assumption]:
    """``Disturbances``."""
    if machine.description.interruptions:
        return
    source = "Not known: a quiet host; Linux' timer ticks every 4 ms (CONFIG_HZ_250), for some 2 µs"
    place, tick = ("machine", "interruptions"), [{"length": "2 us", "every": "4 ms"}]
    ends = Variant("none", {place: []}), Variant("2 µs every 4 ms", {place: tick})
    yield Assumption("interruptions", "none", "", source, *ends)


def _links(machine: Machine) -> Iterator[Assumption]:
    """``CostModel.link_Bps``, ``MachineUse.energy_J``."""
    if len(machine.nodes) > 1 and not machine.links:
        source = "Unknown: traffic between nodes is only limited by the bandwidth of pairs"
        yield Assumption("links", "none", "", source)
    used = {link.kind for link in machine.links}
    places: list[Place] = [
        ("machine", "link_types", name, "energy")
        for name, kind in machine.description.link_types.items()
        if kind.energy is None and used & {name, f"{name}-single", f"{name}-dual"}
    ]
    if places and _power_known(machine):
        low, high = (
            Variant(value, dict.fromkeys(places, written(value, "pJ/bit"))) for value in (0.0, 11.0)
        )
        source = (
            "Not known: none counted; 11 pJ/bit between sockets of EPYC 7001 (Beck et al., ISSCC "
            "2018)"
        )
        yield Assumption("energy of links", 0.0, "pJ/bit", source, low, high)


def _of_nodes(machine: Machine) -> Iterator[Assumption]:
    """Facts of nodes with cores, by type."""
    kinds = machine.description.type_of_node()
    types: dict[str, Node] = {}
    for node in machine.nodes:
        if node.cores:
            types.setdefault(kinds[node.id], node)
    local = {
        node.id: Bps
        for node, Bps in zip(machine.nodes, np.diag(machine.bandwidth_Bps).tolist(), strict=True)
    }
    yield from _bandwidth(types, local)
    for fact in _FACTS:
        lacking = {name: node for name, node in types.items() if fact.lacks(node)}
        if lacking:
            low, high = (
                Variant(words, {_at(name, *fact.place): of(node) for name, node in lacking.items()})
                for words, of in (fact.low, fact.high)
            )
            yield Assumption(fact.name, fact.value, "", fact.source, low, high)
    yield from _hits(machine, types)


def _at(node_type: str, *place: str | int) -> Place:
    return ("machine", "node_types", node_type, *place)


def _bandwidth(types: Mapping[str, Node], local: Mapping[int, float]) -> Iterator[Assumption]:
    """``CostModel.memory_Bps``; ``local``: by node, what tables of pairs say."""
    lacking = {
        name: node
        for name, node in types.items()
        if node.memory_bytes != 0 and node.memory_bandwidth_Bps is None and np.isnan(local[node.id])
    }
    if not lacking:
        return
    from ...topologies.facts.catalogue import guess_for  # takes a while to import

    each = guess_for(None).bandwidth_per_core
    low, high = (
        Variant(
            f"{Bps / 1e9:g} GB/s a core",
            {
                _at(name, "memory", "bandwidth"): written(Bps * node.cores, "B/s")
                for name, node in lacking.items()
            },
        )
        for Bps in (each.low, each.high)
    )
    source = "Not known; what the processors of the catalogue of facts have for each core"
    yield Assumption("bandwidth of memory", "not limited", "", source, low, high)


def _hits(machine: Machine, types: Mapping[str, Node]) -> Iterator[Assumption]:
    """``CostModel.last_cache`` and ``private_cache``."""
    for level, (typical_ns, source) in _HITS.items():
        places = [
            _at(name, "caches", position, "latency")
            for name in types
            for position, cache in enumerate(machine.description.node_types[name].caches)
            if cache.level == level and cache.latency is None
        ]
        if places:
            low, high = (
                Variant(ns, dict.fromkeys(places, written(ns, "ns"))) for ns in (1e-3, typical_ns)
            )
            source = f"Not known: none counted; {source}"
            yield Assumption(f"latency of caches of level {level}", 0.0, "ns", source, low, high)


def _power_known(machine: Machine) -> bool:
    return all(
        (not node.cores or node.core_active_W is not None)
        and (node.memory_bytes == 0 or node.memory_energy_J_per_bit is not None)
        for node in machine.nodes
    )

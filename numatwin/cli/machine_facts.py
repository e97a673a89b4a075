"""A machine's facts as text: those of its file, and those that follow from its graph."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..inputs.number_sets import format_list
from .output import Part, binary_size, facts, latency, number, table, wrapped

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..topologies.machine import Machine, Node

MATRIX_NODES_MAX = 16


def machine_parts(machine: Machine, *, matrices: bool) -> Iterator[Part]:
    """Facts, nodes, links, distances, and the pair tables where they are small or wanted."""
    yield facts(_head(machine))
    yield from _nodes(machine)
    if machine.links:
        yield from _links(machine)
    yield from _distances(machine)
    if len(machine.nodes) <= MATRIX_NODES_MAX or matrices:
        yield from _matrices(machine)
    else:
        yield f"\nPair tables of {len(machine.nodes)} nodes: shown with --matrices or --json."
    if machine.doubtful:
        yield wrapped(f"\nDoubtful values: {', '.join(machine.doubtful)}")
    yield from (f"\nwarning: {text}" for text in machine.description.warnings)


def _head(machine: Machine) -> tuple[tuple[str, str | None], ...]:
    description, nodes = machine.description, machine.nodes
    cores, groups = sum(node.cores for node in nodes), {node.group for node in nodes} - {None}
    coherence = description.coherence
    return (
        ("machine", machine.name),
        ("title", description.title or None),
        ("source", description.source),
        ("nodes", f"{len(nodes)}" + (f" in {len(groups)} groups" if len(groups) > 1 else "")),
        ("hubs", f"{len(machine.hubs)}" if machine.hubs else None),
        ("cores", f"{cores}, {machine.threads} hardware threads" if cores else "unknown"),
        ("memory", binary_size(sum(node.memory_bytes for node in nodes))),
        ("memory bandwidth", _sum([node.memory_bandwidth_Bps for node in nodes])),
        ("coherence", coherence.protocol if coherence else None),
        ("calibrated on", ", ".join(description.calibrated_on) or None),
        ("measured", _measured(machine)),
    )


def _measured(machine: Machine) -> str | None:
    host, figures = machine.description.host, machine.description.measurements
    if host is None:
        return None
    return f"{host.date[:10]}, {len(figures)} figures in the file" + (", quick" * host.quick)


def _sum(parts: list[float | None]) -> str | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    missing = len(parts) - len(known)
    return number(sum(known), "B/s") + (
        f", {missing} node{'s' * (missing > 1)} unknown" if missing else ""
    )


def _nodes(machine: Machine) -> Iterator[Part]:
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for node in machine.nodes:
        alike[_node_facts(node)].append(node.id)
    yield ""
    yield table(
        ("nodes", "caches", "cores", "threads", "clock", "memory", "bandwidth", "latency"),
        ((format_list(ids), *facts) for facts, ids in alike.items()),
        left=2,
    )


def _node_facts(node: Node) -> tuple[str, ...]:
    caches = (
        f"L{cache.level} {binary_size(cache.size_bytes)}"
        + (f" ({cache.ways} ways)" if cache.ways else "")
        for cache in node.caches
    )
    kind = "" if node.memory_kind == "DRAM" else f" {node.memory_kind}"
    return (
        ", ".join(caches) or "–",
        str(node.cores),
        str(node.threads),
        number(node.clock_Hz, "Hz"),
        binary_size(node.memory_bytes) + kind,
        number(node.memory_bandwidth_Bps, "B/s"),
        latency(node.memory_latency_ns),
    )


def _links(machine: Machine) -> Iterator[Part]:
    kinds = Counter((link.kind, link.bandwidth_Bps, link.latency_ns) for link in machine.links)
    yield ""
    yield table(
        ("links", "count", "each way", "adds"),
        (
            (kind, str(count), number(bandwidth_Bps, "B/s"), latency(latency_ns))
            for (kind, bandwidth_Bps, latency_ns), count in sorted(
                kinds.items(), key=lambda row: (-row[0][1], row[0][0])
            )
        ),
    )


def _distances(machine: Machine) -> Iterator[Part]:
    """The distance classes with how many ordered pairs each has; else the pairs by hops."""
    hops = machine.hops
    rows = (
        (
            name,
            str(int(pairs.sum())),
            _range(hops[pairs], lambda value: f"{value:.0f}"),
            _range(machine.bandwidth_Bps[pairs], lambda value: number(value, "B/s")),
            _range(machine.latency_ns[pairs], latency),
        )
        for name, pairs in _classes(machine)
    )
    yield ""
    yield table(("distance", "pairs", "hops", "bandwidth", "latency"), rows)
    remote = ~np.eye(len(machine.nodes), dtype=bool) & ~np.isnan(hops)
    if remote.any():
        most, mean = hops[remote].max(), hops[remote].mean()
        yield (
            f"\nRoutes: at most {most:.0f} hop{'s' if most > 1 else ''}, {mean:.2f} on average "
            f"between two nodes."
        )


def _classes(machine: Machine) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    if machine.description.distance_classes:
        names = [row.name for row in machine.description.distance_classes]
        found = [(name, machine.distance_class == k) for k, name in enumerate(names)]
        found.append(("(no class fits)", machine.distance_class < 0))
    else:
        local = np.eye(len(machine.nodes), dtype=bool)
        found = [("local", local)]
        for count in np.unique(machine.hops[~local & ~np.isnan(machine.hops)]):
            name = f"{count:.0f} hop" + ("s" if count > 1 else "")
            found.append((name, ~local & (machine.hops == count)))
        found.append(("remote", ~local & np.isnan(machine.hops)))
    return [(name, pairs) for name, pairs in found if pairs.any()]


def _range(values: npt.NDArray[np.float64], written: Callable[[float], str]) -> str:
    known = values[~np.isnan(values)]
    if not known.size:
        return "–"
    low, high = written(known.min()), written(known.max())
    return low if low == high else f"{low} to {high}"


def _matrices(machine: Machine) -> Iterator[str]:
    """Rows are initiators, columns homes."""
    ids = [str(node.id) for node in machine.nodes]
    for title, matrix, scale in (
        ("hops", machine.hops, 1.0),
        ("latency, ns", machine.latency_ns, 1.0),
        ("bandwidth, GB/s", machine.bandwidth_Bps, 1e-9),
        ("SLIT", machine.slit, 1.0),
    ):
        if matrix is None or np.isnan(matrix).all():
            continue
        cells = [["", *ids]]
        for k, row in enumerate(matrix):
            values = ("–" if np.isnan(value) else f"{value * scale:.4g}" for value in row)
            cells.append([ids[k], *values])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield f"\n{title} (from row to column)"
        for line in cells:  # not as a rich table, which would cut what is wider than the terminal
            padded = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            yield "  ".join(padded)

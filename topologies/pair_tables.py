"""Latency and bandwidth of every pair of nodes: by distance class, full matrix, or from parts.

Values of a description as plain numbers; what it leaves out is None or NaN.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..inputs.quantities import Quantity
from ..inputs.yaml_file import Place
from .machine import Node
from .routes import Floats, LinkEdge, Routes
from .schema import DEFAULT_LINE_BYTES, DescriptionError, DistanceClass, MachineDescription
from .schema_types import Fact


def kind_counts(routes: Routes, links: tuple[LinkEdge, ...]) -> dict[str, Floats]:
    """Per kind of link, (n, n) how many of it each route has."""
    kinds = sorted({link.kind for link in links})
    counts = {}
    for kind in kinds:
        per_link = np.repeat([float(link.kind == kind) for link in links], 2)
        counts[kind] = routes.route_sums(per_link)
    return counts


def distance_classes(
    description: MachineDescription,
    nodes: tuple[Node, ...],
    routes: Routes,
    counts: dict[str, Floats],
) -> Any:
    """(n, n) position of the class of each pair, -1 where none fits."""
    n = len(nodes)
    found = np.full((n, n), -1, dtype=np.int64)
    known_kinds = set(counts) | {
        name
        for base, t in description.link_types.items()
        for name in ([f"{base}-single", f"{base}-dual"] if t.splits else [base])
    }
    for k, wanted in enumerate(description.distance_classes):
        for kind in wanted.route:
            if kind not in known_kinds:
                raise DescriptionError(
                    ("distance_classes", k, "route", kind),
                    f"unknown kind of link '{kind}': "
                    f"expected one of {', '.join(sorted(known_kinds)) or 'none'}",
                )
        fits = _fits(wanted, routes, counts, n)
        found[(found < 0) & fits] = k
    return found


def _fits(wanted: DistanceClass, routes: Routes, counts: dict[str, Floats], n: int) -> Any:
    fits = np.array(routes.reachable)
    if wanted.hops is not None:
        fits &= routes.depth[:, :n] == wanted.hops
    if not wanted.route and wanted.hops is None:
        fits &= np.eye(n, dtype=bool)
    for kind, count in counts.items():
        rule = wanted.route.get(kind, 0)
        if rule == "some":
            fits &= count >= 1
        elif rule != "any":
            fits &= count == rule
    fits &= np.eye(n, dtype=bool) if not any(wanted.route.values()) else ~np.eye(n, dtype=bool)
    return fits


def pair_tables(
    description: MachineDescription,
    nodes: tuple[Node, ...],
    links: tuple[LinkEdge, ...],
    routes: Routes,
    classes: Any,
) -> tuple[Floats, Floats]:
    """(n, n) latency in ns and bandwidth in B/s, NaN where unknown; a full matrix comes first."""
    n = len(nodes)
    latency, bandwidth = np.full((n, n), np.nan), np.full((n, n), np.nan)
    _derive(nodes, links, routes, latency, bandwidth)
    for k, row in enumerate(description.distance_classes):
        if row.latency is not None:
            latency[classes == k] = row.latency.value * 1e9
        if row.bandwidth is not None:
            bandwidth[classes == k] = row.bandwidth.value
    for name, matrix, table, scale in (
        ("pair_latency", description.pair_latency, latency, 1e9),
        ("pair_bandwidth", description.pair_bandwidth, bandwidth, 1.0),
    ):
        if matrix is None:
            continue
        _check_square(matrix, n, name)
        for i, matrix_row in enumerate(matrix):
            for j, value in enumerate(matrix_row):
                if value is not None:
                    table[i, j] = value.value * scale
    # A home without memory has neither latency nor bandwidth.
    empty = np.array([node.memory_bytes == 0 for node in nodes])
    latency[:, empty] = np.nan
    bandwidth[:, empty] = np.nan
    return latency, bandwidth


def _derive(
    nodes: tuple[Node, ...],
    links: tuple[LinkEdge, ...],
    routes: Routes,
    latency: Floats,
    bandwidth: Floats,
) -> None:
    """Pair values from the parts, where the parts are known: sums of latencies, narrowest part.

    A cache line of payload shares each link with its header.
    """
    home_ns = np.array([or_nan(node.memory_latency_ns) for node in nodes])
    home_Bps = np.array([or_nan(node.memory_bandwidth_Bps) for node in nodes])
    diagonal = np.arange(len(nodes))
    if not links:
        latency[diagonal, diagonal] = home_ns
        bandwidth[diagonal, diagonal] = home_Bps
        return
    per_link = np.repeat([or_nan(link.latency_ns) for link in links], 2)
    missing = np.isnan(per_link)
    on_route = routes.route_sums(np.where(missing, 0.0, per_link))
    unknown = routes.route_sums(missing.astype(float)) > 0
    latency[:] = np.where(unknown, np.nan, on_route + home_ns[None, :])
    widths = sorted({_payload_Bps(link) for link in links})
    payload = np.repeat([_payload_Bps(link) for link in links], 2)
    narrowest = np.full_like(bandwidth, np.inf)
    for width in reversed(widths):
        narrowest[routes.route_sums((payload == width).astype(float)) > 0] = width
    bandwidth[:] = np.minimum(narrowest, home_Bps[None, :])


def _payload_Bps(link: LinkEdge) -> float:
    line = DEFAULT_LINE_BYTES
    return link.bandwidth_Bps * line / (line + link.data_header_bytes)


def slit_table(description: MachineDescription, n: int) -> Floats | None:
    """(n, n) the description's SLIT, None without one."""
    if description.slit is None:
        return None
    _check_square(description.slit, n, "slit")
    return np.array(description.slit, dtype=np.float64)


def _check_square(matrix: Any, n: int, name: str) -> None:
    for k, row in enumerate(matrix):
        if len(row) != n:
            raise DescriptionError((name, k), f"{name}: {len(row)} values in a row: expected {n}")
    if len(matrix) != n:
        raise DescriptionError((name,), f"{name}: {len(matrix)} rows: expected {n}, one per node")


def si(quantity: Quantity | None) -> float | None:
    """In SI units."""
    return None if quantity is None else quantity.value


def in_ns(quantity: Quantity | None) -> float | None:
    """A duration in nanoseconds."""
    return None if quantity is None else quantity.value * 1e9


def plain(fact: Fact | None) -> float | None:
    """A number without a unit."""
    return None if fact is None else fact.value


def or_nan(value: float | None) -> float:
    """NaN for what is unknown."""
    return float("nan") if value is None else value


def check_unique(ids: Iterable[int | str], place: Place, noun: str) -> None:
    """Raises DescriptionError where one of ``ids`` is listed twice."""
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise DescriptionError(place, f"{noun} {twice[0]} is listed twice")

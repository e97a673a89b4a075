"""Counted memory traffic: who accessed whose memory, and what crossed each link."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from ..sim.run.record import Record
from .charts import USE_SCALE, Floats, polished
from .figure import Figure
from .words import count, percent, seconds, si

TRAFFIC_CAPTION = (
    "Links by the time that their bytes would take at least, nodes by the bytes that their memory "
    "read and wrote; each relative to the busiest of its kind."
)
WRITTEN_IN_CELLS_MAX = 8  # nodes; of more, the colours tell
CELL_PX, MATRIX_PX_MIN, MATRIX_PX_MAX = 46, 300, 620


@dataclass(frozen=True)
class LinkRow:
    """A directed link (bytes with data and without), or a memory controller (read and written)."""

    name: str
    data_bytes: float
    message_bytes: float
    least_s: float | None
    """What the bytes take at the bandwidth; None where that is not known."""

    @property
    def bytes(self) -> float:
        """All of them."""
        return self.data_bytes + self.message_bytes


def link_rows(record: Record) -> list[LinkRow]:
    """Links and memory controllers, the one whose bytes take longest first."""
    rows = [
        LinkRow(
            link["name"],
            link["data_bytes"],
            link["message_bytes"],
            (link["data_bytes"] + link["message_bytes"]) / link["bandwidth_Bps"]
            if link.get("bandwidth_Bps")
            else None,
        )
        for link in record.traffic.get("links", ())
    ]
    rows += [
        LinkRow(f"memory of node {one['node']}", one["read_bytes"], one["written_bytes"], None)
        for one in record.traffic.get("memory", ())
    ]
    return sorted(rows, key=lambda row: (-(row.least_s or 0.0), -row.bytes, row.name))


def traffic_load(
    record: Record,
) -> tuple[dict[tuple[int | str, int | str], float], dict[int | str, float]]:
    """Links by the time that their bytes take, nodes by their memory's bytes; the highest is 1."""
    links: dict[tuple[int | str, int | str], float] = {}
    for link in record.traffic.get("links", ()):
        ends = (link["ends"][0], link["ends"][1])
        bytes_ = link["data_bytes"] + link["message_bytes"]
        links[ends] = max(links.get(ends, 0.0), bytes_ / (link.get("bandwidth_Bps") or 1.0))
    nodes: dict[int | str, float] = {
        one["node"]: float(one["read_bytes"] + one["written_bytes"])
        for one in record.traffic.get("memory", ())
    }
    return _relative(links), _relative(nodes)


def _relative(values: dict[Any, float]) -> dict[Any, float]:
    most = max(values.values(), default=0.0) or 1.0
    return {key: value / most for key, value in values.items()}


def traffic_tiles(record: Record) -> list[tuple[str, str, str]]:
    """(name, value, note) of the sums; nothing of a record that tells rates."""
    traffic = record.traffic
    if not traffic:
        return []
    accesses, misses = _accesses(record), _misses(record)
    remote = traffic.get("remote_share", 0.0)
    tiles, of = [("accesses", si(float(accesses.sum()), ""), "")], "of accesses"
    played, links = traffic.get("levels"), traffic.get("links", ())
    if played:
        share = float(misses.sum() / accesses.sum()) if accesses.sum() else 0.0
        missed = si(float(misses.sum()), "")
        tiles.append(("misses of the last level", missed, f"{percent(share)} of accesses"))
        of = "of these misses"
    tiles.append(("to other nodes' memory", percent(remote, 1), _of_user(traffic, of)))
    if played:
        tiles.append(("handed over by caches", si(_sum(record, "transfers"), "lines"), "modified"))
    if links and played:
        total = sum(link["data_bytes"] + link["message_bytes"] for link in links)
        tiles.append(("over all links", si(total, "B"), "once per link crossed"))
    return tiles


def _of_user(traffic: Mapping[str, Any], of: str) -> str:
    user = traffic.get("user_remote_share")
    return of if user is None else f"{of}; of the program's own, {percent(user, 1)}"


def traffic_answer(record: Record) -> Markup:
    """What a report of counted traffic opens with."""
    traffic, accesses = record.traffic, _accesses(record)
    machine = record.machine
    where = Markup("On {} ({}), emulated, the command").format(
        machine.get("title") or machine.get("name"), count(len(accesses), "node")
    )
    regions = traffic.get("regions") or 0
    of = f" made, in {count(regions, 'marked region')}," if regions else " made"
    kind = "misses of the last level" if traffic.get("levels") else "accesses"
    text = where + Markup("{} <strong>{}</strong> accesses to memory; ").format(
        of, si(float(accesses.sum()), "")
    )
    text += Markup("of its {} <strong>{}</strong> went to other nodes' memory.").format(
        kind, percent(traffic.get("remote_share", 0.0), 1)
    )
    rows = [row for row in link_rows(record) if row.least_s]
    if rows:
        text += Markup(
            " The busiest link is <strong>{}</strong>, whose {} take {} at least."
        ).format(rows[0].name, si(rows[0].bytes, "B"), seconds(rows[0].least_s))
    return text


def node_pairs(record: Record) -> dict[str, Floats]:
    """(n, n) accesses, and misses where caches were played, by name."""
    pairs = {"accesses": _accesses(record)}
    return pairs | {"misses": _misses(record)} if record.traffic.get("levels") else pairs


def matrices(record: Record) -> Iterator[tuple[Figure, str]]:
    """(picture, caption): accesses; where caches were played, misses and lines handed over."""
    traffic = record.traffic
    if not traffic:
        return
    ids = [str(node["id"]) for node in record.machine.get("nodes", ())]
    yield (
        matrix(_accesses(record), ids, "processors of node", "memory of node"),
        "Accesses (reads and writes) of each node's processors to each node's memory.",
    )
    if not traffic.get("levels"):
        return
    yield (
        matrix(_misses(record), ids, "processors of node", "memory of node"),
        "Misses of the last level, by the home of the line.",
    )
    if _sum(record, "transfers"):
        yield (
            matrix(_pairs(record, "transfers"), ids, "processors of node", "cache of node"),
            "Modified lines that another node's cache handed over.",
        )


def matrix(values: Floats, ids: list[str], of: str, to: str, unit: str = "") -> Figure:
    """A picture of ``values`` (n, n), rows ``of`` and columns ``to`` the same ``ids``."""
    size = min(MATRIX_PX_MAX, max(MATRIX_PX_MIN, CELL_PX * len(ids) + 120))
    written = [[si(value, unit) if value else "" for value in row] for row in values.tolist()]
    heat = Figure().add_heatmap(
        z=values.tolist(),
        x=ids,
        y=ids,
        text=written,
        texttemplate="%{text}" if len(ids) <= WRITTEN_IN_CELLS_MAX else None,
        textfont={"size": 11},
        hovertemplate=f"{of} %{{y}}, {to} %{{x}}: %{{text}}<extra></extra>",
        colorscale=USE_SCALE,
        showscale=len(ids) > WRITTEN_IN_CELLS_MAX,
        xgap=1,
        ygap=1,
    )
    # On a narrow screen numbers would run into each other: then it is as wide as high, and scrolls.
    margin = {"l": 70, "t": 12, "b": 52}
    figure = polished(heat, size, margin=margin, meta={"width_min_px": size})
    figure.update_xaxes(title_text=to, type="category", title_standoff=6)
    figure.update_yaxes(title_text=of, type="category", autorange="reversed", title_standoff=6)
    return figure


def _pairs(record: Record, name: str) -> Floats:
    return np.array(record.traffic["pairs"][name], dtype=np.float64)


def _sum(record: Record, name: str) -> float:
    return float(_pairs(record, name).sum())


def _accesses(record: Record) -> Floats:
    names = ("reads_user", "reads_kernel", "writes_user", "writes_kernel")
    return np.asarray(np.sum([_pairs(record, name) for name in names], axis=0))


def _misses(record: Record) -> Floats:
    names = ("read_misses_user", "read_misses_kernel", "write_misses_user", "write_misses_kernel")
    return np.asarray(np.sum([_pairs(record, name) for name in names], axis=0))

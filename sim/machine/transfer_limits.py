"""What bounds the transfers between nodes: links, initiators, and what else holds a pair.

A measured pair (all cores of one node read another node's memory) bounds that pair. What it says
of the limits behind it depends on which of them it fills:

- a link that the pair nearly fills carries what was measured; any other carries what its type
  states as ``carried``, or its nominal rate: a pair that fills no link says nothing of links;
- the home, or the miss slots of the node's cores, hold a pair that nearly fills them;
- what remains is held by the lines that its initiator has under way (Little's law), as many as
  the node's pair with most; a pair with fewer, or that its link or home alone would let draw more
  than was measured, has a limit of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..kernel.arrays import Flags, Floats, Ints
from .assumptions import Assumption, Variant, written
from .link_traffic import LINE_BYTES, LinkTraffic

FULL = 0.85  # of what a link or a home can do: whole sockets leave so much unused over QPI and UPI
SLOTS_FULL = 0.95
SAME_LINES = 0.95  # of the most lines under way: held by their number
AS_SHARED = 0.98  # of what links and the home can do: not slower than these


@dataclass(frozen=True)
class TransferLimits:
    """Limits of the way between nodes, by what a line takes of each; arrays are in node order.

    ``link_Bps`` (2L,): wire bytes per second of each directed link, unscaled; ``best_Bps`` (2L,):
    what the best pair over a link of its kind draws, 0 where none was measured. ``initiator_s``
    (n, n): how long a line that node i reads of home j takes the initiator i, whose lines under
    way are limited; ``pair_s`` (n, n): the same of the pair; 0 where nothing is limited.
    """

    link_Bps: Floats
    best_Bps: Floats
    initiator_s: Floats
    pair_s: Floats

    @cached_property
    def limited(self) -> bool:
        """Whether anything but links and homes limits a transfer."""
        return bool(self.initiator_s.any() or self.pair_s.any())

    def taken_s(self, lines: Floats) -> Floats:
        """(n,) how long ``lines`` (n, n) of each home take each node's fullest limit."""
        by_initiator = (lines * self.initiator_s).sum(axis=1)
        return np.asarray(np.maximum(by_initiator, (lines * self.pair_s).max(axis=1)))

    def columns(self, die_s: Floats) -> tuple[Ints, Ints, Ints, Floats]:
        """Limits as columns, those of initiators first, then of pairs, then of dies (``die_s`` (n,)
        for each line): for lines that a node reads of a home, (M,) node, home, column, seconds.
        """
        n = len(self.pair_s)
        (node, home), (of, to) = np.nonzero(self.initiator_s), np.nonzero(self.pair_s)
        dies, first = np.flatnonzero(die_s), n * int(self.limited)
        behind = first + len(of)
        return (
            np.concatenate([node, of, np.repeat(dies, n)]),
            np.concatenate([home, to, np.tile(np.arange(n), len(dies))]),
            np.concatenate(
                [node, np.arange(first, behind), np.repeat(behind + np.arange(len(dies)), n)]
            ),
            np.concatenate(
                [self.initiator_s[node, home], self.pair_s[of, to], np.repeat(die_s[dies], n)]
            ),
        )

    def count(self, die_s: Floats) -> int:
        """Of columns."""
        n, pairs = len(self.pair_s), int((self.pair_s > 0).sum())
        return int(self.limited) * (n + pairs) + int((die_s > 0).sum())


@dataclass(frozen=True)
class Held:
    """What holds the pairs of nodes. ``by_slots`` (n, n): miss slots of the initiator's cores;
    ``links`` (2L,): links that the best pair over them fills; ``by_number`` (n,): initiators whose
    lines under way are limited; ``alone`` (n, n): pairs with a limit of their own."""

    by_slots: Flags
    links: Flags
    by_number: Flags
    alone: Flags


def held_pairs(traffic: LinkTraffic, slots: Floats, home_Bps: Floats, pairs: Floats) -> Held | None:
    """What holds those of a machine whose nodes read ``pairs`` (n, n) bytes per second of each
    other, NaN where that was not measured; None where none was. ``slots`` (n,): lines that cores of
    a node may have under way; ``home_Bps`` (n,): of memories.
    """
    if np.isnan(pairs).all():
        return None
    raw, carried = _stated(traffic)
    pairs = np.where(traffic.others > 0, pairs, np.nan)
    lines = _under_way(traffic, pairs)
    by_slots = lines >= SLOTS_FULL * slots[:, None]
    best_Bps = _best_over(traffic, np.where(by_slots, np.nan, pairs))
    filled = best_Bps >= FULL * raw
    link_Bps = _carried(raw, carried, best_Bps, filled)
    shared_Bps = np.fmin(_link_bound_Bps(traffic, link_Bps), home_Bps)
    explained = by_slots | (pairs >= FULL * shared_Bps)
    most = lines.max(axis=1)
    by_number = (most > 0) & ~explained[np.arange(len(lines)), lines.argmax(axis=1)]
    same = by_slots | (by_number[:, None] & (lines >= SAME_LINES * most[:, None]))
    return Held(by_slots, filled, by_number, ~same & (pairs < AS_SHARED * shared_Bps))


def transfer_limits(
    traffic: LinkTraffic, idle_s: Floats, pairs: Floats, held: Held | None
) -> TransferLimits:
    """The limits of a machine whose nodes read ``pairs`` (n, n) of each other, which are ``held``
    so; ``idle_s`` (n, n): latencies."""
    raw, carried = _stated(traffic)
    initiator_s, pair_s = np.zeros_like(idle_s), np.zeros_like(idle_s)
    if held is None:
        link_Bps = np.where(np.isnan(carried), raw, carried)
        return TransferLimits(link_Bps, np.zeros(len(raw)), initiator_s, pair_s)
    pairs = np.where(traffic.others > 0, pairs, np.nan)
    most = _under_way(traffic, pairs).max(axis=1)
    by_number, alone = held.by_number & (most > 0), held.alone & np.isfinite(pairs)
    initiator_s[by_number] = idle_s[by_number] / most[by_number, None]
    pair_s[alone] = LINE_BYTES / pairs[alone]
    best_Bps = _best_over(traffic, np.where(held.by_slots, np.nan, pairs))
    link_Bps = _carried(raw, carried, best_Bps, held.links)
    return TransferLimits(link_Bps, best_Bps, initiator_s * traffic.others, pair_s)


def _under_way(traffic: LinkTraffic, pairs: Floats) -> Floats:
    """(n, n) lines that a pair has under way at its measured rate; 0 where there is none."""
    return np.nan_to_num(pairs * traffic.machine.latency_ns * 1e-9 / LINE_BYTES)


def _stated(traffic: LinkTraffic) -> tuple[Floats, Floats]:
    """(2L,), (2L,) nominal rates of links, and what they carry, NaN where that is not stated."""
    links = traffic.machine.links
    raw = np.repeat([link.bandwidth_Bps for link in links], 2).astype(np.float64)
    return raw, np.repeat([link.carried_Bps or np.nan for link in links], 2)


def _carried(raw: Floats, carried: Floats, best_Bps: Floats, filled: Flags) -> Floats:
    """(2L,) what links carry: those that are ``filled``, as much as the best pair over them."""
    unstated = np.where(filled, np.minimum(best_Bps, raw), raw)
    return np.where(np.isnan(carried), unstated, carried)


def _best_over(traffic: LinkTraffic, pairs: Floats) -> Floats:
    """(2L,) wire bytes per second of each link when the best of ``pairs`` (n, n) over it is read:
    0 where there is none.
    """
    if not traffic.machine.links:
        return np.zeros(0)
    # Data of the pair (initiator, home) flow from home to initiator.
    best = traffic.machine.routes.link_maxima(np.nan_to_num(pairs).T)
    # The home's probes went the same way.
    probes = traffic.link_probe_bytes * traffic.replacement_probes
    wire = best * (LINE_BYTES + traffic.link_header_bytes + probes) / LINE_BYTES
    # What one link of a kind was seen to carry, the others can.
    kinds = np.repeat([link.kind for link in traffic.machine.links], 2)
    count = np.repeat([link.count for link in traffic.machine.links], 2)
    return np.asarray(count * [wire[kinds == kind].max() for kind in kinds])


def _link_bound_Bps(traffic: LinkTraffic, link_Bps: Floats) -> Floats:
    """(n, n) what the slowest link between two nodes carries of a pair alone; infinite where there
    is none."""
    found = np.full(traffic.others.shape, np.inf)
    if not traffic.machine.links:
        return found
    count = np.repeat([link.count for link in traffic.machine.links], 2)
    each = (LINE_BYTES + traffic.link_header_bytes) / LINE_BYTES / count / link_Bps
    for slowest in np.unique(each):
        crossed = traffic.machine.routes.route_sums((each >= slowest).astype(np.float64)) > 0
        found[crossed] = 1.0 / slowest
    return found


def assumed_of_links(traffic: LinkTraffic, limits: TransferLimits) -> Iterator[Assumption]:
    """Of each type of links that no measured pair fills, and that states not what it carries."""
    for name, kind in traffic.machine.description.link_types.items():
        mine = [
            k
            for k, link in enumerate(traffic.machine.links)
            if link.kind.removesuffix("-single").removesuffix("-dual") == name
        ]
        best = [limits.best_Bps[2 * k] / traffic.machine.links[k].count for k in mine]
        seen, raw = max(best, default=0.0), kind.bandwidth.value
        if kind.carried is not None or not 0 < seen < FULL * raw:
            continue
        low, high = (
            Variant(Bps, {("machine", "link_types", name, "carried"): written(Bps, "B/s")})
            for Bps in (seen, raw)
        )
        source = "Nominal: pairs of nodes drew less, which bounds these pairs, not what links carry"
        yield Assumption(f"rate that {name} links carry", raw, "B/s", source, low, high)

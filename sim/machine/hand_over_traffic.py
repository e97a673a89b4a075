"""Traffic of lines handed over between cores, over links and through memory.

Lines of the reader's memory are written by a core and then read by one of its home, again and
again, each time by another writer. With one last-level cache a node, that follows the table of the
emulator's caches (``topologies/emulator/plugin/hierarchy.hpp``). A line that i writes for home t,
which p wrote before (an independent draw of the same writers), and which t has read since:

    write     p = i: an upgrade, no data          p = t: t's cache sends it, modified
              else: memory sends it (MESI: it was written back when t read it), or p's cache (MOESI)
    read      i's cache sends it; in MESI it is written back home. Under a directory the reader's
              home gets it with the reader, in one message (Laudon and Lenoski, The SGI Origin,
              ISCA 1997); where caches snoop, it crosses the links once more

Some lines pass from writer to writer before they are read: one that the ends of two hand-overs
share, and that of the word in which room is reserved. Who writes next gets them from the cache of
who wrote before.

Messages without data: a request of each miss and upgrade, the grant of an upgrade, what homes ask
holders and their answers (none but by snoops, where these reach the holder), acknowledgements of
what was written back. Data of MOESI's owners are taken to come from the home, as far away as they.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..kernel.arrays import Floats
from .link_traffic import LINE_BYTES

if TYPE_CHECKING:
    from .costs import CostModel


@dataclass(frozen=True)
class HandOverTraffic:
    """Of one line, handed over by writers and readers as they are drawn.

    ``moved`` (n, n): lines that cores of i draw from j, fetched to be written and to be read.
    ``wire`` (2, 2L): bytes of data and of messages on each directed link. ``read``, ``written``
    (n,): lines of each home's memory. ``fetched``: of a line whose writer is on another node, those
    that come to be written, and (``passed``) those from writers before; ``back``: that cross the
    links once more as they are written back; ``messages``: its messages in times of a request,
    along each of the two ways; ``passed_messages``: the same for what is passed on.
    """

    moved: Floats
    wire: Floats
    read: Floats
    written: Floats
    fetched: float
    passed: float
    back: float
    messages: float
    passed_messages: float


def hand_over_traffic(
    costs: "CostModel", source: Floats, target: Floats, passed_on: float = 0.0
) -> HandOverTraffic:
    """``source``, ``target`` (n,): each node's share in writing and in reading; sums are 1.

    ``passed_on``: lines that pass from writer to writer, per line that is handed over.
    """
    n, source = len(source), np.minimum(source, 1.0)  # above it by rounding: no part is negative
    coherence = costs.machine.description.coherence
    owned = coherence is not None and bool(coherence.owned)
    remote = source[:, None] * target
    local = remote.diagonal().copy()
    _no_diagonal(remote)
    by_other = np.maximum(1.0 - source[:, None] - source[None, :], 0.0)  # (i, t): p is neither
    fetched = remote * (1.0 - source[:, None])
    from_memory = np.zeros((n, n)) if owned else remote * by_other
    written = np.zeros((n, n)) if owned else remote
    snooped = np.zeros((n, n)) if costs.snoop_domain is None else costs.snoop_domain
    back = written * snooped.T  # where a snoop of the reader t reaches the writer i
    passed = source[:, None] * source * passed_on  # (p, i): from who wrote before
    _no_diagonal(passed)
    moved = remote + remote.T
    wire = np.zeros((2, len(costs.link_Bps)))
    crossing = float(remote.sum())
    messages = passed_messages = 0.0
    if costs.machine.links and crossing > 0:
        routes = costs.machine.routes
        data = routes.link_sums(remote + back + fetched.T + passed)
        wire[0] = data * (LINE_BYTES + costs.link_header_bytes)
        wire[1] = _messages(costs, source, remote, local, from_memory, back)
        ways = routes.link_sums(moved) * costs.link_request_bytes
        messages = float(wire[1].sum()) / max(float(ways.sum()), 1e-300)
        if passed_on:
            more = _passing(costs, passed, target)
            passed_messages = float(more.sum()) / max(float(ways.sum()), 1e-300)
            wire[1] += more
    each = 1.0 / max(crossing, 1e-300)
    return HandOverTraffic(
        moved=moved,
        wire=wire,
        read=from_memory.sum(axis=0),
        written=written.sum(axis=0),
        fetched=float(fetched.sum()) * each,
        passed=float(passed.sum()) * each,
        back=float(back.sum()) * each,
        messages=messages,
        passed_messages=passed_messages,
    )


def _messages(
    costs: "CostModel",
    source: Floats,
    remote: Floats,
    local: Floats,
    from_memory: Floats,
    back: Floats,
) -> Floats:
    """(2L,) bytes of messages without data: those with an address, and responses."""
    coherence = costs.machine.description.coherence
    lines = remote + np.diag(local)
    domain, unseen = costs.snoop_domain, _unseen(costs)
    # The one before loses its copy: home asks, it answers the writer; an owner's data do.
    asked = (lines.T @ unseen) * source[None, :]
    owned = coherence is not None and bool(coherence.owned)
    answered = local[:, None] if owned else lines.sum(axis=1)[:, None] - lines
    lost_answers = (unseen * answered).T * source[:, None]
    probes = remote + asked + unseen * remote.T
    # The reader's copy is lost too; an upgrade is granted; what was written back, acknowledged.
    lost = (unseen * remote * (1.0 - source[None, :])).T
    responses = lost_answers + lost + (remote * source[:, None]).T + back.T
    if coherence is not None and coherence.completion:
        responses = responses + remote
    if costs.replacement_probes:
        probes = probes + from_memory.T
        responses = responses + from_memory
    found = _over(costs, probes) * costs.link_probe_bytes
    found += _over(costs, responses) * costs.link_response_bytes
    if domain is not None:
        misses = remote + np.diag(local * (1.0 - source) + remote.sum(axis=0))
        found += costs.snoop_bytes(misses)
    return np.asarray(found)


def _passing(costs: "CostModel", passed: Floats, target: Floats) -> Floats:
    """(2L,) bytes of messages for lines at homes ``target`` (n,) that pass from p to i (n, n): a
    request to the home, which asks p, unless a snoop of i reaches it.
    """
    coherence = costs.machine.description.coherence
    misses = passed.sum(axis=0)[:, None] * target
    domain = costs.snoop_domain
    asked = (passed * _unseen(costs).T).sum(axis=1)
    probes = misses + target[:, None] * asked
    found = _over(costs, probes) * costs.link_probe_bytes
    if coherence is not None and coherence.completion:
        found += _over(costs, misses) * costs.link_response_bytes
    if domain is not None:
        found += costs.snoop_bytes(misses)
    return np.asarray(found)


def _unseen(costs: "CostModel") -> Floats:
    """(n, n) 1 where no snoop of a node reaches another."""
    domain = costs.snoop_domain
    return costs.others if domain is None else costs.others * (1.0 - domain)


def _over(costs: "CostModel", pairs: Floats) -> Floats:
    """(2L,) sums over the routes."""
    crossing = pairs.copy()
    _no_diagonal(crossing)
    return np.asarray(costs.machine.routes.link_sums(crossing))


def _no_diagonal(pairs: Floats) -> None:
    """Sets what each node has with itself to 0, in place."""
    pairs.ravel()[:: len(pairs) + 1] = 0.0

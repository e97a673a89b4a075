"""Traffic on a machine's links of the cache lines that cores read and write.

Data, requests, acknowledgements, and what the coherence protocol asks and answers. This needs
routes and sizes of messages alone; how fast links are says the cost model (``costs.py``), which
adds it.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ...topologies.machine import Machine
from .._kernel import link_rows
from ..kernel.arrays import Floats
from .assumptions import Assumed, Notes, note
from .defaults import ASSUMED_HEADER_BYTES, ASSUMED_REQUEST_BYTES

LINE_BYTES = 64.0


class LinkTraffic:
    """Bytes on directed links; arrays are in the order of nodes (n), and of links (2L)."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.notes: Notes = {}
        """What stood in for facts that the machine file lacks, as far as it was used."""
        self._types = machine.description.type_of_node()

    @cached_property
    def others(self) -> Floats:
        """(n, n) 1 but for a node and itself; not to be changed."""
        return np.asarray(1.0 - np.eye(len(self.machine.nodes)))

    @cached_property
    def snoop_domain(self) -> Floats | None:
        """(n, n) 1 where node j is asked on a miss of node i, None without snooping."""
        coherence, nodes = self.machine.description.coherence, self.machine.nodes
        n = len(nodes)
        if coherence is None or n == 1:
            return None
        caches = np.array([float(node.cores > 0) for node in nodes])
        all_other_caches = np.ones((n, n)) * caches[None, :] - np.diag(caches)
        if coherence.protocol == "snoop" and coherence.snoop_domain == "machine":
            return np.asarray(all_other_caches)
        if coherence.snoop_domain == "group":
            same = [[a.group is not None and a.group == b.group for b in nodes] for a in nodes]
            return np.asarray(all_other_caches * np.array(same, dtype=float))
        return None

    @cached_property
    def link_header_bytes(self) -> Floats:
        """(2L,) wire bytes in addition to each cache line."""
        self._note_links("data_header", ASSUMED_HEADER_BYTES)
        return np.repeat([link.data_header_bytes for link in self.machine.links], 2).astype(float)

    @cached_property
    def link_probe_bytes(self) -> Floats:
        """(2L,) wire bytes of a message with an address: a snoop, a home's question."""
        self._note_links("request", ASSUMED_REQUEST_BYTES)
        return np.repeat([link.request_bytes for link in self.machine.links], 2).astype(float)

    @cached_property
    def link_response_bytes(self) -> Floats:
        """(2L,) wire bytes of a message without address and data."""
        return np.repeat([link.response_bytes for link in self.machine.links], 2).astype(float)

    @cached_property
    def link_request_bytes(self) -> Floats:
        """(2L,) wire bytes that a reader sends home for a line: its request, and its word that it
        has the line, where the protocol knows one.
        """
        coherence = self.machine.description.coherence
        completion = float(coherence is not None and bool(coherence.completion))
        return np.asarray(self.link_probe_bytes + completion * self.link_response_bytes)

    @cached_property
    def replacement_probes(self) -> float:
        """Questions of a home, for each line that it delivers, whether the reader still has it."""
        coherence = self.machine.description.coherence
        return float(coherence is not None and bool(coherence.replacement_probes))

    @property
    def directory_in_memory(self) -> bool:
        """Whether homes write a line each time that its readers change between near and far."""
        coherence = self.machine.description.coherence
        return coherence is not None and bool(coherence.directory_in_memory)

    def directory_writes(self, reads: Floats) -> Floats:
        """(n,) lines that each home writes to keep its directory, per line read there.

        ``reads`` (n, n): lines that cores of i read from home j. The last reader of a line was near
        with the part that near reads are, so that of N near and F far ones 2 N F / (N + F) write.
        """
        if not self.directory_in_memory:
            return np.zeros(len(reads))
        near, both = np.diag(reads), reads.sum(axis=0)
        near_part = np.divide(near, both, out=np.zeros(len(both)), where=both > 0)
        return np.asarray(2.0 * near_part * (1.0 - near_part))

    def _note_links(self, field: str, assumed: Assumed) -> None:
        """Notes the types of links in use whose ``field`` is not known."""
        used = {link.kind for link in self.machine.links}
        for name, kind in self.machine.description.link_types.items():
            in_use = used & {name, f"{name}-single", f"{name}-dual"}
            if in_use and getattr(kind, field) is None:
                note(self.notes, assumed, name)

    def _more_control(self, forward: Floats, backward: Floats, *, asked: bool) -> Floats:
        """(…, 2L) control bytes, beyond requests, of lines whose requests cross each link
        (``forward``) and whose data do (``backward``): completions, and with ``asked`` questions of
        homes and their answers.
        """
        asks = self.replacement_probes if asked else 0.0
        responses = (
            self.link_request_bytes - self.link_probe_bytes + asks * self.link_response_bytes
        )
        return np.asarray(forward * responses + backward * (asks * self.link_probe_bytes))

    def wire_Bps(self, lines: Floats, *, snooped: bool = True) -> Floats:
        """(2, 2L) wire traffic of ``lines`` (n, n) cache lines per second that i reads from home j.

        Data, then control messages, over each directed link. Data flow from home to initiator, a
        request the other way. Under snooping every miss also asks the other nodes of its snoop
        domain, which answer to the home (source snoop, as on QPI); the initiator, and the home
        itself, need no message of their own. A directory may ask the initiator later on, when it
        replaces its entry. ``snooped`` False: the lines are known to be in the other's cache.
        """
        routes = self.machine.routes
        if not self.machine.links:
            return np.zeros((2, 0))
        remote = lines.copy()
        np.fill_diagonal(remote, 0.0)
        forward = routes.link_sums(remote) if remote.any() else np.zeros(2 * routes.link_count)
        symmetric = np.array_equal(remote, remote.T)
        backward = forward if symmetric else routes.link_sums(remote.T)
        data, messages = backward * (LINE_BYTES + self.link_header_bytes), forward
        more = self._more_control(forward, backward, asked=snooped)
        control = messages * self.link_probe_bytes + more
        if snooped and self.snoop_domain is not None:
            control = control + self.snoop_bytes(lines)
        return np.stack([data, control])

    @property
    def lines_make_messages(self) -> bool:
        """Whether lines that are read make links carry more than themselves and requests."""
        return self.snoop_domain is not None or self.replacement_probes > 0

    def messages_of(self, node: int, home: int) -> Iterator[tuple[int, float]]:
        """Links, and bytes on each, of what the protocol asks and answers for a line that ``node``
        reads from ``home``: in addition to the line itself and to what the reader sends home.
        """
        probe, response = self.link_probe_bytes, self.link_response_bytes
        sent: list[tuple[int, int, Floats]] = []
        if node != home and self.replacement_probes:
            sent += [(home, node, probe), (node, home, response)]
        if self.snoop_domain is not None:
            for asked in np.flatnonzero(self.snoop_domain[node]).tolist():
                if asked != home:
                    sent += [(node, asked, probe), (asked, home, response)]
        for start, end, size in sent:
            for link in self.machine.routes.links_of(start, end):
                yield link, float(size[link])

    def line_bytes(self, node: int, home: int) -> tuple[Floats, Floats]:
        """(2L,) bytes on each link, of a line that ``node`` reads from ``home``, and of one that it
        writes back there: as ``wire_rows`` and ``written_wire_rows`` of this line alone.
        """
        read, written = np.zeros((2, 2 * len(self.machine.links)))
        if not len(read):
            return read, written
        routes, data = self.machine.routes, LINE_BYTES + self.link_header_bytes
        if node != home:
            to_node, to_home = (routes.links_of(*ends) for ends in ((home, node), (node, home)))
            read[to_node] += data[to_node]
            read[to_home] += self.link_request_bytes[to_home]
            written[to_home] += data[to_home]
            written[to_node] += self.link_response_bytes[to_node]
        for link, size in self.messages_of(node, home):
            read[link] += size
        return read, written

    def snoop_bytes(self, lines: Floats) -> Floats:
        """(2L,) bytes of snoops and their answers for ``lines`` (n, n) that i wants from home j.

        Each node of the domain of i answers to the home of the line; the home need not, and is
        asked anyway. Raises TypeError where nobody snoops.
        """
        domain, routes = self.snoop_domain, self.machine.routes
        if domain is None:
            raise TypeError("no caches snoop on this machine")
        remote = lines.copy()
        np.fill_diagonal(remote, 0.0)
        answers = domain.T @ lines
        np.fill_diagonal(answers, 0.0)
        snoops = routes.link_sums((lines.sum(axis=1)[:, None] - remote) * domain)
        answered = routes.link_sums(answers)
        return np.asarray(snoops * self.link_probe_bytes + answered * self.link_response_bytes)

    def wire_rows(self, lines: Floats) -> Floats:
        """(2, n, 2L) wire traffic of each row of ``lines`` (n, n) alone; see ``wire_Bps``."""
        routes, n = self.machine.routes, len(self.machine.nodes)
        if not self.machine.links:
            return np.zeros((2, n, 0))
        remote = lines * self.others
        messages, backward = routes.link_rows(remote), routes.link_columns(remote.T)
        data = backward * (LINE_BYTES + self.link_header_bytes)
        more = self._more_control(messages, backward, asked=True)
        if self.snoop_domain is not None:
            domain = self.snoop_domain
            snooped_lines = (lines.sum(axis=1)[:, None] - remote) * domain
            messages += routes.link_rows(snooped_lines)
            answered = self._answered(domain, lines)
            messages += answered
            more += answered * (self.link_response_bytes - self.link_probe_bytes)
        return np.stack([data, messages * self.link_probe_bytes + more])

    def _answered(self, domain: Floats, lines: Floats) -> Floats:
        """(n, 2L) answers of all that are asked (``domain``) for each row of ``lines`` (n, n)."""
        routes, n = self.machine.routes, len(self.machine.nodes)
        if routes.uses is not None:
            links = 2 * routes.link_count
            of_rows = link_rows(*routes.uses, n, links, domain.T.ravel(), lines.T.ravel())
            return np.asarray(of_rows.reshape(links, n).T)
        found = np.zeros((n, 2 * routes.link_count))
        for row in np.flatnonzero(lines.any(axis=1)):
            answers = np.outer(domain[row], lines[row])
            np.fill_diagonal(answers, 0.0)
            found[row] = routes.link_sums(answers)
        return found

    def written_wire_rows(self, lines: Floats) -> Floats:
        """(2, n, 2L) wire traffic of each row of ``lines`` (n, n) that i writes back to home j.

        Data flow from i to j, an acknowledgement the other way.
        """
        routes, n = self.machine.routes, len(self.machine.nodes)
        remote = lines * self.others
        if not self.machine.links or not remote.any():
            return np.zeros((2, n, 2 * len(self.machine.links)))
        data = routes.link_rows(remote) * (LINE_BYTES + self.link_header_bytes)
        return np.stack([data, routes.link_columns(remote.T) * self.link_response_bytes])

    def taken_wire_rows(self, lines: Floats) -> Floats:
        """(2, n, 2L) wire traffic of each row of ``lines`` (n, n) of home j that i gets from other
        caches, which have modified them, and then asks for once more, to write them.

        As lines from the home, and a request without data that the home grants. Without snoops the
        home asks the holder both times, which answers the second time. Holders are other nodes, as
        homes but for the reader's own.
        """
        routes = self.machine.routes
        wire = self.wire_rows(lines)
        remote = lines * self.others
        if not self.machine.links or not remote.any():
            return wire
        forward, backward = routes.link_rows(remote), routes.link_columns(remote.T)
        probe, response = self.link_probe_bytes, self.link_response_bytes
        away = remote.sum(axis=1, keepdims=True)
        held_by_others = lines.sum(axis=1, keepdims=True) / np.where(away > 0, away, np.inf)
        wire[0] *= held_by_others
        wire[1] += wire[1] + backward * response
        # Memory delivers none of them.
        asks = 2.0 * self.replacement_probes
        wire[1] -= asks * (forward * response + backward * probe)
        if self.snoop_domain is None:
            wire[1] += 2.0 * backward * probe + held_by_others * backward * response
        return wire

"""What few buffers at the ends of links leave of bandwidth: links of `amd-8n-ht` hold three lines.

An explanation of published rows (docs/published.md), outside of the planes.

A link of Family 15h takes a response with data only where the other end has one of three buffers
for it (RspData of the link base buffer counts: AMD's AGESA, F15OrMultiLinkPciTables.c, as in
coreboot). A line that goes on over a second link keeps its buffer until it is on its way there, and
a home sends its lines in the order of their requests: who waits for one link holds up the lines
behind it that need another. Two of three buffers are taken for each of two sublinks of one port
(as their measured bandwidth says; no source was found).

Played are lines alone: each core asks for a line as soon as one of its lines has come. How long a
buffer is taken follows from the bandwidths that were measured of neighbours (by kind of link), and
these are all that is calibrated; pairs that are two links apart, and scans and lookups of
interleaved data, follow.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numatwin.topologies import Machine, load_machine

BUFFERS = {"ht-full": 3, "ht-half-single": 3, "ht-half-dual": 2}
LINE_BYTES, PAGE_LINES = 64, 64
PUBLISHED_GBPS = {"scans": 33.8, "lookups": 41.6}  # through all memory controllers: ERIS, figure 12
# (home, reader): neighbours on each kind of link, then two links apart, on each kind of route.
PAIRS = ((1, 0), (6, 0), (2, 0), (7, 0), (2, 1), (5, 0), (0, 5))
Link = tuple[int, int]


@dataclass
class Core:
    """A core, the home of its next line, and how many more lines it reads there."""

    node: int
    home: int
    left: int


@dataclass
class Packet:
    """A line on its way; ``buffer``: the link at whose end it waits."""

    core: Core
    path: Sequence[Link]
    crossed: int = 0
    buffer: Link | None = None


class Fabric:
    """Memories and links; times in ns. Times of links follow from the machine's measured pairs."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self.machine, self.random = machine, random.Random(seed)
        self.nodes = range(len(machine.nodes))
        self.kind: dict[Link, str] = {}
        for link in machine.links:
            a, b = link.ends
            self.kind[a, b] = self.kind[b, a] = link.kind
        self.hop_ns: dict[str, float] = {}
        self.held_ns: dict[str, float] = {}
        self.wire_ns: dict[str, float] = {}
        for link in machine.links:
            a, b = link.ends
            local_ns = float(machine.latency_ns[b, b])
            best = float(machine.bandwidth_Bps[a, b]) / 1e9
            self.hop_ns[link.kind] = (float(machine.latency_ns[a, b]) - local_ns) / 2
            self.held_ns[link.kind] = BUFFERS[link.kind] * LINE_BYTES / best
            sent_bytes = LINE_BYTES + link.data_header_bytes
            self.wire_ns[link.kind] = sent_bytes / (link.bandwidth_Bps / 1e9)
        self.memory_ns = float(machine.latency_ns[0, 0])
        self.line_ns = LINE_BYTES / (float(machine.bandwidth_Bps[0, 0]) / 1e9)
        self.now = 0.0
        self.order = itertools.count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.credits = {link: BUFFERS[kind] for link, kind in self.kind.items()}
        self.link_free = dict.fromkeys(self.kind, 0.0)
        self.memory_free = [0.0 for _ in self.nodes]
        self.leaving: list[deque[Packet]] = [deque() for _ in self.nodes]
        self.passing: dict[Link, deque[Packet]] = {link: deque() for link in self.kind}
        self.came = 0
        self.homes: Sequence[int] = ()
        self.page_lines = 1

    def path(self, home: int, reader: int) -> list[Link]:
        """Of data: the way of the request, back."""
        stops = [home]
        while stops[-1] != reader:
            stops.append(int(self.machine.routes.predecessor[reader, stops[-1]]))
        return list(itertools.pairwise(stops))

    def at(self, delay_ns: float, do: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay_ns, next(self.order), do))

    def ask(self, core: Core) -> None:
        """The core's next line: after a page, of the next home; of any where pages are lines."""
        home, homes = core.home, self.homes
        core.left -= 1
        if core.left <= 0:
            core.left = self.page_lines
            after = homes[(homes.index(home) + 1) % len(homes)]
            core.home = after if self.page_lines > 1 else self.random.choice(homes)
        path = self.path(home, core.node)
        there_ns = sum(self.hop_ns[self.kind[link]] for link in path)

        def arrive() -> None:
            begins = max(self.now, self.memory_free[home])
            self.memory_free[home] = begins + self.line_ns
            self.at(begins - self.now + self.memory_ns, respond)

        def respond() -> None:
            if path:
                self.leaving[home].append(Packet(core, path))
                self.send_home(home)
            else:
                self.came += 1
                self.ask(core)

        self.at(there_ns, arrive)

    def send_home(self, home: int) -> None:
        """Lines leave in order; what comes from afar and goes on goes first."""
        queue = self.leaving[home]
        while queue:
            link = queue[0].path[0]
            if self.passing[link] or not self.is_free(link):
                return
            self.send(queue.popleft(), link)

    def send_on(self, link: Link) -> None:
        while self.passing[link] and self.is_free(link):
            self.send(self.passing[link].popleft(), link)
        self.send_home(link[0])

    def is_free(self, link: Link) -> bool:
        return self.credits[link] > 0 and self.link_free[link] <= self.now

    def send(self, packet: Packet, link: Link) -> None:
        kind = self.kind[link]
        self.credits[link] -= 1
        self.link_free[link] = self.now + self.wire_ns[kind]
        self.at(self.wire_ns[kind], lambda: self.send_on(link))
        if (before := packet.buffer) is not None:
            self.at(self.wire_ns[kind], lambda: self.release(before))
        self.at(self.hop_ns[kind], lambda: self.land(packet, link))

    def land(self, packet: Packet, link: Link) -> None:
        packet.buffer = link
        packet.crossed += 1
        if packet.crossed == len(packet.path):
            self.release(link)
            self.came += 1
            self.ask(packet.core)
        else:
            following = packet.path[packet.crossed]
            self.passing[following].append(packet)
            self.send_on(following)

    def release(self, link: Link) -> None:
        """The word of it takes the rest of the time for which a buffer is taken at least."""
        kind = self.kind[link]

        def credit() -> None:
            self.credits[link] += 1
            self.send_on(link)

        self.at(max(0.0, self.held_ns[kind] - self.hop_ns[kind]), credit)

    def run(
        self, readers: Sequence[int], homes: Sequence[int], page_lines: int, span_ns: float
    ) -> float:
        """GB/s of all readers, after a third of the time."""
        self.homes, self.page_lines = homes, page_lines
        for node in readers:
            facts = self.machine.nodes[node]
            for _ in range(facts.cores):
                core = Core(node, self.random.choice(homes), self.random.randint(1, page_lines))
                for _ in range(int(facts.streaming_misses or 1)):
                    self.ask(core)
        before: int | None = None
        while self.events[0][0] < span_ns:
            self.now, _, do = heapq.heappop(self.events)
            if before is None and self.now > span_ns / 3:
                before = self.came
            do()
        return (self.came - (before or 0)) * LINE_BYTES / (span_ns * 2 / 3)


def line(name: str, value: float, versus: float) -> str:
    return json.dumps(
        {
            "name": name,
            "value": round(value, 2),
            "unit": "GB/s",
            "versus": versus,
            "ratio": round(value / versus, 3),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--us", type=float, default=60.0, help="simulated time of each figure")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    machine = load_machine("amd-8n-ht")
    everywhere = range(len(machine.nodes))
    span_ns = 1e3 * given.us
    for home, reader in PAIRS:
        fabric = Fabric(machine, given.seed)
        found = fabric.run([reader], [home], PAGE_LINES, span_ns)
        measured = float(machine.bandwidth_Bps[reader, home]) / 1e9
        kinds = ", ".join(fabric.kind[link] for link in fabric.path(home, reader))
        print(line(f"node {reader} reads node {home} over {kinds}", found, measured))
    for name, page_lines in (("scans", PAGE_LINES), ("lookups", 1)):
        found = Fabric(machine, given.seed).run(everywhere, everywhere, page_lines, span_ns)
        print(line(f"{name} of interleaved data, all nodes", found, PUBLISHED_GBPS[name]))


if __name__ == "__main__":
    main()

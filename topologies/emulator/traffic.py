"""Counted memory traffic: by node pair, by level, over links and at memory controllers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ...inputs import InputError
from ..machine import Floats, Ints, Machine

# As the plugin has them.
MATRICES, BY_PROCESSOR = (
    tuple(re.findall(r"\w+", (Path(__file__).parent / "plugin" / name).read_text()))
    for name in ("matrices.inc", "by_processor.inc")
)
# Counts are taken while other processors run: each may be within an access.
IN_FLIGHT_PER_PROCESSOR = 4
_HEAD = "numatwin-traffic 1"


@dataclass(frozen=True)
class Counts:
    """What was counted in one span; matrices (n, n) by name (``MATRICES``), in the machine's order.

    Rows are the processor's node. Columns are the memory's node, of ``transfers`` and
    ``invalidations`` the other cache's. ``memory_reads``: lines from memory; ``transfers``:
    modified lines from another cache; ``upgrades``: writes to lines that others held too;
    ``write_backs``: of evicted lines; ``downgrades``: of lines that another node read (of these,
    ``home_downgrades``: that come home with the data for a reader there), row the
    cache, column the home. ``probes``, ``answers``: messages of the directory by sender and
    receiver. ``streamed_misses``: of the misses, those of a line next to one that the processor
    looked for lately; ``serial_misses``: of the others, those of an instruction that overwrites
    what it made its address of, and those that a mispredicted branch waited for
    (``branch_misses``), so that the next must wait. ``found`` (n, levels): lines found at each
    level, the last column past the last one;
    ``regions``: how many the span is made of.

    ``executed`` (P,) by name (``BY_PROCESSOR``), if counted: ``instructions``; ``fused``:
    comparisons that are executed as one with the branch behind them; ``mispredictions`` of
    branches; ``calls`` of the system, and the kernel's ``call_instructions`` for them;
    ``interruptions`` of programs by the kernel, for interrupts or faults; ``looked_ahead``:
    operations from each miss that no prefetcher foresees to the next, as far as the reorder window
    reaches. ``waits`` (P, levels): mispredicted branches by the farthest cache that their block
    read from. ``tried_call``: instructions of the kernel for a system call that does nothing, 0
    where none was tried.
    """

    pairs: Mapping[str, Ints]
    found: Ints
    unknown: int = 0
    regions: int = 0
    executed: Mapping[str, Ints] = field(default_factory=dict)
    waits: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    tried_call: int = 0

    def total(self, name: str) -> Ints:
        """(n, n) of users and kernel together: ``reads``, ``writes``, ``read_misses`` …"""
        return self.pairs[f"{name}_user"] + self.pairs[f"{name}_kernel"]

    @property
    def accesses(self) -> Ints:
        """(n, n) reads and writes."""
        return self.total("reads") + self.total("writes")

    @property
    def misses(self) -> Ints:
        """(n, n) of the last level, by the home of the line."""
        return self.total("read_misses") + self.total("write_misses")

    @property
    def written_back(self) -> Ints:
        """(n, n) lines from caches of i to the memory of j."""
        return self.pairs["write_backs"] + self.pairs["downgrades"]

    def broken_laws(self, processors: int) -> list[str]:
        """What does not add up, in words; nothing where all does."""
        slack = IN_FLIGHT_PER_PROCESSOR * processors
        laws = {
            "misses are lines from memory and from caches": (
                self.misses.sum(),
                self.pairs["memory_reads"].sum() + self.pairs["transfers"].sum(),
            ),
            "misses are what no level had": (self.misses.sum(), self.found[:, -1].sum()),
        }
        found = [
            f"{name}: {one:,} and {other:,}"
            for name, (one, other) in laws.items()
            if self.found.shape[1] > 1 and abs(int(one) - int(other)) > slack
        ]
        if self.pairs["downgrades"].sum() > self.pairs["transfers"].sum() + slack:
            found.append("more lines were written back for readers than were handed over")
        return found


@dataclass(frozen=True)
class Traffic:
    """Counts of a command on a machine. ``whole``: of all of it; ``regions``: of its marked ones.

    ``levels``: of the caches that were played, by number, nearest first; none: accesses alone.
    """

    machine: Machine
    line_bytes: int
    levels: tuple[int, ...]
    whole: Counts
    regions: Counts | None = None
    notes: tuple[str, ...] = field(default=())
    intervals: tuple[Counts, ...] = ()
    """What was counted, piece by piece, if asked for."""
    cpu_node: tuple[int, ...] = ()
    """The node of each processor, by its position in the machine."""

    @property
    def counted(self) -> Counts:
        """The marked regions, if there are any; else the whole command."""
        return self.regions or self.whole

    def memory_bytes(self) -> tuple[Floats, Floats]:
        """(n,), (n,) bytes that each node's controller read and wrote."""
        counts, line = self.counted, float(self.line_bytes)
        return (
            counts.pairs["memory_reads"].sum(axis=0) * line,
            counts.written_back.sum(axis=0) * line,
        )

    def link_bytes(self) -> tuple[Floats, Floats]:
        """(2L,), (2L,) wire bytes of each directed link: with data (and their headers), without.

        Messages without data: a request for each miss and upgrade (and a completion, where the
        protocol has one), the grant of an upgrade, an acknowledgement of each line written back,
        probes and their answers; and where caches snoop, each miss and upgrade asks all nodes of
        the snoop domain, which answer the home. A directory that is a cache asks the reader of each
        line that memory delivered once more (``replacement_probes``).
        """
        machine, counts = self.machine, self.counted
        pairs = {name: found.astype(np.float64) for name, found in counts.pairs.items()}
        # In messages of their own.
        written = counts.written_back.astype(np.float64) - pairs["home_downgrades"]
        requests = counts.misses + pairs["upgrades"]
        data = pairs["memory_reads"].T + pairs["transfers"].T + written
        probes = requests + pairs["probes"]
        responses = pairs["upgrades"].T + written.T + pairs["answers"]
        coherence = machine.description.coherence
        if coherence is not None and coherence.completion:
            responses = responses + requests
        if coherence is not None and coherence.replacement_probes:
            probes = probes + pairs["memory_reads"].T
            responses = responses + pairs["memory_reads"]
        snooped = snoop_domains(machine)
        if any(snooped):
            domain = np.array(
                [[bool(a) and a == b and i != j for j, b in enumerate(snooped)]
                 for i, a in enumerate(snooped)],
                dtype=np.float64,
            )  # fmt: skip
            # The home is asked anyway, and needs no answer of its own.
            probes = probes + (requests.sum(axis=1)[:, None] - requests) * domain
            responses = responses + domain.T @ requests
        if not machine.links:
            return np.zeros(0), np.zeros(0)
        header = np.repeat([link.data_header_bytes for link in machine.links], 2)
        request = np.repeat([link.request_bytes for link in machine.links], 2)
        response = np.repeat([link.response_bytes for link in machine.links], 2)
        return (
            _over_links(machine, data) * (self.line_bytes + header),
            _over_links(machine, probes) * request + _over_links(machine, responses) * response,
        )

    @property
    def remote_share(self) -> float:
        """Of the last level's misses, those of other nodes' memory; of accesses, without caches."""
        return _off_diagonal(self.counted.misses if self.levels else self.counted.accesses)

    @property
    def user_remote_share(self) -> float:
        """The same of user programs alone, without what the kernel does for them and for itself."""
        pairs = self.counted.pairs
        what = "{}_misses_user" if self.levels else "{}s_user"
        return _off_diagonal(pairs[what.format("read")] + pairs[what.format("write")])


def _off_diagonal(of: Ints) -> float:
    """The part of its sum; 0 of nothing."""
    total = float(of.sum())
    return (total - float(np.trace(of))) / total if total else 0.0


def _over_links(machine: Machine, pairs: Floats) -> Floats:
    """(2L,) sums over the routes; what stays within a node is on none."""
    crossing = pairs * (1.0 - np.eye(len(pairs)))
    return machine.routes.link_sums(crossing)


def snoop_domains(machine: Machine) -> tuple[int, ...]:
    """By node, a number for each snoop domain; 0 where it is in none."""
    coherence = machine.description.coherence
    with_cores = [node.cores > 0 for node in machine.nodes]
    if coherence is None:
        return (0,) * len(machine.nodes)
    if coherence.snoop_domain == "group":
        groups = list(dict.fromkeys(node.group for node in machine.nodes))
        return tuple(
            groups.index(node.group) + 1 if node.group is not None and cores else 0
            for node, cores in zip(machine.nodes, with_cores, strict=True)
        )
    if coherence.protocol == "snoop":
        return tuple(int(cores) for cores in with_cores)
    return (0,) * len(machine.nodes)


def read_counts(path: Path, nodes: int, levels: int, processors: int) -> dict[str, Counts]:
    """The spans in a file that the plugin wrote: ``command``, maybe ``regions``, ``interval 0`` …;
    none where the command could not be started.

    Raises InputError where the file is not there, or is not whole.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError as failure:
        raise InputError(f"nothing was counted: {failure.strerror}", str(path)) from None
    if lines[:1] != [_HEAD] or lines[-1:] != ["end"]:
        raise InputError("nothing was counted: the plugin's file is incomplete", str(path))
    if lines[1:3] != [f"nodes {nodes}", f"levels {levels}"]:
        raise InputError("the plugin counted another machine", str(path))
    spans: dict[str, Counts] = {}
    pairs: dict[str, Ints] = {}
    found = np.zeros((0, 0), dtype=np.int64)
    for number, line in enumerate(lines[3:-1], 4):
        name, row, column, *count = line.split()
        if name == "span":
            pairs = {each: np.zeros((nodes, nodes), dtype=np.int64) for each in MATRICES}
            found = np.zeros((nodes, levels + 1), dtype=np.int64)
            current = f"interval {column}" if row == "interval" else row
            executed = {each: np.zeros(processors, dtype=np.int64) for each in BY_PROCESSOR}
            waits = np.zeros((processors, levels), dtype=np.int64)
            regions = int(column) if row == "regions" else 0
            spans[current] = Counts(pairs, found, 0, regions, executed, waits)
        elif name in BY_PROCESSOR:
            executed[name][int(row)] = int(count[0])
        elif name == "waits":
            waits[int(row), int(column)] = int(count[0])
        elif name == "tried_call":
            spans[current] = replace(spans[current], tried_call=int(count[0]))
        elif name == "found":
            found[int(row), int(column)] = int(count[0])
        elif name == "crossings":
            found[int(row), 0] += int(count[0])
        elif name == "unknown":
            spans[current] = replace(spans[current], unknown=int(count[0]))
        elif name in pairs:
            pairs[name][int(row), int(column)] = int(count[0])
        else:
            raise InputError("not a count", str(path), number, token=name)
    if levels:
        for counts in spans.values():
            # The first level had what was found nowhere else; some accesses look for two lines.
            looked_for = counts.accesses.sum(axis=1) + counts.found[:, 0]
            counts.found[:, 0] = looked_for - counts.found[:, 1:].sum(axis=1)
    return spans

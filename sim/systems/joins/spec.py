"""The part of a scenario for a cluster that joins or aggregates tables across its network.

Numbers of partitions into which operators divide rows: over the network, and then in memory.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ....inputs import DescriptionError, Quantity, Strict
from ....inputs.names import Name
from ....inputs.quantities import Bandwidth, Size
from ....topologies import Machine
from ....topologies.machine import Node
from ....topologies.nics import MessageCurve
from ....workloads import Workload
from ....workloads.schema import Operation
from ...machine.costs import LINE_BYTES as LINE_BYTES
from ..descriptor import Default, LazyImport, SystemSpec
from ..fields import (
    Count,
    Nodes,
    Threads,
    Whole,
    able_positions,
    common_curve,
    positions_in_use,
    threads_of,
)

Operator = Literal["ghj", "ghj-bloom", "rdma-ghj", "rrj", "aggregation", "rdma-aggregation"]
# By kind of the workload's operation; the first one is meant where a scenario does not say.
OPERATORS: dict[str, tuple[Operator, ...]] = {
    "join": ("ghj", "ghj-bloom", "rdma-ghj", "rrj"),
    "aggregate": ("aggregation", "rdma-aggregation"),
}
ONE_SIDED: tuple[Operator, ...] = ("rdma-ghj", "rrj", "rdma-aggregation")
# Fan-out is chosen such that all buffers fit in the last-level cache: of which operators.
BUFFERED_BY_PARTITION: tuple[Operator, ...] = ("rrj", "rdma-aggregation")
SOURCE = "Binnig et al., PVLDB 9, 2016"


class SlowNode(Strict):
    """Workers of node ``node`` (an id) take ``factor`` times as long for all that they do."""

    node: Whole
    factor: Annotated[Count, Field(ge=2, le=1_000)]


class JoinSystem(SystemSpec):
    """Operators across a cluster's network: hash joins and aggregations.

    ``operator``: ``ghj`` (Grace hash join: repartition, then a local radix join), ``ghj-bloom``
    (behind semi-joins by Bloom filters: the outer table is reduced by the inner one's filter, then
    the inner one by that of what is left), ``rdma-ghj`` (partitions are written to
    remote memory while the scan goes on), ``rrj`` (radix join whose partition pass goes over the
    network); ``aggregation``, ``rdma-aggregation`` (tables that fit in a cache, sent when they are
    full, while the scan goes on). ``transport`` of the network adapters, as the machine file names
    it; ``ports``: of each adapter, in use. ``nodes``: how many, or which ids; all by default;
    tables are spread evenly over them. ``workers``: threads of each node; each has a core's thread
    for itself. They scan, partition, send, receive and join.

    ``buffer``: of a worker for each partition (of one node, where operators partition by node); a
    full one is a message. ``send_buffers``: for one-sided verbs, of each worker and partition; one
    is used again when a completion says that it has been sent. ``signal_every``: of so many
    requests of a worker to a node the last one is signaled, and any that takes a partition's last
    buffer. ``partitions``: over the network in all, of ``rrj`` and ``rdma-aggregation``; by default
    as many as make the smaller table's fit in a core's own cache, and at most as many as the
    last-level cache has buffers for. For each sender and partition as much is reserved as comes, as
    a histogram tells. ``chunk``: of a table, what a worker takes at a time; at most a buffer of
    each partition with one-sided verbs.

    ``queue``: chunks and partitions are taken from the node's ``own`` queue, or from a ``central``
    one on the first node by one-sided verbs: an atomic one fetches the next number, a READ the
    chunk. ``stragglers``: slow nodes.

    ``copy_bandwidth``: at which a thread passes over tuples (reads, partitions, builds, probes or
    copies them). ``filter_error``: of tuples without a partner, the part that Bloom filters let
    through.

    ``layout``: ``host`` makes the nodes (how many, then) processes of one host, the machine's first
    node, each with one thread and a processor of its own; they talk by ``host_transport``: ``shm``,
    the default, or ``tcp``. Costs are then those that the machine file has of the host, and nothing
    of adapters and ``copy_bandwidth`` counts.
    """

    kind: Literal["joins"]
    layout: Literal["cluster", "host"] = "cluster"
    host_transport: Literal["shm", "tcp"] | None = None
    operator: Operator | None = None
    transport: Name = "RDMA"
    ports: Count | None = None
    nodes: Nodes | None = None
    workers: Threads = "cores"
    buffer: Size = Quantity.exact(2048.0)
    send_buffers: Annotated[Count, Field(le=1_000)] = 2
    signal_every: Count = 64
    partitions: Annotated[Count, Field(le=65_536)] | None = None
    chunk: Size = Quantity.exact(65_536.0)
    queue: Literal["own", "central"] = "own"
    stragglers: Annotated[tuple[SlowNode, ...], Field(max_length=10_000)] = ()
    copy_bandwidth: Annotated[Bandwidth, Default(f"{SOURCE}: 10^-9 s of memory cost a byte")] = (
        Quantity.exact(1e9)
    )
    filter_error: Annotated[
        float,
        Field(strict=True, gt=0, lt=1, allow_inf_nan=False),
        Default(f"{SOURCE}: Bloom filters with an error of 10%", (0.01, 0.2)),
    ] = 0.1

    def _fits(self) -> None:
        if self.partitions is not None and self.operator not in BUFFERED_BY_PARTITION:
            raise DescriptionError(
                ("partitions",), f"of operators {' and '.join(BUFFERED_BY_PARTITION)} alone"
            )
        if self.buffer.value > self.chunk.value:
            raise DescriptionError(("buffer",), "expected at most a chunk")
        if self.layout == "host":
            self._check_host_fields()
        elif self.host_transport is not None:
            raise DescriptionError(("host_transport",), "only for layout host")
        seen: set[int] = set()
        for index, slow in enumerate(self.stragglers):
            if slow.node in seen:
                raise DescriptionError(
                    ("stragglers", index, "node"), f"node {slow.node} is listed twice"
                )
            seen.add(slow.node)

    def _check_host_fields(self) -> None:
        """One host has no adapters, and all its nodes are the same."""
        if not isinstance(self.nodes, int):
            raise DescriptionError(
                ("nodes",), "layout host: expected how many processes, as there is one node"
            )
        if self.workers not in ("cores", 1):
            raise DescriptionError(("workers",), "layout host: expected 1, a thread of a process")
        for field, usual in (("ports", None), ("stragglers", ()), ("queue", "own")):
            if getattr(self, field) != usual:
                raise DescriptionError((field,), "layout host: expected none, as on one host")

    @property
    def used_host_transport(self) -> str:
        """Of layout host."""
        return self.host_transport or "shm"

    def misfit(self, workload: Workload) -> str | None:
        if len(workload.operations) != 1:
            return f"{len(workload.operations)} operations: expected one join or one aggregation"
        (operation,) = workload.operations.values()
        if workload.description.clients.kind != "closed" or workload.description.clients.count:
            return "clients: expected a closed one, as queries come one after another"
        if workload.description.phases:
            return "expected no phases"
        known = OPERATORS[operation.kind]
        if self.operator is not None and self.operator not in known:
            return f"operator {self.operator}: expected one of {', '.join(known)}"
        return None

    def operation(self, workload: Workload) -> tuple[str, Operation]:
        """The one operation of a workload that fits, with its name."""
        ((name, operation),) = workload.operations.items()
        return name, operation

    def operators(self, machine: Machine, workload: Workload) -> tuple[Operator, ...]:
        """Those that can do the workload's operation on this network; the first is the default."""
        known = OPERATORS[self.operation(workload)[1].kind]
        able = [
            operator for operator in known if operator not in ONE_SIDED or self.one_sided(machine)
        ]
        first = self.operator or able[0]
        return (first, *(operator for operator in able if operator != first))

    def positions(self, machine: Machine) -> tuple[int, ...]:
        """Of the nodes in use. Raises DescriptionError where there are none such."""
        if self.layout == "host":
            assert isinstance(self.nodes, int)
            return (able_positions(machine, "nodes")[0],) * self.nodes
        return positions_in_use(machine, self.nodes)

    def curve(self, machine: Machine) -> MessageCurve:
        """How messages go between the nodes; raises DescriptionError where they differ."""
        return common_curve(machine, self.positions(machine), self.transport, self.ports)

    def one_sided(self, machine: Machine) -> bool:
        """Whether the transport has verbs that need no thread of the other node; between processes
        of a host the engine has them, whatever they take."""
        if self.layout == "host":
            return True
        return any(point.read_latency for point in self.curve(machine).transport.points)

    def check(self, machine: Machine, workload: Workload) -> None:
        self.check_memory_of_hosts()
        if self.layout == "host":
            for check in ("check_host", "check_room", "check_buffers"):
                LazyImport(f"{__package__}.checks", check).load()(self, machine, workload)
            return
        positions = self.positions(machine)
        self.curve(machine)
        in_use = {machine.nodes[position].id for position in positions}
        for index, slow in enumerate(self.stragglers):
            if slow.node not in in_use:
                raise DescriptionError(
                    ("stragglers", index, "node"), f"node {slow.node} is not in use"
                )
        for position in positions:
            threads_of(machine, position, self.workers, "workers")
            node = machine.nodes[position]
            if node.clock_Hz is None:
                raise DescriptionError(("nodes",), f"node {node.id} has no clock")
        needs = self.operator if self.operator in ONE_SIDED else None
        if (needs or self.queue == "central") and not self.one_sided(machine):
            field = "operator" if needs else "queue"
            raise DescriptionError(
                (field,),
                f"{needs or 'central'} needs one-sided verbs, which transport {self.transport} of "
                f"machine '{machine.name}' lacks: expected one with a read_latency",
            )
        for check in ("check_room", "check_buffers"):  # they need the tables' partitions
            LazyImport(f"{__package__}.checks", check).load()(self, machine, workload)

    def workers_of(self, machine: Machine, position: int) -> int:
        """How many a node has."""
        if self.layout == "host":
            return 1
        return threads_of(machine, position, self.workers, "workers")


def own_cache_bytes(node: Node) -> float:
    """Of a core: its level 2, or its part of the last level where it has none; 256 KiB if no cache
    is known."""
    own = node.cache(2)
    if own is not None:
        return float(own.size_bytes)
    last = last_cache_bytes(node)
    return last / node.cores if last else 262_144.0


def last_cache_bytes(node: Node) -> float:
    """Of the node's last-level caches, all together; 0 where none is known."""
    if not node.caches:
        return 0.0
    last = max(node.caches, key=lambda cache: cache.level)
    return float(last.size_bytes) * max(node.cores // last.shared_by_cores, 1)


FINAL_MAX = 65_536  # partitions of all nodes: more are not distinguished


@dataclass(frozen=True)
class FanOut:
    """``network``: partitions that rows are sent in, partition p to node p mod n; ``final``: those
    that are joined, in all; ``passes`` over rows in a node's memory, from the ones to the others.
    """

    network: int
    final: int
    passes: int


def buffers_fit(system: JoinSystem, machine: Machine) -> int:
    """How many partitions over the network the last-level cache of each node has buffers for."""
    fits = []
    for position in system.positions(machine):
        each = system.workers_of(machine, position) * system.send_buffers * system.buffer.value
        fits.append(last_cache_bytes(machine.nodes[position]) // each)
    return int(min(fits))


def fan_out(system: JoinSystem, machine: Machine, operator: Operator, table_bytes: float) -> FanOut:
    """Of an operator; ``table_bytes``: what a partition has of this much has to fit in a core's own
    cache: the smaller table, or all groups. Powers of two of partitions a node.
    """
    positions = system.positions(machine)
    n = len(positions)
    own = min(own_cache_bytes(machine.nodes[position]) for position in positions)
    needed = n * _power_of_two(table_bytes / n / own)
    final = min(needed, n * _power_of_two_below(FINAL_MAX / n))
    if system.layout == "host":  # as the engine does: all partitions at once, in powers of two
        final = max(_power_of_two(final), 2)
        return FanOut(final if operator in BUFFERED_BY_PARTITION else n, final, 0)
    network = n
    if operator in BUFFERED_BY_PARTITION:
        most = n * _power_of_two_below(max(buffers_fit(system, machine) / n, 1.0))
        network = min(final, most)
        if system.partitions is not None and operator == system.operator:
            network = system.partitions
            final = network * max(1, math.ceil(final / network))
    # A pass in memory has a line of each partition as its buffer, in half of the own cache.
    most_a_pass = max(_power_of_two_below(own / LINE_BYTES / 2.0), 2)
    left = final / network
    passes = math.ceil(math.log(left) / math.log(most_a_pass) - 1e-9) if left > 1 else 0
    return FanOut(network, final, passes)


def _power_of_two(value: float) -> int:
    return 1 << max(math.ceil(math.log2(max(value, 1.0))), 0)


def _power_of_two_below(value: float) -> int:
    return 1 << max(math.floor(math.log2(max(value, 1.0))), 0)

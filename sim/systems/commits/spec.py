"""The part of a scenario for a cluster that commits transactions under snapshot isolation.

What the source of the four architectures (Binnig et al., The End of Slow Networks, PVLDB 9, 2016)
leaves open has a field here, with a default whose reason stands beside it.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ....inputs import DescriptionError, Quantity, Strict
from ....inputs.quantities import Bandwidth, Duration, DurationOrZero, Size
from ....topologies import Machine
from ....topologies.nics import MessageCurve
from ....workloads import Workload
from ....workloads.key_specs import HotRangeSpec
from ....workloads.schema import Operation
from ..descriptor import Default
from ..fields import Count, Nodes, Threads, Whole, able_positions, common_curve, threads_of
from .checked_values import PS, TIME_MAX_PS
from .facts import host_facts
from .faulty_system import FaultySystem, FreeNodes, Roles
from .parameters import VERSIONS_MAX

# The transport of its network adapter that each architecture uses, as machine files name it.
TRANSPORTS = {"ipoeth": "IPoEth", "ipoib": "IPoIB", "two-sided": "RDMA", "rsi": "RDMA"}

# An InfiniBand message is at most that long (Architecture Specification, volume 1).
MESSAGE_MAX_BYTES = 2**31

KEY_FORMS = ("uniform", "zipf", "hot_range")


class SlowClient(Strict):
    """Client number ``client``, counted from 0, takes ``factor`` times as long for all it does."""

    client: Whole
    factor: Annotated[Count, Field(ge=2)]


class CommitSystem(FaultySystem):
    """A database on a cluster whose transactions commit under snapshot isolation.

    ``architecture``: ``rsi`` commits by one-sided verbs from the clients; the others by 2PC over
    sockets on Ethernet (``ipoeth``), sockets on InfiniBand (``ipoib``), SEND and RECEIVE
    (``two-sided``). ``clients``: how many, each a thread of the operating system, in turn over
    ``client_nodes`` (how many, or which ids; by default all that are no servers). Up to a node's
    hardware threads each has one for itself; more than these share them, block where they wait, and
    pay ``thread_switch`` as one takes over from another, falls asleep or is woken (by default the
    machine file's ``processes.turn``, or 1.5 us, as measured on two hosts).
    ``storage_nodes``: the servers that hold the records (resource managers of 2PC), how many after
    the clients' nodes, or which; the first node that is left is the timestamp server. ``layout``:
    ``together`` lets clients run on the storage nodes; ``host`` makes each client and server
    (``storage_nodes`` of them, and the timestamp server) a process on the machine's first node,
    whose processors they share. They talk by ``host_transport``: ``shm``, the default of verbs, or
    ``tcp``, that of sockets; what it costs is in the machine file's ``processes`` and
    ``engines.commits``.
    ``managers``: where the transaction managers of 2PC run; by default on the timestamp server, as
    the source's eight servers are four for clients, three for records and one for that.
    ``manager_threads``: a ``pool``, which takes messages in turn, or ``per-client``: one thread for
    each client's connection, which looks for messages all the time; where there are more of these
    than the server has hardware threads they take turns as Linux lets them (EEVDF).
    ``storage_threads``: the same of the storage servers; ``per-client`` only with such managers.
    ``message_threads``: of each server, for its messages. ``ports``: of each adapter, in use; all
    by default, as the source counts both against the throughput of RSI.

    ``versions`` of each record: one, as in the source's prototype. ``timestamp_bits``: length of
    the bit vector. ``send_queue``: length of a client's; all but the last of so many requests go
    unsignaled. ``snapshot_size``: bytes that a client READs to find the highest committed
    timestamp; the whole bit vector by default, since that timestamp is the end of its leading run
    of set bits, and no server looks for it. A client that remembers where the run ended may do with
    a word. ``snapshot_every``: transactions that share one snapshot. ``prepare``: which storage
    servers take part in 2PC: ``all`` as the source counts its messages, or ``holders`` of a
    written record. ``retries``, ``backoff``: an aborted transaction is tried again so often, after
    such a pause; else given up, and the next one begins. ``poll``: between two looks of a client
    whose timestamps are used up.

    ``message_header``: bytes of a message that are no record: its type, the transaction, the
    sender (16 B and two numbers). ``record_header``: of a record aboard, its number and a
    timestamp. ``copy_bandwidth``: at which a thread reads or makes records; 1 GB/s is the source's
    memory cost of 10^-9 s a byte. ``compute_spread``: a client's own work varies evenly within this
    part of its average; clients that all take the same time fall into step and queue as a convoy,
    which real threads, with caches and interrupts of their own, do not.

    ``stragglers``: clients that are slow. ``lease``, ``skip_after``: RSI's remedies. Locks
    older than ``lease`` are broken by who meets them, their owner fenced. Timestamps that held up
    the snapshot for ``skip_after`` and that nobody claimed are set by the timestamp server.
    """

    PAUSE_MAX_S: ClassVar[float] = TIME_MAX_PS / PS

    kind: Literal["commits"]
    architecture: Literal["rsi", "ipoeth", "ipoib", "two-sided"]
    clients: Count
    thread_switch: DurationOrZero | None = None
    layout: Literal["apart", "together", "host"] = "apart"
    host_transport: Literal["shm", "tcp"] | None = None
    client_nodes: Nodes | None = None
    storage_nodes: Nodes
    managers: Literal["timestamp-node", "storage-nodes"] = "timestamp-node"
    manager_threads: Literal["pool", "per-client"] = "pool"
    storage_threads: Literal["pool", "per-client"] = "pool"
    message_threads: Threads = "cores"
    ports: Count | None = None
    versions: Annotated[Count, Field(le=1_000)] = 1
    timestamp_bits: Annotated[Count, Field(le=1_000_000)] = 60_000
    send_queue: Count = 64
    snapshot_size: Size | None = None
    snapshot_every: Count = 1
    prepare: Literal["all", "holders"] = "all"
    retries: Whole = 0
    backoff: DurationOrZero = Quantity.exact(0.0)
    poll: Annotated[Duration, Default("Estimate: between two looks for timestamps")] = (
        Quantity.exact(1e-6)
    )
    message_header: Annotated[
        Size, Default("Estimate: type, transaction and sender: 16 B and two numbers")
    ] = Quantity.exact(32.0)
    record_header: Annotated[Size, Default("A record's number and a timestamp")] = Quantity.exact(
        16.0
    )
    copy_bandwidth: Annotated[
        Bandwidth, Default("Binnig et al., PVLDB 9, 2016: 10^-9 s of memory cost a byte")
    ] = Quantity.exact(1e9)
    compute_spread: Annotated[
        float,
        Field(strict=True, ge=0, le=1, allow_inf_nan=False),
        Default("Estimate: threads have caches and interrupts of their own"),
    ] = 0.5
    stragglers: Annotated[tuple[SlowClient, ...], Field(max_length=10_000)] = ()
    lease: Duration | None = None
    skip_after: Duration | None = None

    @property
    def transport(self) -> str:
        """The transport that messages take, as machine files name it."""
        if self.layout == "host":
            sockets = self.architecture in ("ipoeth", "ipoib")
            return self.host_transport or ("tcp" if sockets else "shm")
        return TRANSPORTS[self.architecture]

    def transport_on(self, machine: Machine) -> str:
        """The same of this machine's adapters, which may call sockets on Ethernet TCP."""
        known = {name for nic in machine.description.nics for name in nic.transports}
        tcp = self.architecture == "ipoeth" and self.transport not in known and "TCP" in known
        return "TCP" if tcp else self.transport

    def _fits(self) -> None:
        super()._fits()
        self.check_clients("stragglers", self.stragglers)
        self._check_counts()
        self._check_architecture()

    def _check_counts(self) -> None:
        """Models count whole picoseconds, up to ``TIME_MAX_PS``."""
        times: dict[tuple[str | int, ...], tuple[Quantity | None, float]] = {
            ("thread_switch",): (self.thread_switch, 0.0),
            ("backoff",): (self.backoff, 0.0),
            ("poll",): (self.poll, 1.0),
            ("lease",): (self.lease, 1.0),
            ("skip_after",): (self.skip_after, 1.0),
            **{("faults", k, "at"): (fault.at, 0.0) for k, fault in enumerate(self.faults)},
        }
        for place, (time, least_ps) in times.items():
            if time is not None and not least_ps <= time.value * PS <= TIME_MAX_PS:
                least = f"at least {least_ps:g} ps, " if least_ps else ""
                raise DescriptionError(place, f"expected {least}at most {TIME_MAX_PS / PS:,.0f} s")
        for field in ("snapshot_size", "message_header", "record_header"):
            size = getattr(self, field)
            if size is not None and size.value > MESSAGE_MAX_BYTES:
                raise DescriptionError((field,), "expected at most 2 GiB, as messages are")

    def _check_architecture(self) -> None:
        if self.host_transport is not None and self.layout != "host":
            raise DescriptionError(("host_transport",), "only for layout host")
        if self.manager_threads == "per-client" and (
            self.architecture == "rsi" or self.layout == "host" or self.managers != "timestamp-node"
        ):
            raise DescriptionError(
                ("manager_threads",), "per-client: of 2PC with its managers on the timestamp node"
            )
        if self.storage_threads == "per-client" and self.manager_threads != "per-client":
            raise DescriptionError(
                ("storage_threads",), "per-client: expected manager_threads that are, too"
            )
        for field in ("lease", "skip_after"):
            if getattr(self, field) is not None and self.architecture != "rsi":
                raise DescriptionError((field,), "a remedy for architecture rsi only")
        if self.architecture == "rsi" and self.timestamp_bits < self.clients:
            raise DescriptionError(
                ("timestamp_bits",), f"expected at least {self.clients}, one for each client"
            )

    def check(self, machine: Machine, workload: Workload) -> None:
        """Raises DescriptionError where the machine does not have what this says, or no room."""
        self.check_memory_of_hosts()
        roles = self.roles(machine)
        self.check_faults(machine, roles)
        if self.layout == "host":
            self._check_host(machine)
        else:
            self._check_cluster(machine, roles)
        self._check_room(machine, workload, roles)
        self._check_copies(workload)
        if self.versions > VERSIONS_MAX:
            raise DescriptionError(("versions",), f"expected at most {VERSIONS_MAX}")

    def _check_cluster(self, machine: Machine, roles: Roles) -> None:
        """Its nodes are alike, and have the threads."""
        self.curve(machine, roles)
        for position in (*roles.storage, roles.timestamps):
            threads_of(machine, position, self.message_threads, "message_threads")
        for positions in ((*roles.storage, roles.timestamps), roles.clients):
            clock_Hz(machine, positions)
        if self.manager_threads == "per-client":
            threads = sum(machine.nodes[position].threads for position in roles.clients)
            if self.clients > threads:
                raise DescriptionError(
                    ("manager_threads",),
                    f"per-client: expected at most {threads} clients, one for each hardware thread "
                    "of their nodes",
                )

    def _check_host(self, machine: Machine) -> None:
        """The machine file says what its processes cost each other."""
        facts = host_facts(machine.description)
        if facts is None:
            raise DescriptionError(
                ("layout",),
                f"machine '{machine.name}' has no costs of processes: expected one that "
                "'numatwin machine measure' has written",
            )
        direct = self.architecture == "rsi" and self.transport == "shm"
        if not direct and self.transport not in facts.engine.transports:
            raise DescriptionError(
                ("host_transport",),
                f"machine '{machine.name}' has no costs of messages by {self.transport}: "
                f"expected one of {', '.join(facts.engine.transports) or 'none'}",
            )

    def _check_copies(self, workload: Workload) -> None:
        """No transaction's records take longer to read and make than models can count."""
        _, operation = self.transaction(workload)
        counts = {operation.object: operation.updates, **operation.inserts}
        counts[operation.object] += operation.reads or 0
        copied = sum(
            count * stored.record_size.value
            for name, count in counts.items()
            if (stored := workload.objects[name]).record_size is not None
        )
        if copied / self.copy_bandwidth.value > TIME_MAX_PS / PS:
            raise DescriptionError(
                ("copy_bandwidth",),
                f"a transaction copies {copied:,.0f} B: expected at least "
                f"{copied * PS / TIME_MAX_PS:.4g} B/s",
            )

    def _check_room(self, machine: Machine, workload: Workload, roles: Roles) -> None:
        """Each storage server holds its share of all records, with all their versions."""
        bytes_each = sum(
            stored.records * stored.record_size.value
            for stored in workload.objects.values()
            if stored.record_size is not None
        )
        share = self.versions * (1 + self.replicas) * bytes_each / len(roles.storage)
        for position in roles.storage:
            node = machine.nodes[position]
            if share > node.memory_bytes:
                raise DescriptionError(
                    ("storage_nodes",),
                    f"{share / 2**30:.1f} GiB of records for each, more than node {node.id} of "
                    f"machine '{machine.name}' holds: expected at most "
                    f"{node.memory_bytes / 2**30:.1f} GiB",
                )

    def curve(self, machine: Machine, roles: Roles) -> MessageCurve:
        """How messages go between the nodes in use; raises DescriptionError where they differ."""
        return common_curve(machine, roles.positions, self.transport_on(machine), self.ports)

    def misfit(self, workload: Workload) -> str | None:
        """Why this cannot run ``workload``, in words; None where it can."""
        if len(workload.operations) != 1:
            return f"{len(workload.operations)} operations: expected one kind of transaction"
        (operation,) = workload.operations.values()
        if workload.description.clients.kind != "closed":
            return "open clients: expected closed ones; the system sets their number"
        if workload.description.phases:
            return "phases: expected none, as transactions do not change over time"
        keys, reads = operation.keys, operation.reads or 0
        if keys is None or keys.distribution not in KEY_FORMS:
            form = keys.distribution if keys is not None else "none"
            return f"keys of form {form}: expected one of {', '.join(KEY_FORMS)}"
        if isinstance(keys, HotRangeSpec):
            hot, records = keys.end - keys.first, workload.objects[operation.object].records
            if not reads <= hot <= records - reads:
                return (
                    f"a hot range of {hot} records: expected from {reads} to {records - reads}, "
                    "room for all that a transaction reads within and without"
                )
        return None

    def transaction(self, workload: Workload) -> tuple[str, Operation]:
        """The one operation of a workload that fits, with its name."""
        ((name, operation),) = workload.operations.items()
        return name, operation

    def roles(self, machine: Machine) -> Roles:
        """Which node does what. Raises DescriptionError where the machine cannot give that."""
        free = FreeNodes(machine)
        if self.layout == "host":
            return self._on_host(machine)
        together = self.layout == "together"
        if together and self.client_nodes is not None:
            raise DescriptionError(
                ("client_nodes",), "layout together: expected none, as clients are on storage nodes"
            )
        # Who names nodes takes them first; counts are filled from those that are left.
        clients = () if together else free.take_listed(self.client_nodes, "client_nodes")
        storage = free.take_listed(self.storage_nodes, "storage_nodes")
        if isinstance(self.client_nodes, int):
            clients = free.take(self.client_nodes, "client_nodes")
        elif self.client_nodes is None and not together:
            wanted = self.storage_nodes if isinstance(self.storage_nodes, int) else 0
            clients = free.take(max(free.left - wanted - 1, 1), "storage_nodes", "client_nodes")
        if isinstance(self.storage_nodes, int):
            storage = free.take(self.storage_nodes, "storage_nodes")
        (timestamps,) = free.take(1, "storage_nodes", "timestamp server")
        return Roles(storage if together else clients, storage, timestamps)

    def _on_host(self, machine: Machine) -> Roles:
        """All on the first node with cores."""
        for field in ("client_nodes", "ports", "thread_switch"):
            if getattr(self, field) is not None:
                raise DescriptionError((field,), "layout host: expected none, as there is one node")
        if not isinstance(self.storage_nodes, int):
            raise DescriptionError(
                ("storage_nodes",), "layout host: expected how many servers, as there is one node"
            )
        first = able_positions(machine, "layout")[0]
        return Roles((first,), (first,), first)


def clock_Hz(machine: Machine, positions: tuple[int, ...]) -> float:
    """The clock that these nodes have in common. Raises DescriptionError for none, or several."""
    clocks = {machine.nodes[position].clock_Hz for position in positions}
    found = clocks.pop()
    if clocks or found is None:
        ids = ", ".join(str(machine.nodes[position].id) for position in positions[:4])
        what = "have no clock" if found is None and not clocks else "have different clocks"
        raise DescriptionError(
            (), f"nodes {ids}{' …' if positions[4:] else ''} of machine '{machine.name}' {what}"
        )
    return found

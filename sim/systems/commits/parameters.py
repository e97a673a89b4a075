"""Parameters of a commit protocol: nodes, costs of messages, transactions, faults, remedies.

Plain integers, times in picoseconds: no facts of a machine stand here. The compiled model and the
reference model take the same parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..._kernel import ClockFault, MessageCost, PathFault, ProcessorSetup, RecordWork, Transport
from ...machine.processors import SHARES_NONE
from .checked_values import (
    TIME_MAX_PS,
    at_least,
    check_index,
    check_part,
    check_time,
    expect,
    indices,
    one_of,
    up_to,
)
from .messages import ONE_SIDED_MESSAGES, REMEDY_MESSAGES, TWO_PHASE_MESSAGES

READS_MAX = 64
VERSIONS_MAX = 64
FACTOR_MAX = PARTS_MAX = 1_000_000

LOSSES = "lost messages"  # the stream that says which ones
STEPS = ("snapshot", "read", "lock", "write", "bit", "commit")
RSI_STEPS, TWO_PHASE_STEPS = STEPS[:5], ("snapshot", "read", "commit")

Architecture = Literal["ipoeth", "ipoib", "two-sided", "rsi"]
ARCHITECTURES: tuple[Architecture, ...] = ("ipoeth", "ipoib", "two-sided", "rsi")
RELIABLE_ONCE = ("two-sided", "rsi")  # RDMA: its adapters number packets, and drop a second copy


@dataclass(frozen=True)
class Node:
    """A server: the machine whose network card it uses, and its threads that handle messages."""

    machine: int
    threads: int = 1


@dataclass(frozen=True)
class KeyDraw:
    """How the records of a transaction are drawn; they are distinct.

    ``zipf``: record k (from 0) with a weight of 1 / (k + 1)^exponent. ``hot``: the first
    ``hot_records`` together with probability ``hot_probability``, uniform within and without.
    """

    distribution: Literal["uniform", "zipf", "hot"] = "uniform"
    exponent: float = 0.0
    hot_records: int = 0
    hot_probability: float = 0.0


@dataclass(frozen=True)
class Death:
    """A client stops for good at ``at_ps``; what its network card was handed is still sent.

    ``step``: not then, but as it next comes to that step of a transaction (see STEPS).
    """

    client: int
    at_ps: int
    step: str | None = None


@dataclass(frozen=True)
class Stop:
    """All nodes of a machine stop; what they were at is lost, their memory and logs are not.

    ``returns_ps``: None where they never do. ``empty``: they come back without their records.
    """

    machine: int
    at_ps: int
    returns_ps: int | None = None
    empty: bool = False

    def fails_over_ps(self, wait_ps: int) -> int | None:
        """When replicas answer for it, after so long; None where it is back before."""
        over_ps = self.at_ps + wait_ps
        back = self.returns_ps is not None and self.returns_ps <= over_ps and not self.empty
        return None if back else over_ps


@dataclass(frozen=True)
class Straggler:
    """A client whose own time (thread, computing, thinking) takes ``factor`` times as long."""

    client: int
    factor: int


@dataclass(frozen=True)
class CommitParameters:
    """One run, but for seed and horizon. Raises InputError where values do not fit together.

    ``architecture``: the first three of ARCHITECTURES are one protocol (snapshot isolation by
    2PC) with other costs. ``machines``: how many; each has a card with two directions.
    ``client_machine``: of each client; a client has a thread of its own. ``storage``: the servers
    that hold records; record r lies at server r mod their number. ``timestamps``: the node of the
    timestamp service. ``managers``: the nodes that run transactions as TM (2PC only), taken in
    turn by each client, client c starting with the c-th. These three are indices into ``nodes``;
    one node may have several roles, and needs no message to talk to itself. Within one machine a
    message takes thread time, but no network.

    ``costs``: by message type; entry k of the tuple is for k records aboard, the last one for
    more: a tuple of one is for any. Records are aboard of commit-request, prepare, install,
    rollback (others carry one or none: entry 0).
    """

    architecture: Architecture
    machines: int
    client_machine: tuple[int, ...]
    nodes: tuple[Node, ...]
    storage: tuple[int, ...]
    timestamps: int
    costs: Mapping[str, tuple[MessageCost, ...]]
    managers: tuple[int, ...] = ()

    records: int = 1_000_000
    reads: int = 3
    """Distinct records that a transaction reads."""
    updates: int = 3
    """How many of them it writes: the first ones drawn."""
    inserts: int = 4
    """Records that it creates, spread over the storage servers in turn."""
    keys: KeyDraw = KeyDraw()
    think_ps: int = 0
    """From an outcome to the client's next transaction."""
    think: Literal["constant", "exponential"] = "constant"
    compute_ps: int = 0
    """The client's own work between its reads and its commit, on average."""
    compute_spread: float = 0.0
    """It lies evenly within this part, 0 to 1, below and above the average."""
    retries: int = 0
    """How often an aborted transaction is tried again, on a new snapshot, before it is given up."""
    backoff_ps: int = 0
    """Before a retry."""
    poll_ps: int = 1_000_000
    """Between two looks at the snapshot, of a client whose timestamps are used up (RSI)."""

    work: RecordWork = field(default_factory=RecordWork)
    """Of an RM, beside its messages (2PC)."""
    own_managers: bool = False
    """A client always has the same manager, client c the c-th (2PC); else managers take turns."""
    own_storage: tuple[int, ...] = ()
    """Of storage server s and client c, at s times the clients plus c: the node, of the server's
    machine, that takes the messages of the client's transactions (2PC). Empty: the server itself.
    """
    every_rm: bool = True
    """Every RM prepares (2PC); else those only that hold a record of the write set."""

    versions: int = 1
    """Versions that a record keeps; a reader of an older snapshot than the oldest aborts."""
    timestamp_bits: int = 60_000
    """Length of the bit vector (RSI)."""
    send_queue: int = 64
    """Length of a client's send queue: all but each send_queue-th bit WRITE go unsignaled (RSI)."""
    snapshot_every: int = 1
    """Transactions per fetch of the snapshot; between, the client's copy serves. An abort drops
    the copy."""

    deaths: tuple[Death, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    stops: tuple[Stop, ...] = ()
    """Of servers; those of one machine do not overlap."""
    replicas: int = 0
    """Copies of a record on the server after its own, locked and written with it: none, or one."""
    failover_ps: int | None = None
    """After a stop of so long a storage server is out, and replicas answer for it."""
    copy_ps: int = 0
    """Of each record that it missed, once it is back; then it answers again."""
    path_faults: tuple[PathFault, ...] = ()
    """Paths between machines that are down, lossy, slow or late."""
    clock_faults: tuple[ClockFault, ...] = ()
    """Clocks of machines that are off: leases and waits of RSI's remedies go by them."""
    transport: Transport | None = None
    """When it sends again what was lost, and asks a server again that was stopped."""
    undoes: bool = False
    """Fencing undoes what the owner has not committed: leases are then safe where messages take
    any time (RSI)."""
    rest_ps: int | None = None
    """From then on clients begin no transactions."""
    lease_ps: int | None = None
    """RSI's remedy for dead clients: locks older than this are broken, their owner fenced."""
    skip_after_ps: int | None = None
    """RSI's remedy for stragglers: unclaimed timestamps that held up the snapshot for so long are
    set by the timestamp server."""
    timestamp_reach: int | None = None
    """How far above the highest committed timestamp a client may go: a lap, unless it is less."""
    doorbell: bool = True
    """Requests of one step are posted together; else each is on its way when it is posted (RSI)."""
    in_step: bool = False
    """An abort uses its timestamp up only where the run may stand at it, and who sees others a
    round ahead of it sets its own timestamps up to theirs, with its next bit (RSI)."""
    start_ps: tuple[int, ...] = ()
    """When each client begins; all at once where it is empty."""
    processors: ProcessorSetup | None = None
    """Shared by all, or by those that have a home among them; None: each thread of a client or node
    has its own."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def one_sided(self) -> bool:
        """Whether transactions commit by one-sided verbs."""
        return self.architecture == "rsi"

    @property
    def has_remedy(self) -> bool:
        """Whether a remedy for RSI's weak spots is on."""
        return self.lease_ps is not None or self.skip_after_ps is not None

    @property
    def faulty(self) -> bool:
        """Whether servers stop, paths fail or clocks are off."""
        return bool(self.stops or self.path_faults or self.clock_faults)

    @property
    def message_types(self) -> tuple[str, ...]:
        """The types of messages that this run may send."""
        if not self.one_sided:
            return TWO_PHASE_MESSAGES
        return ONE_SIDED_MESSAGES + (REMEDY_MESSAGES if self.has_remedy else ())

    def storage_on(self, machine: int) -> list[int]:
        """Which of the storage servers are on a machine."""
        return [s for s, node in enumerate(self.storage) if self.nodes[node].machine == machine]

    def server_name(self, node: int) -> str:
        """What a node is, where nodes are processes."""
        return "timestamp server" if node == self.timestamps else f"storage server {node}"


def _check(parameters: CommitParameters) -> None:
    p = parameters
    expect(p.architecture in ARCHITECTURES, "architecture", p.architecture, one_of(ARCHITECTURES))
    at_least(1, machines=p.machines, clients=len(p.client_machine), nodes=len(p.nodes))
    at_least(1, **{"storage servers": len(p.storage)})
    indices("machine of a client", p.client_machine, p.machines)
    indices("machine of a node", [node.machine for node in p.nodes], p.machines)
    for threads in dict.fromkeys(node.threads for node in p.nodes):
        at_least(1, threads=threads)
    for role, nodes in (("storage", p.storage), ("managers", p.managers)):
        indices(role, nodes, len(p.nodes))
        expect(len(set(nodes)) == len(nodes), role, str(nodes), "distinct nodes")
    check_index("timestamps", p.timestamps, len(p.nodes))
    if not p.one_sided:
        at_least(1, managers=len(p.managers))
    indices("own storage", p.own_storage, len(p.nodes))
    fine = len(p.own_storage) in (0, len(p.storage) * len(p.client_machine))
    expect(fine, "own storage", str(len(p.own_storage)), "one for each server and client")
    _check_costs(p)
    _check_transactions(p)
    _check_processors(p)
    _check_faults(p)


def _check_costs(p: CommitParameters) -> None:
    for name in p.message_types:
        expect(bool(p.costs.get(name)), f"costs of message '{name}'", None, "at least one entry")
        for cost in p.costs[name]:
            for part in MessageCost.FIELDS:
                if part.endswith("_ps"):
                    check_time(f"{part} of message '{name}'", getattr(cost, part))
            up_to(PARTS_MAX, f"parts of message '{name}'", cost.parts)
    fine = p.costs["read"][0].send_ps > 0
    expect(fine, "send_ps of message 'read'", "0", "above 0: else transactions would take no time")


def _check_transactions(p: CommitParameters) -> None:
    at_least(1, records=p.records, reads=p.reads, versions=p.versions)
    at_least(1, send_queue=p.send_queue, snapshot_every=p.snapshot_every, poll_ps=p.poll_ps)
    at_least(0, updates=p.updates, inserts=p.inserts, retries=p.retries)
    expect(p.reads <= READS_MAX, "reads", str(p.reads), f"at most {READS_MAX}")
    expect(p.versions <= VERSIONS_MAX, "versions", str(p.versions), f"at most {VERSIONS_MAX}")
    expect(p.inserts <= READS_MAX, "inserts", str(p.inserts), f"at most {READS_MAX}")
    expect(p.reads <= p.records, "reads", str(p.reads), f"at most all {p.records} records")
    expect(p.updates <= p.reads, "updates", str(p.updates), f"at most the {p.reads} records read")
    expect(p.updates + p.inserts > 0, "updates and inserts", "0", "at least one write")
    for name in ("think_ps", "compute_ps", "backoff_ps", "poll_ps"):
        check_time(name, getattr(p, name))
    check_part("compute_spread", p.compute_spread)
    for name in RecordWork.FIELDS:
        check_time(f"{name} of work", getattr(p.work, name))
    expect(p.think in ("constant", "exponential"), "think", p.think, "constant or exponential")
    keys = p.keys
    fine = keys.distribution in ("uniform", "zipf", "hot")
    expect(fine, "distribution of keys", keys.distribution, "uniform, zipf or hot")
    if keys.distribution == "zipf":
        expect(0 < keys.exponent <= 3, "exponent of keys", f"{keys.exponent:g}", "above 0, up to 3")
    if keys.distribution == "hot":
        most = p.records - p.reads
        room = f"from {p.reads} to {most}: room for the reads within and without"
        expect(p.reads <= keys.hot_records <= most, "hot records", str(keys.hot_records), room)
        check_part("hot probability", keys.hot_probability)
    if p.one_sided:
        clients = len(p.client_machine)
        wanted = f"at least one for each of the {clients} clients"
        expect(p.timestamp_bits >= clients, "timestamp bits", str(p.timestamp_bits), wanted)


def _check_processors(p: CommitParameters) -> None:
    if p.start_ps:
        fine = len(p.start_ps) == len(p.client_machine)
        expect(fine, "start_ps", str(len(p.start_ps)), "a time for each client")
    for start_ps in p.start_ps:
        check_time("start_ps", start_ps)
    if p.in_step:
        expect(not p.has_remedy, "in_step", "true", "no remedies, which go by timestamps unset")
    if p.timestamp_reach is not None:
        at_least(1, **{"timestamp reach": p.timestamp_reach})
    host = p.processors
    if host is None:
        return
    at_least(1, processors=host.count)
    if host.homes:
        fine = len(host.homes) == len(p.client_machine) + len(p.nodes)
        expect(fine, "homes", str(len(host.homes)), "one for each client and node")
    else:
        expect(p.machines == 1, "machines", str(p.machines), "one, where all share processors")
    homes = host.homes[len(p.client_machine) :] or [0] * len(p.nodes)
    for node, home in zip(p.nodes, homes, strict=True):
        fine = home == SHARES_NONE or node.threads == 1
        expect(fine, "threads", str(node.threads), "1, where processors are shared")
    for name in host.FIELDS:
        if name.endswith("_ps"):
            given = getattr(host, name)
            for time_ps in given if isinstance(given, list) else [given]:
                check_time(f"{name} of the processors", time_ps)
    expect(host.slice_ps > 0, "slice_ps of the processors", "0", "above 0")
    expect(host.tick_ps > 0, "tick_ps of the processors", "0", "above 0")
    for home in host.homes:
        if home != SHARES_NONE:
            check_index("home of a process", home, host.count)
    fine = len(host.groups) in (0, host.count)
    expect(fine, "groups", str(len(host.groups)), "one for each processor")


def _check_faults(p: CommitParameters) -> None:
    clients = len(p.client_machine)
    for kind, faults in (("deaths", p.deaths), ("stragglers", p.stragglers)):
        named = [fault.client for fault in faults]
        for client in named:
            check_index(f"client in {kind}", client, clients)
        expect(len(set(named)) == len(named), kind, str(named), "each client once")
    for death in p.deaths:
        check_time("at_ps of a death", death.at_ps)
        steps = RSI_STEPS if p.one_sided else TWO_PHASE_STEPS
        if death.step is not None:
            expect(death.step in steps, "step of a death", death.step, one_of(steps))
            expect(p.doorbell, "step of a death", death.step, "none, without a doorbell")
    _check_stops(p)
    for straggler in p.stragglers:
        up_to(FACTOR_MAX, "factor of a straggler", straggler.factor)
    for name, value in (("lease_ps", p.lease_ps), ("skip_after_ps", p.skip_after_ps)):
        if value is not None:
            expect(p.one_sided, name, str(value), "architecture rsi: 2PC needs no such remedy")
            expect(0 < value <= TIME_MAX_PS, name, str(value), "a time above 0")


def _check_replicas(p: CommitParameters) -> None:
    servers = len(p.storage)
    most = min(1, servers - 1)
    expect(0 <= p.replicas <= most, "replicas", str(p.replicas), f"at most {most}")
    if not p.replicas:
        return
    expect(not p.stops or p.failover_ps is not None, "failover_ps", "none", "a time, with stops")
    machines = [p.nodes[node].machine for node in p.storage]
    others = {p.nodes[node].machine for node in (p.timestamps, *p.managers) if not p.one_sided}
    others.add(p.nodes[p.timestamps].machine)
    fine = len({*machines}) == servers and not {*machines} & others and not p.own_storage
    expect(fine, "replicas", str(p.replicas), "storage servers on machines of their own")


def _check_stops(p: CommitParameters) -> None:
    expect(not p.faulty or p.transport is not None, "transport", "none", "one, with such faults")
    if p.transport is not None:
        check_time("timeout_ps of the transport", p.transport.timeout_ps)
        expect(p.transport.timeout_ps > 0, "timeout_ps of the transport", "0", "above 0")
    ends: dict[int, int] = {}
    for stop in sorted(p.stops, key=lambda stop: stop.at_ps):
        check_index("machine that stops", stop.machine, p.machines)
        until_ps = TIME_MAX_PS if stop.returns_ps is None else stop.returns_ps
        check_time("at_ps of a stop", stop.at_ps)
        expect(stop.at_ps < until_ps, "returns_ps of a stop", str(until_ps), "after it")
        fine = ends.get(stop.machine, -1) < stop.at_ps
        expect(fine, "at_ps of a stop", str(stop.at_ps), "after the machine is back")
        ends[stop.machine] = until_ps
        alone = stop.machine != p.nodes[p.timestamps].machine
        expect(alone or not stop.empty, "empty", "true", "a stop of storage servers alone")
    _check_replicas(p)
    for fault in p.path_faults:
        fine = len(fault.side) == p.machines and {*fault.side} <= {0, 1, 2}
        expect(fine, "sides of a path", str(fault.side), "0, 1 or 2 for each machine")
        check_part("loss of a path", fault.loss)
        expect(1 <= fault.factor <= FACTOR_MAX, "factor of a path", str(fault.factor), "above 0")
        expect(fault.from_ps < fault.until_ps, "until_ps of a path", str(fault.until_ps), "later")
        expect(0 <= fault.late < 1, "late of a path", f"{fault.late:g}", "from 0 to below 1")
        once = p.transport is not None and fault.late_ps <= p.transport.timeout_ps
        fine = not fault.late or once or p.architecture not in RELIABLE_ONCE
        expect(fine, "late_ps of a path", str(fault.late_ps), "at most the transport's timeout")
    for clock in p.clock_faults:
        check_index("machine whose clock is off", clock.machine, p.machines)
        expect(p.one_sided, "clock_faults", "one", "architecture rsi: 2PC goes by no clock")
        expect(clock.from_ps < clock.until_ps, "until_ps of a clock", str(clock.until_ps), "later")
        off = max(abs(clock.ahead_ps) // TIME_MAX_PS, abs(clock.drift_ppm) // 10**6)
        expect(off <= 1, "clock_faults", str(clock), "a drift of at most 1")
    if p.undoes:
        expect(p.lease_ps is not None, "undoes", "true", "a lease, whose end has owners fenced")
        expect(p.versions > 1, "versions", "1", "at least 2, where fencing undoes the newest")
        expect(p.send_queue == 1, "send_queue", str(p.send_queue), "1, where bits may be refused")

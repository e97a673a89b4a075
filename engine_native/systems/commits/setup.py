"""From a scenario to what the engine runs: the same transactions, faults and remedies, for real.

Where a real host differs from the scenario, this decides what to do, and says so in ``notes``.
"""

import math
import os
from dataclasses import dataclass
from typing import Any

from ....inputs import InputError
from ....inputs.quantities import counted
from ....sim.planes.plane import Experiment
from ....sim.systems.commits.build import commit_parameters
from ....sim.systems.commits.host import homes
from ....sim.systems.commits.parameters import STEPS, CommitParameters
from ....sim.systems.commits.sizes import transaction_records
from ....sim.systems.commits.spec import CommitSystem
from ....sim.systems.commits.workload import stream_keys
from ... import _engine
from ..._engine import HostFacts
from ...host_mapping import SHARE, free_bytes, free_shared_bytes, map_workers, processors
from ...transports import THREADS, VARIABLE, usual_transport

ROLES_MAX = 1_000
PROCESS_BYTES = 12 << 20  # of a process with its share of UCX's buffers, as seen
# Shared memory that all clients together map page by page before they begin, at some 0.2 s a GiB;
# where it is more, each page costs a fault when a client first touches it.
POPULATE_BYTES = 8 << 30
INSERT_BYTES = 64 << 20  # that a server keeps of what clients create; the oldest gives way
# How long an operating system lets another thread run first, for each that waits for a processor.
SLICE_NS = 4_000_000
LEASE_MIN_NS = 10_000_000
SKIP_MIN_NS = 1_000_000
# An emulated processor is so many times slower than one of this host: leases and skips are so
# much longer there.
GUEST_SLOWNESS = 20
LOGGED = "each step is logged to check the history: transactions take longer than without faults"
TRACED_ROWS = 4 << 20  # of all roles, 56 bytes each: what is checked of a run with faults
STOPPED = (
    "servers stop by SIGSTOP: what they were at waits until they go on, where a real one loses it"
)
CUT = (
    "where a path is down what arrives is dropped, and TCP sends again at its own times, whatever "
    "system.retransmission says"
)
OWNERS_MAX = 1 << 13  # that a leased lock's word can tell (systems/commits/record_block.hpp)

# By architecture: the network that its messages took becomes one that this host has.
SOCKETS = ("ipoeth", "ipoib")


@dataclass(frozen=True)
class CommitPlan:
    """What will run. ``settings``: fields of the engine's CommitRun, but for the transport's."""

    settings: dict[str, Any]
    transport: str
    parameters: CommitParameters
    lease_ns: int
    processors: int
    notes: tuple[str, ...]

    @property
    def roles(self) -> int:
        """Clients and servers together."""
        return int(self.settings["clients"]) + int(self.settings["nodes"])


def transport_of(system: CommitSystem) -> str:
    """Of a host, what the scenario says; else as usual."""
    usual = usual_transport(verbs=system.architecture not in SOCKETS)
    host = system.layout == "host" and _engine.HAS_UCX and not os.environ.get(VARIABLE)
    return system.transport if host else usual


def commit_plan(
    scenario: Experiment,
    replication: int,
    transport: str | None = None,
    guest: HostFacts | None = None,
) -> CommitPlan:
    """What of ``scenario`` runs on this host, or in the guest that ``guest`` tells of, where each
    role has a thread on a processor of its own node. Raises InputError where it does not fit.
    """
    system, workload = scenario.system, scenario.workload
    assert isinstance(system, CommitSystem)
    if system.replicas:
        raise InputError("system.replicas: the engine keeps one copy", expected="--on event, or 0")
    parameters, _ = commit_parameters(scenario, replication=replication)
    p, transport = parameters, transport or transport_of(system)
    _check_faults(p, transport)
    _, operation = system.transaction(workload)
    clients, nodes, cpus = len(p.client_machine), len(p.nodes), processors()
    if clients + nodes > ROLES_MAX:
        others = nodes - len(p.storage)  # timestamps, managers
        storage = max(len(p.storage) * ROLES_MAX // (clients + nodes), 1)
        raise InputError(
            f"{clients} clients and {nodes} servers, each a process of its own",
            expected=f"at most {ROLES_MAX} together, such as --set system.clients="
            f"{ROLES_MAX - storage - others} --set system.storage_nodes={storage}",
        )
    records = transaction_records(system, workload)
    sizes = [workload.objects[name].record_size for name in (operation.object, *operation.inserts)]
    record_bytes = max(_words(size.value) for size in sizes if size is not None)
    changed_bytes = min(max(_words(records.read), 8), record_bytes)
    if operation.changed_size is not None:
        changed_bytes = min(max(_words(operation.changed_size.value), 8), record_bytes)
    block_bytes = p.versions * (8 + record_bytes)
    active = clients if p.one_sided and transport != "tcp" else clients + nodes
    if guest is not None:
        active *= GUEST_SLOWNESS
    lease_ns, notes = _lease_ns(p, active, cpus)
    skip_after_ns, skip_notes = _skip_after_ns(p, active, cpus)
    notes += (*skip_notes, *([STOPPED] if p.stops else []), *([LOGGED] if system.faults else []))
    notes += (CUT,) if p.path_faults else ()
    stops = [(k, s) for s in p.stops for k, node in enumerate(p.nodes) if node.machine == s.machine]
    factors = {slow.client: slow.factor for slow in p.stragglers}
    if not _engine.HAS_UCX and transport == THREADS:
        notes += ("without UCX (libucx-dev) all roles are threads of one process",)
    # What has one name in both means the same.
    same = {name: getattr(p, name) for name in _engine.CommitRun.FIELDS if hasattr(p, name)}
    settings: dict[str, Any] = same | {
        "clients": clients,
        "nodes": nodes,
        "record_bytes": record_bytes,
        "changed_bytes": changed_bytes,
        "insert_ring": max(min(INSERT_BYTES // (clients * block_bytes), 4096), 4),
        "keys": p.keys.distribution,
        "exponent": p.keys.exponent,
        "hot_records": p.keys.hot_records,
        "hot_probability": p.keys.hot_probability,
        "think_ns": p.think_ps // 1000,
        "think_exponential": p.think == "exponential",
        "streams": stream_keys(p, scenario.seed, replication).reshape(-1).tolist(),
        "backoff_ns": p.backoff_ps // 1000,
        "poll_ns": p.poll_ps // 1000,
        "snapshot_bytes": 0 if system.snapshot_size is None else _words(system.snapshot_size.value),
        "factors": [factors.get(client, 1) for client in range(clients)],
        "death_client": [death.client for death in p.deaths],
        "death_ns": [death.at_ps // 1000 for death in p.deaths],
        "death_step": [-1 if d.step is None else STEPS.index(d.step) for d in p.deaths],
        "stop_node": [node for node, _ in stops],
        "stop_ns": [stop.at_ps // 1000 for _, stop in stops],
        "return_ns": [
            -1 if stop.returns_ps is None else stop.returns_ps // 1000 for _, stop in stops
        ],
        "cut_ns": [fault.from_ps // 1000 for fault in p.path_faults],
        "mend_ns": [fault.until_ps // 1000 for fault in p.path_faults],
        "cut_side": [fault.side[machine] for fault in p.path_faults for machine in machines_of(p)],
        "trace_rows": TRACED_ROWS // (clients + nodes) if system.faults else 0,
        "lease_ns": lease_ns,
        "skip_after_ns": skip_after_ns,
        "crowded": active > cpus,
        "cpus": _cpus(p, one_sided_by_hand=p.one_sided and transport != "tcp")
        if guest is None
        else guest_cpus(scenario, p, guest),
        "populate": clients * p.records * block_bytes <= POPULATE_BYTES,
    }
    if active > cpus and guest is None:
        notes += (
            f"{active} busy threads on {counted(cpus, 'processor')}: they are "
            "time-sliced, and latencies include their waits",
        )
    plan = CommitPlan(settings, transport, p, lease_ns, cpus, notes)
    if guest is None:
        _check_room(plan, scenario, block_bytes)
    else:
        _check_guest(plan, scenario, guest, block_bytes)
    return plan


def _check_faults(p: CommitParameters, transport: str) -> None:
    """Refuses what cannot fail among processes of one host."""
    if p.clock_faults or any(fault.loss < 1 for fault in p.path_faults):
        raise InputError(
            "system.faults: processes of one host have one clock, and paths that are down or whole",
            expected="--on event, or paths that are down",
        )
    if any(stop.empty for stop in p.stops):
        raise InputError(
            "system.faults: the engine has no log from which a server could begin anew",
            expected="--on event, or memory: kept",
        )
    without_server = transport == THREADS or (p.one_sided and transport != "tcp")
    if (p.stops and without_server) or (p.path_faults and transport != "tcp"):
        what = "paths" if p.path_faults else "the process of a server"
        raise InputError(
            f"system.faults: over {transport} clients go on without {what}",
            expected=f"--on event, or {VARIABLE}=tcp",
        )


def machines_of(p: CommitParameters) -> list[int]:
    """Of each role, clients before servers."""
    return [*p.client_machine, *(node.machine for node in p.nodes)]


def guest_cpus(scenario: Experiment, p: CommitParameters, guest: HostFacts) -> list[int]:
    """Of each role, clients before servers, one of its own node."""
    positions = scenario.system.roles(scenario.machine).positions
    nodes = [positions[machine] for machine in machines_of(p)]
    return list(map_workers(scenario.machine, nodes, guest).cpu)


def _cpus(p: CommitParameters, *, one_sided_by_hand: bool) -> list[int]:
    """Of each role, of those that this process may use: so nobody moves in the middle of a run."""
    allowed = sorted(os.sched_getaffinity(0))
    nodes, clients = len(p.nodes), len(p.client_machine)
    # Nodes stand as in the parameters; homes() has the storage servers first.
    order = [*p.storage, *(node for node in range(nodes) if node not in p.storage)]
    found = homes(
        clients,
        len(p.storage),
        nodes - len(p.storage),
        len(allowed),
        served=not one_sided_by_hand,
        manages=not p.one_sided,
    )
    cpus = [allowed[place] for place in found[:clients]] + [0] * nodes
    for index, node in enumerate(order):
        cpus[clients + node] = allowed[found[clients + index]]
    return cpus


def _words(size: float) -> int:
    return 8 * max(math.ceil(size / 8), 1)


def _lease_ns(p: CommitParameters, active: int, cpus: int) -> tuple[int, tuple[str, ...]]:
    """A lease that the living do not outlast: who waits for a processor holds its locks on."""
    if p.lease_ps is None:
        return 0, ()
    if len(p.client_machine) > OWNERS_MAX:
        raise InputError(
            f"{len(p.client_machine)} clients with leases", expected=f"at most {OWNERS_MAX}"
        )
    least_ns = max(2 * math.ceil(active / cpus) * SLICE_NS, LEASE_MIN_NS)
    return _at_least("leases of", p.lease_ps // 1000, least_ns)


def _skip_after_ns(p: CommitParameters, active: int, cpus: int) -> tuple[int, tuple[str, ...]]:
    """Who waits for a processor is no straggler yet."""
    if p.skip_after_ps is None:
        return 0, ()
    least_ns = SKIP_MIN_NS if active <= cpus else math.ceil(active / cpus) * SLICE_NS
    return _at_least("skips after", p.skip_after_ps // 1000, least_ns)


def _at_least(what: str, asked_ns: int, least_ns: int) -> tuple[int, tuple[str, ...]]:
    if asked_ns >= least_ns:
        return asked_ns, ()
    note = (
        f"{what} {least_ns * 1e-6:g} ms instead of {asked_ns * 1e-6:g} ms: an operating system "
        "takes processors away for longer than a network's messages take"
    )
    return least_ns, (note,)


def _check_room(plan: CommitPlan, scenario: Experiment, block_bytes: int) -> None:
    """All processes and records fit into the memory that is free; else says what would."""
    settings, servers = plan.settings, len(plan.settings["storage"])
    shared = settings["one_sided"] and plan.transport == "shm"
    free = free_bytes() * SHARE
    processes = plan.roles * PROCESS_BYTES
    inserts = servers * settings["insert_ring"] * settings["clients"] * block_bytes
    held = settings["records"] * block_bytes
    room = free - processes - inserts
    if shared:
        room = min(room, free_shared_bytes() * SHARE - inserts)
    if held <= room:
        return
    what = (
        f"{held / 2**30:.2g} GiB of records and {plan.roles} processes, on a host with "
        f"{free_bytes() / 2**30:.2g} GiB of free memory"
        + (f" ({free_shared_bytes() / 2**30:.2g} GiB in /dev/shm)" if shared else "")
    )
    fits = scenario.scale * room / held
    if settings["records"] * room / held < 2 * settings["reads"] or room <= 0:
        raise InputError(what, expected="fewer clients: --set system.clients=…")
    raise InputError(what, expected=f"--scale {_rounded_down(fits):g} or less")


def _check_guest(
    plan: CommitPlan, scenario: Experiment, guest: HostFacts, block_bytes: int
) -> None:
    """Each server's records fit beside its processors, so that they lie there."""
    servers, clients = len(plan.settings["storage"]), plan.settings["clients"]
    own = plan.settings["records"] / servers * block_bytes
    inserts = clients * plan.settings["insert_ring"] * block_bytes
    cpus = plan.settings["cpus"][clients:]
    for node in guest.nodes:
        here = sum(cpus[position] in node.cpus for position in plan.settings["storage"])
        room = node.free_bytes * SHARE
        if here * (own + inserts) <= room:
            continue
        left = room / here - inserts
        what = (
            f"{here * (own + inserts) / 2**20:.3g} MiB of records on a node of the guest with "
            f"{node.free_bytes / 2**20:.3g} MiB of free memory"
        )
        if left <= 2 * plan.settings["reads"] * block_bytes:
            raise InputError(what, expected="fewer clients: --set system.clients=…")
        raise InputError(
            what, expected=f"--scale {_rounded_down(scenario.scale * left / own):g} or less"
        )


def _rounded_down(value: float) -> float:
    """To two digits."""
    step: float = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / step + 1e-9) * step

"""From a scenario to the parameters of the commit models."""

from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from ....workloads import Workload
from ....workloads.key_specs import HotRangeSpec, ZipfSpec
from ..._kernel import RecordWork
from ..fields import threads_of
from .checked_values import ps
from .costs import CommitCosts, commit_costs, with_own_managers
from .faults import with_faults
from .parameters import CommitParameters, KeyDraw, Node, Straggler
from .spec import CommitSystem

if TYPE_CHECKING:
    from ...planes.plane import Experiment

PARAMETERS = CommitParameters.__dataclass_fields__.keys()
OTHER_FORMS = {"managers", "stragglers"}  # a scenario says these in another form
BEGIN_S = 500e-6  # between two such looks (engine_native/systems/commits/roles.cpp)


def commit_parameters(
    scenario: "Experiment", replication: int = 1
) -> tuple[CommitParameters, CommitCosts]:
    """What the models simulate, and the costs in it.

    Machines are numbered as ``CommitSystem.roles(…).positions``: storage servers first, then the
    timestamp server, then the clients'. Nodes are the storage servers, then the timestamp server.
    """
    system, machine, workload = scenario.system, scenario.machine, scenario.workload
    assert isinstance(system, CommitSystem)
    roles = system.roles(machine)
    costs = commit_costs(system, machine, workload)
    number = {position: index for index, position in enumerate(roles.positions)}
    servers = tuple(dict.fromkeys((*roles.storage, roles.timestamps)))
    if system.layout == "host":  # processes on one node, and a node has but one thread
        assert isinstance(system.storage_nodes, int)
        servers = (roles.timestamps,) * (system.storage_nodes + 1)
        storage, timestamps = tuple(range(system.storage_nodes)), system.storage_nodes
    else:
        storage = tuple(range(len(roles.storage)))
        timestamps = servers.index(roles.timestamps)
    _, operation = system.transaction(workload)
    two_phase = system.architecture != "rsi"
    parameters = CommitParameters(
        machines=len(roles.positions),
        client_machine=tuple(
            islice(cycle([number[position] for position in roles.clients]), system.clients)
        ),
        nodes=tuple(
            Node(
                number[position],
                1
                if system.layout == "host"
                else threads_of(machine, position, system.message_threads, "message_threads"),
            )
            for position in servers
        ),
        storage=storage,
        timestamps=timestamps,
        managers=(timestamps,) if system.managers == "timestamp-node" else storage,
        costs=costs.messages,
        records=workload.objects[operation.object].records,
        reads=operation.reads or 0,
        updates=operation.updates,
        inserts=sum(operation.inserts.values()),
        keys=_key_draw(workload, system),
        think_ps=ps(workload.description.clients.think_time.value),
        compute_ps=costs.compute_ps,
        work=costs.work if two_phase else RecordWork(),
        every_rm=system.prepare == "all",
        stragglers=tuple(Straggler(slow.client, slow.factor) for slow in system.stragglers),
        timestamp_reach=_reach(system),
        # As the engine's clients do; published RSI tells nothing of it.
        in_step=_reach(system) is not None,
        # UCX hands each request to a socket; a client's own loads and stores need no such detail.
        doorbell=system.layout != "host" or system.transport == "shm",
        start_ps=_starts(system),
        processors=costs.processors,
        **_said(system),
    )
    if system.manager_threads == "per-client":
        parameters = with_own_managers(parameters, system, machine)
    return with_faults(parameters, scenario, replication), costs


def _said(system: CommitSystem) -> dict[str, Any]:
    """What a scenario says under the name of a parameter; durations in picoseconds."""
    said = {name: getattr(system, name) for name in CommitSystem.model_fields.keys() - OTHER_FORMS}
    same = {name: value for name, value in said.items() if name in PARAMETERS}
    times = {f"{name}_ps": value for name, value in said.items() if f"{name}_ps" in PARAMETERS}
    return same | {name: ps(time.value) for name, time in times.items() if time is not None}


def _reach(system: CommitSystem) -> int | None:
    """The engine's clients stay within half a lap where nobody keeps a floor (see
    engine_native/systems/commits/timestamp_bits.hpp)."""
    if system.layout != "host" or system.architecture != "rsi":
        return None
    lap = system.timestamp_bits // system.clients * system.clients
    remedied = system.lease is not None or system.skip_after is not None
    return None if remedied else max((lap - system.clients + 1) // 2, 1)


def _starts(system: CommitSystem) -> tuple[int, ...]:
    """On a host each client looks now and then whether the run has begun; they begin
    evenly spread over that time."""
    if system.layout != "host":
        return ()
    clients = system.clients
    return tuple(ps(BEGIN_S * client / clients) for client in range(clients))


def _key_draw(workload: Workload, system: CommitSystem) -> KeyDraw:
    """Where popular records lie makes no difference: they are spread over the servers in turn."""
    keys = system.transaction(workload)[1].keys
    if isinstance(keys, ZipfSpec):
        return KeyDraw("zipf", exponent=keys.exponent)
    if isinstance(keys, HotRangeSpec):
        return KeyDraw("hot", hot_records=keys.end - keys.first, hot_probability=keys.share)
    return KeyDraw()

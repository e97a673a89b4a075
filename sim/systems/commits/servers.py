"""The servers of a run of commits, as its Record names them: adapters, threads, processes."""

from collections.abc import Iterator
from typing import NamedTuple

from ....inputs.quantities import format_quantity
from ....topologies import Machine
from ...machine.processors import SHARES_NONE
from ...planes.outcome import ControlEvent, ResourceUse
from ...planes.plane import Experiment
from .costs import CommitCosts
from .facts import ENGINE
from .parameters import CommitParameters
from .spec import CommitSystem

MACHINES_IN_SERIES = 64  # of a larger cluster the series do not tell each adapter's use
OUT, IN, POLLERS = "nic out", "nic in", "pollers"  # kinds of resources


class Server(NamedTuple):
    """A server of the model, or alike ones together: ``members`` of them, busy times added up."""

    name: str
    kind: str
    members: int = 1
    node: int | None = None
    capacity_Bps: float | None = None

    def use(self, part: float) -> ResourceUse:
        """Of which that ``part`` of the time, or of its capacity, is used."""
        limit = self.capacity_Bps
        used_Bps = None if limit is None else part * limit
        return ResourceUse(self.name, self.kind, part, used_Bps, limit, self.node)


def servers_of(
    scenario: Experiment, parameters: CommitParameters, costs: CommitCosts
) -> Iterator[Server]:
    """In the order of ``CommitResult.busy_ps``."""
    system, machine = scenario.system, scenario.machine
    assert isinstance(system, CommitSystem)
    ids = [machine.nodes[position].id for position in system.roles(machine).positions]
    if costs.curve is None:
        yield from _processes(parameters)
        return
    own_managers = parameters.own_managers
    capacity_Bps: float | None = costs.curve.bandwidth_Bps
    for kind in (OUT, IN):
        direction = kind.removeprefix("nic ")
        if kind == IN and costs.curve.transport.receive_queues:
            capacity_Bps = None  # its time is that of interrupts, which says nothing of bytes
        for node_id in ids:
            yield Server(f"adapter of node {node_id}, {direction}", kind, 1, node_id, capacity_Bps)
    for index, node in enumerate(parameters.nodes):
        node_id = ids[node.machine]
        if own_managers and index in parameters.managers:
            client = parameters.managers.index(index)
            yield Server(f"manager of client {client} on node {node_id}", POLLERS, 1, node_id)
            continue
        if index in parameters.own_storage:
            client = parameters.own_storage.index(index) % len(parameters.client_machine)
            yield Server(f"connection of client {client} on node {node_id}", POLLERS, 1, node_id)
            continue
        yield Server(f"message threads of node {node_id}", "threads", node.threads, node_id)
    yield Server("threads of the clients", "clients", client_threads(parameters))


def client_threads(parameters: CommitParameters) -> int:
    """Hardware threads of the clients: their own, and those that they share."""
    clients, shared = len(parameters.client_machine), parameters.processors
    if shared is None or parameters.own_managers:
        return clients
    return shared.count + shared.homes[:clients].count(SHARES_NONE)


def _processes(parameters: CommitParameters) -> Iterator[Server]:
    """Of one host; its machine's adapter carries nothing."""
    yield Server("messages out of the host", OUT)
    yield Server("messages into the host", IN)
    for node in range(len(parameters.nodes)):
        yield Server(f"process of the {parameters.server_name(node)}", "threads")
    yield Server("processes of the clients", "clients", len(parameters.client_machine))


def adapters_cap(costs: CommitCosts, system: CommitSystem, machine: Machine) -> str:
    """What bounds an adapter where that is not its own bandwidth, in words."""
    curve = costs.curve
    if curve is None:
        return ""
    caps = []
    if curve.capped:
        caps.append(f"{format_quantity(curve.transport.bandwidth.value, 'bandwidth')} a port")
    if queues := curve.transport.receive_queues:
        caps.append(f"incoming messages interrupt {queues} core{'s' if queues > 1 else ''}")
    return f" (its transport {system.transport_on(machine)}: {'; '.join(caps)})" if caps else ""


def uncertain_facts(machine: Machine, system: CommitSystem) -> Iterator[str]:
    """What a run should warn of; in one line on a host: a noisy one makes nearly all uncertain."""
    if system.layout != "host":
        for path in machine.doubtful:
            if path.startswith("nics"):
                yield f"machine '{machine.name}': {path} is uncertain"
        return
    parts = ("processes.", f"engines.{ENGINE}.")
    paths = [path for path in machine.doubtful if path.startswith(parts)]
    if paths:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        yield f"machine '{machine.name}': {paths[0]}{more} of what processes cost are uncertain"


def faults(system: CommitSystem, until_s: float) -> Iterator[ControlEvent]:
    """Those that the scenario asks for, up to that time."""
    for slow in system.stragglers:
        text = f"client {slow.client} takes {slow.factor} times as long"
        yield ControlEvent(0.0, "fault", text, {"client": slow.client, "factor": slow.factor})

"""The setup of the models: plans of operators with the costs of a machine.

How busy the parts of a cluster that joins are, and what binds it; of any plane.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....topologies import Machine
from ..._kernel import ExchangeOperator, ExchangeSetup, ExchangeStep, MessageCost, ServiceMachine
from ...kernel.arrays import Floats
from ...kernel.picoseconds import PS_PER_S
from ...machine.costs import CostModel
from ...machine.message_costs import AETH, ATOMIC, ATOMIC_ACK, RETH, message_cost
from ...machine.service_machine import service_machine
from ...machine.threads import Workers, place_workers
from ...planes.outcome import ControlEvent, ResourceUse
from ...planes.plane import Experiment
from .host import HostPlanner
from .operators import OperatorPlan, Planner, StepPlan
from .spec import LINE_BYTES, JoinSystem, Operator

# Of a buffer, equal parts that are full or empty: costs of messages are worked out for each number.
PARTS = 64


@dataclass(frozen=True, eq=False)
class Play:
    """A scenario ready to be simulated: plans, what the kernel takes, where workers are."""

    operation: str
    system: JoinSystem
    names: tuple[Operator, ...]
    plans: tuple[OperatorPlan, ...]
    setup: ExchangeSetup
    workers: Workers
    costs: CostModel
    ids: tuple[int, ...]


def play_of(experiment: Experiment, replication: int, *, flows: bool = False) -> Play:
    """One replication; with all operators that the network can run where a policy chooses.

    ``flows``: no model goes through the setup's pieces of work one by one; it has none.
    """
    system, machine = experiment.system, experiment.machine
    assert isinstance(system, JoinSystem)
    planner = planner_of(experiment, replication)
    names = system.operators(machine, experiment.workload)
    if all(name == "none" for name in experiment.policy_names.values()):
        names = names[:1]
    plans = tuple(map(planner.plan, names))
    costs = CostModel(machine)
    nodes = np.repeat(np.array(planner.positions), planner.workers)
    workers = place_workers(machine, nodes)
    if isinstance(planner, HostPlanner):
        parts, ids = _of_host(planner), tuple(range(planner.nodes))
    else:
        parts = _of_cluster(planner, workers, costs)
        ids = tuple(machine.nodes[position].id for position in planner.positions)
    setup = ExchangeSetup(
        **parts,
        operators=[
            ExchangeOperator(
                one_sided=plan.one_sided,
                steps=[_step(step, system, planner.nodes, flows) for step in plan.steps],
                costs=_buffer_costs(planner, plan),
            )
            for plan in plans
        ],
        send_buffers=system.send_buffers,
        signal_every=system.signal_every,
        think_ps=round(experiment.workload.description.clients.think_time.value * PS_PER_S),
    )
    operation, _ = system.operation(experiment.workload)
    return Play(operation, system, names, plans, setup, workers, costs, ids)


def planner_of(experiment: Experiment, replication: int) -> Planner:
    """Makes the plans of one replication, as the system's layout has them."""
    system = experiment.system
    assert isinstance(system, JoinSystem)
    make = HostPlanner if system.layout == "host" else Planner
    return make(system, experiment.machine, experiment.workload, experiment.seed, replication)


def _of_cluster(planner: Planner, workers: Workers, costs: CostModel) -> dict[str, Any]:
    """Nodes of a machine, and their adapters."""
    system, machine, positions = planner.system, planner.machine, list(planner.positions)
    threads = np.maximum(workers.on_cores.astype(np.int64), 1)
    n, whole = len(positions), service_machine(costs, workers.core_node, threads)
    index_of = {position: k for k, position in enumerate(positions)}
    latency_ps = np.reshape(whole.latency_ps, (len(machine.nodes), len(machine.nodes)))
    factor = {slow.node: slow.factor for slow in system.stragglers}
    slots = [
        max(costs.misses[position] / machine.nodes[position].cores, 1.0) for position in positions
    ]
    return {
        "machine": ServiceMachine(
            read_ps=np.array(whole.read_ps)[positions],
            write_ps=np.array(whole.write_ps)[positions],
            latency_ps=latency_ps[np.ix_(positions, positions)],
            load=whole.load,
            load_ratio=whole.load_ratio,
            core_node=[index_of[node] for node in workers.core_node.tolist()],
            core_threads=threads,
        ),
        "slots": slots,
        "copy_ps": [_line_ps(system)] * n,
        "worker_core": workers.core,
        "slow": [factor.get(machine.nodes[position].id, 1) for position in positions],
        "fetch": _fetch_costs(system, planner),
    }


def _of_host(planner: HostPlanner) -> dict[str, Any]:
    """Of processes: memory is in what passes take, and there are no adapters."""
    n = planner.nodes
    return {
        "machine": ServiceMachine(
            read_ps=[0] * n,
            write_ps=[0] * n,
            latency_ps=[0] * (n * n),
            load=[0.0, 1.0],
            load_ratio=[1.0, 1.0],
            core_node=list(range(n)),
            core_threads=[1] * n,
        ),
        "slots": [1.0] * n,
        "copy_ps": [planner.copied_line_s() * PS_PER_S] * n,
        "worker_core": list(range(n)),
        "slow": [1] * n,
        "fetch": [MessageCost()] * 4,
    }


def _line_ps(system: JoinSystem) -> float:
    """Of a thread for a line, where a step does not say."""
    return LINE_BYTES / system.copy_bandwidth.value * PS_PER_S


def _step(step: StepPlan, system: JoinSystem, n: int, flows: bool) -> ExchangeStep:
    pieces = None if flows else step.pieces.each()
    return ExchangeStep(
        central=step.shared and system.queue == "central",
        gated=step.gated,
        checked=step.checked,
        input=step.input,
        piece_home=[] if pieces is None else pieces.home,
        piece_lines=[] if pieces is None else pieces.lines,
        piece_rows=[] if pieces is None or pieces.rows is None else pieces.rows,
        instructions_ps=[_line_ps(system) if step.line_s is None else step.line_s * PS_PER_S] * n,
        read=step.read,
        written=step.written,
        rows=[] if step.rows is None else step.rows.tolist(),
        rows_of_buffer=max(int(system.buffer.value // step.row_bytes), 1) if step.row_bytes else 1,
        row_lines=step.row_bytes / LINE_BYTES,
    )


def _buffer_costs(planner: Planner, plan: OperatorPlan) -> list[MessageCost]:
    """Of a message, by how many of ``PARTS`` parts of the buffer are full."""
    if isinstance(planner, HostPlanner):
        return planner.messages(plan.name, PARTS)
    curve = planner.system.curve(planner.machine)
    clock_Hz = planner.machine.nodes[planner.positions[0]].clock_Hz
    header = RETH if plan.one_sided else 0.0
    each = planner.system.buffer.value / PARTS
    ends = (clock_Hz, None if plan.one_sided else clock_Hz)
    return [message_cost(curve, header + k * each, ends) for k in range(PARTS + 1)]


def _fetch_costs(system: JoinSystem, planner: Planner) -> list[MessageCost]:
    """Of an atomic verb and its answer, of a READ of a chunk and its answer."""
    curve = system.curve(planner.machine)
    clock_Hz = planner.machine.nodes[planner.positions[0]].clock_Hz
    return [
        message_cost(curve, ATOMIC, (clock_Hz, None)),
        message_cost(curve, AETH + ATOMIC_ACK, (None, None), ATOMIC),
        message_cost(curve, RETH, (clock_Hz, None)),
        message_cost(curve, AETH + system.chunk.value, (None, None), RETH),
    ]


FULL = 0.9


@dataclass
class Busy:
    """Time, by node (n,): of all workers together, controllers, adapters' two sides."""

    workers: Floats
    memory: Floats
    out: Floats
    into: Floats

    def add(self, other: "Busy", times: float) -> None:
        """So many times as much again."""
        for name, each in vars(other).items():
            setattr(self, name, getattr(self, name) + times * each)


def uses_of(play: Play, machine: Machine, busy: Busy, passed: float = 1.0) -> Iterator[ResourceUse]:
    """Of parts that are ``busy`` for so much of the time that ``passed``."""
    setup, cluster = play.setup, play.system.layout == "cluster"
    capacity_Bps = play.system.curve(machine).bandwidth_Bps if cluster else None
    core_node = np.array(setup.machine.core_node)
    workers = np.bincount(core_node[np.array(setup.worker_core)])
    for k, node in enumerate(play.ids):
        for direction, side in (("out", busy.out), ("in", busy.into)):
            if capacity_Bps is not None:
                name, use = f"adapter of node {node}, {direction}", float(side[k]) / passed
                rate_Bps = use * capacity_Bps
                yield ResourceUse(name, f"nic {direction}", use, rate_Bps, capacity_Bps, node)
        part = float(busy.workers[k]) / workers[k] / passed
        yield ResourceUse(f"workers of node {node}", "threads", part, node=node)
        if setup.machine.read_ps[k]:
            peak_Bps = LINE_BYTES * PS_PER_S / setup.machine.read_ps[k]
            name, part = f"memory of node {node}", float(busy.memory[k]) / passed
            yield ResourceUse(name, "memory", part, part * peak_Bps, peak_Bps, node)


def network_Bps(uses: Sequence[ResourceUse]) -> float | None:
    """What adapters send; None without any."""
    sent_Bps = [use.Bps or 0.0 for use in uses if use.kind == "nic out"]
    return sum(sent_Bps) if sent_Bps else None


def binding(uses: Sequence[ResourceUse]) -> str:
    """The busiest part where it is full; else a query's time is the sum of several parts' times."""
    busiest = max(uses, key=lambda use: use.utilisation)
    if busiest.utilisation >= FULL:
        return busiest.name
    return f"the time that each query takes (busiest: {busiest.name})"


def plan_facts(play: Play, chosen: int, by_operator: Sequence[float]) -> dict[str, Any]:
    """Of the record: the plan that is in use, and queries by operator."""
    plan = play.plans[chosen]
    return {
        "operator": plan.name,
        "queries_by_operator": dict(zip(play.names, by_operator, strict=True)),
        "partitions": {"network": plan.fan.network, "final": plan.fan.final},
        "passes_in_memory": plan.fan.passes,
    }


def stragglers(system: JoinSystem) -> Iterator[ControlEvent]:
    """Nodes that the scenario slows down."""
    for slow in system.stragglers:
        text = f"node {slow.node} takes {slow.factor} times as long"
        yield ControlEvent(0.0, "fault", text, {"node": slow.node, "factor": slow.factor})

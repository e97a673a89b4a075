"""The search for a machine's stealing threshold, by the micro-benchmark of the SAP HANA prototype.

Psaroudakis et al., PVLDB 10 (2016): vectors lie on half of the sockets, and tasks compute the sum
of v^n over one. From n = 1 to 30 they turn from bound by memory to bound by the CPU. Idle sockets
steal none of them, or all they can; where both have the same memory throughput, that of a task,
without stealing, is the threshold: tasks that draw more are not to be stolen.

The source leaves open which half has the vectors. The threshold is that of the first half, where
what is stolen has the longest way on machines of several blades; with every other node the search
is made again, and the interval holds, of both, the step of n within which the throughputs cross.

Clients without think time ask for one sum each, more than there are workers: no worker of a node
with vectors ever waits, or takes tasks of other nodes. The source does not say how many they were.
Without such a ``backlog`` there are as many clients as workers, each of which draws a vector for
each sum: then no task waits for long, and a worker that is done takes the next one, wherever its
vector lies. There is a worker for each hardware thread, as in the source.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ....inputs import Document, InputError, Quantity
from ....inputs.progress import Progress, silent
from ....topologies import Machine, MachineDescription
from ....workloads import Workload, workload_from_document
from .commands import AllowStealing, StealingObservation
from .event_plane import event_plane
from .facts import ENGINE, TasksFacts
from .flow import TasksFlow
from .spec import TasksSystem

POWERS = tuple(range(1, 31))
VALUE_BYTES = 8
VALUES = 2**17  # of a vector: 1 MiB, which is read from memory each time, whatever its size
CLIENTS_PER_WORKER = 4
# Of a value: load, add, count, branch. Of each further power: multiply, count, branch.
VALUE_INSTRUCTIONS, POWER_INSTRUCTIONS = 4.0, 3.0
# A smaller gain is none: as long as memory is the limit, it is with and without stealing.
GAIN_MIN = 0.01
# On the event plane, each long enough for some 20 tasks of a worker that computes the 30th power.
WARM_UP_S, COUNTED_S = 0.1, 0.3
TASK_CLASS = "power"


@dataclass(frozen=True)
class PowerPoint:
    """Of one power: ``task_Bps`` of a task without stealing; ``alone_Bps`` of all tasks without,
    and ``stolen_Bps`` with it."""

    power: int
    task_Bps: float
    alone_Bps: float
    stolen_Bps: float

    @property
    def gain(self) -> float:
        """By stealing; below 0, a loss."""
        return self.stolen_Bps / self.alone_Bps - 1.0


@dataclass(frozen=True)
class Crossing:
    """With vectors on ``nodes`` (ids): the ``points`` up to where stealing begins to pay, and
    ``value_Bps`` between ``low_Bps`` and ``high_Bps``."""

    nodes: tuple[int, ...]
    points: tuple[PowerPoint, ...]
    value_Bps: float
    low_Bps: float
    high_Bps: float


@dataclass(frozen=True)
class ThresholdFound:
    """The threshold of ``machine``, found on a plane; ``crossings``: with vectors on the first half
    of its nodes, and on every other one where that is another half."""

    machine: Machine
    on: str
    crossings: tuple[Crossing, ...]

    @property
    def threshold(self) -> Quantity:
        """With its interval, to three digits."""
        return Quantity(
            _rounded(self.crossings[0].value_Bps),
            _rounded(min(crossing.low_Bps for crossing in self.crossings)),
            _rounded(max(crossing.high_Bps for crossing in self.crossings)),
            "numatwin machine threshold: sums of v^n with and without stealing, as run on the "
            f"{self.on} plane",
        )

    @property
    def description(self) -> MachineDescription:
        """The machine's, with this threshold."""
        base = self.machine.description
        facts = base.facts_of(ENGINE, TasksFacts) or TasksFacts()
        return base.with_facts(
            ENGINE, facts.model_copy(update={"stealing_threshold": self.threshold})
        )

    @property
    def plain(self) -> dict[str, Any]:
        """As plain values, with SI units in the names."""
        found = self.threshold
        return {
            "machine": self.machine.name,
            "on": self.on,
            "threshold_Bps": found.value,
            "interval_Bps": [found.low, found.high],
            "crossings": [asdict(crossing) for crossing in self.crossings],
        }


def search_threshold(
    machine: Machine, on: str = "flow", progress: Progress = silent, *, backlog: bool = True
) -> ThresholdFound:
    """Runs the micro-benchmark on the plane ``on`` (flow or event), with more tasks than workers
    or, without ``backlog``, as many.

    Raises InputError where the machine has fewer than two nodes with cores and memory, or stealing
    pays for all of these tasks, or for none; and on the flow plane without backlog.
    """
    if not backlog and on == "flow":
        raise InputError(
            "the flow plane does not simulate which worker takes which task",
            expected="--on event where no tasks wait",
        )
    able = [k for k, node in enumerate(machine.nodes) if node.cores and not node.memory_bytes <= 0]
    if len(able) < 2:
        raise InputError(
            f"machine '{machine.name}' has fewer than two nodes with cores and memory",
            expected="some that may steal tasks of others",
        )
    half = len(able) // 2
    halves = list(dict.fromkeys([tuple(able[:half]), tuple(able[::2][:half])]))
    crossings = []
    for number, homes in enumerate(halves):
        points: list[PowerPoint] = []
        for point in _points(machine, homes, on, backlog):
            points.append(point)
            progress((number + point.power / POWERS[-1]) / len(halves))
            if point.gain > GAIN_MIN:
                break
        crossings.append(_crossing(machine, homes, points))
    progress(1.0)
    return ThresholdFound(machine, on, tuple(crossings))


def _crossing(machine: Machine, homes: Sequence[int], points: Sequence[PowerPoint]) -> Crossing:
    """Where the gain passes ``GAIN_MIN``, in a straight line between the last two points."""
    last = points[-1]
    if last.gain <= GAIN_MIN:
        raise InputError(
            f"machine '{machine.name}': stealing pays for none of the tasks, which draw at least "
            f"{last.task_Bps / 1e9:.3g} GB/s each"
        )
    if len(points) == 1:
        raise InputError(
            f"machine '{machine.name}': stealing pays for all of the tasks, which draw at most "
            f"{last.task_Bps / 1e9:.3g} GB/s each"
        )
    before = points[-2]
    part = (GAIN_MIN - before.gain) / (last.gain - before.gain)
    value_Bps = before.task_Bps + part * (last.task_Bps - before.task_Bps)
    ids = tuple(machine.nodes[home].id for home in homes)
    return Crossing(ids, tuple(points), value_Bps, last.task_Bps, before.task_Bps)


def _points(machine: Machine, homes: Sequence[int], on: str, backlog: bool) -> Iterator[PowerPoint]:
    for power in POWERS:
        made = _Benchmark(machine, homes, power, backlog)
        task_Bps, alone_Bps = _PLAY[on](made, frozenset())
        _, stolen_Bps = _PLAY[on](made, frozenset({TASK_CLASS}))
        yield PowerPoint(power, task_Bps, alone_Bps, stolen_Bps)


class _Benchmark:
    """Sums of v^``power``, with vectors at ``homes``; an ``Experiment``."""

    scale, seed = 1.0, 1
    policy_names: Mapping[str, str] = {}
    horizon_s = period_s = WARM_UP_S + COUNTED_S

    def __init__(self, machine: Machine, homes: Sequence[int], power: int, backlog: bool) -> None:
        self.machine = machine
        ids = [machine.nodes[home].id for home in homes]
        self.system = TasksSystem(
            kind="tasks",
            threads="hardware-threads",
            tables={f"vector-{node_id}": (node_id,) for node_id in ids},
        )
        workers = int(self.system.workers(machine).sum())
        if backlog:
            own = {"clients": -(-CLIENTS_PER_WORKER * workers // len(ids))}
            self.workload = _sums(ids, power, own, {"kind": "closed"})
        else:
            all_clients = {"kind": "closed", "count": workers}
            self.workload = _sums(ids, power, {"share": 1}, all_clients)


def _sums(
    ids: Sequence[int], power: int, arrivals: Mapping[str, int], clients: Mapping[str, Any]
) -> Workload:
    vector = {
        "kind": "table",
        "rows": VALUES,
        "columns": {"v": {"distinct": VALUES, "value_size": f"{VALUE_BYTES} B"}},
    }
    instructions = VALUE_INSTRUCTIONS + POWER_INSTRUCTIONS * (power - 1)
    described = {
        "name": "sums-of-powers",
        "objects": {f"vector-{node_id}": vector for node_id in ids},
        "operations": {
            f"sum-{node_id}": {
                "kind": "query",
                **arrivals,
                "operators": {
                    "sum": {
                        "kind": "custom",
                        "table": f"vector-{node_id}",
                        "instructions": instructions,
                        "read": f"{VALUE_BYTES} B",
                        "results": 0.0,
                        "concurrency": 1,
                        "task_class": TASK_CLASS,
                    }
                },
            }
            for node_id in ids
        },
        "clients": dict(clients),
    }
    return workload_from_document(Document(described, "sums-of-powers"), Path())


def _flow(made: _Benchmark, classes: frozenset[str]) -> tuple[float, float]:
    """Memory throughput of a task, and of all."""
    plane = TasksFlow(made)
    plane.apply([AllowStealing(classes)])
    each_Bps: float = plane.observe("stealing").memory_Bps[TASK_CLASS]
    return each_Bps, float(plane.rates().served.memory_Bps.sum())


def _event(made: _Benchmark, classes: frozenset[str]) -> tuple[float, float]:
    plane = event_plane(made, 1)
    plane.apply([AllowStealing(classes)])
    plane.advance(WARM_UP_S)
    plane.start_counting()
    plane.advance(made.horizon_s)
    seen, found_Bps = plane.observe("stealing"), plane.outcome().bandwidth_Bps["memory"]
    assert isinstance(seen, StealingObservation)
    assert found_Bps is not None
    return seen.memory_Bps[TASK_CLASS], found_Bps


_PLAY = {"flow": _flow, "event": _event}


def _rounded(Bps: float) -> float:
    return float(f"{Bps:.3g}")

"""Where workers are: placed on cores, moved between them, and what their cores cost in energy."""

from dataclasses import replace

import numpy as np
import pytest

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.threads import Workers, place_workers
from numatwin.sim.planes.flow_log import time_average
from numatwin.sim.planes.machine_use import MachineUse
from numatwin.topologies import load_machine

# Cores 0 and 1 of node 0, core 2 of node 1.
WORKERS = Workers(np.array([0, 0, 1, 2]), np.array([0, 0, 1]))


def test_workers_of_a_node_are_dealt_to_its_cores() -> None:
    machine = load_machine("amd-8n-ht")
    cores = machine.nodes[0].cores
    workers = place_workers(machine, np.array([0] * (cores + 1) + [3]))
    assert workers.core.tolist() == [*range(cores), 0, cores]
    assert workers.core_node.tolist() == [0] * cores + [3]
    assert (workers.count, workers.cores) == (cores + 2, cores + 1)


def test_a_moved_worker_is_elsewhere_and_the_others_stay() -> None:
    moved = WORKERS.moved([1, 2], [2, 2])
    assert moved.core.tolist() == [0, 2, 2, 2]
    assert moved.node.tolist() == [0, 1, 1, 1]
    assert moved.on_cores.tolist() == [1, 0, 3]
    assert moved.active_cores(3).tolist() == [1, 1, 0]
    assert WORKERS.on_cores.tolist() == [2, 1, 1]  # as they were
    assert WORKERS.active_cores(3).tolist() == [2, 1, 0]


@pytest.mark.parametrize("core", [-1, 3])
def test_a_core_that_is_none_of_theirs_is_refused(core: int) -> None:
    with pytest.raises(IndexError, match=f"cores: expected positions below 3, found \\[{core}\\]"):
        WORKERS.moved([0], [core])


def test_active_cores_are_averaged_over_time() -> None:
    """Two cores for 3 s, one for 1 s."""
    rows = np.array([[2, 1], [1, 1]])
    assert time_average(np.array([3.0, 1.0]), rows).tolist() == [1.75, 1.0]
    assert time_average(np.array([0.1, 0.2]), np.array([[7], [7]])).tolist() == [7.0]


def test_energy_is_that_of_cores_that_had_workers() -> None:
    """A core takes 10 W more while it has a worker: two of them for a second, or four for half."""
    machine = load_machine("amd-8n-ht")
    nodes = tuple(replace(node, core_active_W=12.0, core_idle_W=2.0) for node in machine.nodes)
    machine = replace(machine, nodes=nodes)
    use = MachineUse(machine, place_workers(machine, np.array([0, 0, 1, 1])), CostModel(machine))
    n, links = len(nodes), 2 * len(machine.links)
    none = np.zeros(n)

    def energy_J(active: list[float], total_s: float) -> float:
        found = use.energy_J(np.array(active + [0.0] * (n - 2)), none, np.zeros(links), total_s)
        assert found is not None
        return found

    idle_J = energy_J([0.0, 0.0], 1.0)
    assert idle_J == 2.0 * sum(node.cores for node in nodes)
    assert energy_J([2.0, 0.0], 1.0) == pytest.approx(idle_J + 20.0)
    assert energy_J([1.0, 3.0], 0.5) == pytest.approx(idle_J / 2 + 20.0)

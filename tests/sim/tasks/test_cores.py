"""Elastic allocation of cores: the Petri net's properties, and the order of cores of each mode."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.inputs import InputError
from numatwin.sim.systems.tasks.commands import (
    AllocateCore,
    CoresObservation,
    ReleaseCore,
    check_cores,
)
from numatwin.sim.systems.tasks.cores import MODES, CoresSpec, ElasticCores, elastic_net
from numatwin.sim.systems.tasks.petri_net import PetriNet

CORES = np.array([2, 2, 2])


def seen(
    load: float, *allocated: tuple[int, int], memory: tuple[float, ...] = ()
) -> CoresObservation:
    return CoresObservation(
        1.0, CORES, allocated, load, np.array(memory or (0.0, 0.0, 0.0)), 3e9, 10e9
    )  # fmt: skip


def all_cores() -> tuple[tuple[int, int], ...]:
    return tuple((node, core) for node in range(3) for core in range(2))


@pytest.mark.parametrize("cores", [1, 2, 3, 64])
def test_the_net_has_no_fault(cores: int) -> None:
    faults = list(elastic_net(cores).faults((0.0, 1.0), (0.0, 0.1, 0.4, 0.7, 1.0)))
    # On one core there is nothing to allocate or to release.
    expected = (
        ["transition t0 is dead", "transition t3 is dead", "transition t5 is dead",
         "transition t6 is dead", "place Idle is never reached", "place Provision is never reached"]
        if cores == 1 else []
    )  # fmt: skip
    assert faults == expected


def _without(net: PetriNet, name: str) -> PetriNet:
    return replace(net, transitions=tuple(t for t in net.transitions if t.name != name))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("t1", "deadlock in place Checks"),
        ("t4", "deadlock in place Overload"),
        ("t6", "deadlock in place Provision"),
        ("t7", "takes no measurement in place Stable"),
    ],
)
def test_a_missing_transition_is_found(name: str, fault: str) -> None:
    faults = _without(elastic_net(4), name).faults((0.0, 1.0), (0.0, 0.4, 1.0))
    assert any(fault in found for found in faults)


def test_a_dead_transition_and_a_choice_are_found() -> None:
    net = elastic_net(4)
    t1 = next(t for t in net.transitions if t.name == "t1")
    dead = replace(t1, name="t8", guard=lambda token: False)
    twice = replace(t1, name="t9")
    measurements = (0.0, 0.4, 1.0)
    with_dead = replace(net, transitions=(*net.transitions, dead))
    with_choice = replace(net, transitions=(*net.transitions, twice))
    assert list(with_dead.faults((0.0, 1.0), measurements)) == ["transition t8 is dead"]
    assert "2 transitions may fire" in next(with_choice.faults((0.0, 1.0), measurements))


@given(
    st.sampled_from(MODES),
    st.lists(st.tuples(st.floats(0, 1), st.permutations([0.0, 1.0, 2.0])), max_size=40),
)
def test_one_core_a_period_and_always_between_one_and_all(
    mode: str, measured: list[tuple[float, list[float]]]
) -> None:
    policy, allocated = ElasticCores(mode), set(all_cores())
    for period, (load, memory) in enumerate([(0.5, [0.0] * 3), *measured]):
        observation = seen(load, *sorted(allocated), memory=tuple(memory))
        commands = check_cores(policy.decide(observation), observation, mode)
        before = len(allocated)
        for command in commands:
            core = (command.node, command.core)
            (allocated.add if isinstance(command, AllocateCore) else allocated.remove)(core)
        if period == 0:
            assert len(allocated) == 1
            continue
        expected = before + (load >= 0.7 and before < 6) - (load <= 0.1 and before > 1)
        assert len(allocated) == expected


def _order(mode: str, memory: tuple[float, ...] = ()) -> list[int]:
    """Nodes of the cores in the order in which they are allocated."""
    policy, allocated, nodes = ElasticCores(mode), set(all_cores()), []
    for _ in range(6):
        for command in policy.decide(seen(1.0, *sorted(allocated), memory=memory)):
            core = (command.node, command.core)
            (allocated.add if isinstance(command, AllocateCore) else allocated.remove)(core)
            nodes += [command.node] if isinstance(command, AllocateCore) else []
    return nodes


def test_modes_allocate_in_their_order() -> None:
    """The first core is on node 0, or where most memory is."""
    assert _order("sparse") == [1, 2, 0, 1, 2]
    assert _order("dense") == [0, 1, 1, 2, 2]
    assert _order("adaptive", (1.0, 5.0, 3.0)) == [1, 2, 2, 0, 0]


def test_adaptive_releases_where_least_memory_is() -> None:
    policy = ElasticCores("adaptive")
    memory = (1.0, 5.0, 3.0)
    policy.decide(seen(0.5, *all_cores(), memory=memory))
    (command,) = policy.decide(seen(0.0, (0, 0), (1, 0), (2, 1), memory=memory))
    assert command == ReleaseCore(0, 0)


def test_the_interconnect_ratio_may_be_the_metric() -> None:
    policy = ElasticCores("dense", th_min=0.05, th_max=0.3, metric="interconnect")
    policy.decide(seen(0.0, *all_cores()))
    (command,) = policy.decide(seen(0.0, (0, 0)))  # 3 of 10 GB/s
    assert command == AllocateCore(0, 1)


@pytest.mark.parametrize(("low", "high"), [(0.7, 0.7), (0.8, 0.7), (0.3, 0.1)])
def test_thresholds_that_do_not_rise_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="th_min"):
        CoresSpec.model_validate({"policy": "dense", "th_min": low, "th_max": high})
    with pytest.raises(ValueError, match="th_min"):
        ElasticCores("dense", low, high)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (None, "decide returned NoneType"),
        ([AllocateCore(0, 0)], "allocated already"),
        ([ReleaseCore(1, 0)], "not allocated"),
        ([ReleaseCore(0, 0)], "no core is left"),
        ([AllocateCore(3, 0)], "node 3"),
        ([AllocateCore(0, 2)], "core of node 0 2"),
    ],
)
def test_wrong_commands_are_refused(commands: object, message: str) -> None:
    with pytest.raises(InputError, match=f"policy P: .*{message}"):
        check_cores(commands, seen(0.5, (0, 0)), "P")

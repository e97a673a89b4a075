"""The gate of this project: sabotage closes it; code written anew without a change does not."""

import re
import shutil
from pathlib import Path

import pytest

from numatwin.cli import main
from numatwin.validate.suite import CATALOGUE

MA_8 = '''\
"""MA-8 in a file of its own."""

from numatwin.sim.systems.eris.balancing import (
    MovingAverage, Rebalance, bounds_for, loads_of, target_loads
)


class Balancer(MovingAverage):
    def __init__(self):
        super().__init__(threshold=0.1, k=8)
        # end of __init__

    def _rebalance(self, name, seen):
        loads = loads_of(seen)
        targets = target_loads(loads, self.k)
        bounds = bounds_for(seen.bounds, loads, targets)
        return Rebalance(name, bounds=bounds)
'''
SABOTAGES = {
    "as it is": ("", ""),
    "moves half": ("bounds=bounds", "bounds=(seen.bounds + (bounds - seen.bounds) // 2)"),
    "counts accesses twice": (
        "loads = loads_of(seen)",
        "loads = loads_of(seen) * seen.accesses_per_s",
    ),
    "the wrong way round": ("loads, targets)", "targets, loads)"),
}
OF_MA_8 = ("ma-8-keeps-its-expected-throughput", "ma-8-is-back-in-time")
OF_BUFFERS = ("buffers-of-128-keep-lookups-fast", "buffers-of-128-keep-lookups-prompt")


def suite_with(folder: Path, pattern: str, replacement: str) -> str:
    """A copy of the bundled suite, changed, beside a copy of its baseline."""
    shutil.copy(CATALOGUE.folder / "policies.baseline.json", folder)
    text = (CATALOGUE.folder / "policies.yaml").read_text()
    text, count = re.subn(pattern, replacement, text)
    assert count
    (folder / "policies.yaml").write_text(text)
    return str(folder / "policies.yaml")


def checks(names: tuple[str, ...]) -> list[str]:
    return [word for name in names for word in ("--check", name)]


# `make gate` plays what is as it is before every merge; of the broken ones one is enough there.
IN_SWEEPS = ("counts accesses twice", "the wrong way round")


@pytest.mark.parametrize(
    "sabotage",
    [
        pytest.param(name, marks=[pytest.mark.sweep] if name in IN_SWEEPS else [])
        for name in SABOTAGES
    ],
)
def test_a_sabotaged_balancer(
    sabotage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = MA_8.replace(*SABOTAGES[sabotage])
    worse = sabotage != "as it is"
    assert (code != MA_8) is worse
    (tmp_path / "mine.py").write_text(code)
    suite = suite_with(tmp_path, "policy: ma-8", "policy: ./mine.py:Balancer")
    status = main(["regress", suite, *checks(OF_MA_8)])
    out = capsys.readouterr().out
    assert status == (1 if worse else 0), out
    assert ("worse" in out.split("checks:")[1]) is worse, out


@pytest.mark.parametrize(("commands", "status"), [(128, 0), (8, 1)])
def test_a_bad_buffer_size(
    commands: int, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_with(
        tmp_path, r"(settings: \{event_horizon: 3 ms)", rf"\1, system.buffer_commands: {commands}"
    )
    assert main(["regress", suite, *checks(OF_BUFFERS)]) == status, capsys.readouterr().out


def test_a_shared_index_in_place_of_partitions(tmp_path: Path) -> None:
    suite = suite_with(
        tmp_path, r"(settings: \{event_horizon: 3 ms)", r"\1, system.placement: interleaved"
    )
    assert main(["regress", suite, *checks(OF_BUFFERS[:1])]) == 1


TASK_POLICIES = '''\
"""Policies of tasks in a file of their own: as bundled, and broken."""

from dataclasses import replace

from numatwin.sim.systems.tasks.commands import AllowStealing
from numatwin.sim.systems.tasks.cores import ElasticCores, elastic_net
from numatwin.sim.systems.tasks.placer import AdaptivePlacer
from numatwin.sim.systems.tasks.stealing import AdaptiveStealing


class Placer(AdaptivePlacer):
    pass


class NeverHelps(AdaptivePlacer):
    def _helps(self, *_):
        return False


class Stealing(AdaptiveStealing):
    pass


class IgnoresItsThreshold:
    def decide(self, seen):
        return [AllowStealing(frozenset(seen.memory_Bps))]


class Cores(ElasticCores):
    def __init__(self):
        super().__init__("adaptive")


class DeadTransition(Cores):
    def decide(self, seen):
        commands = super().decide(seen)
        dead = {"t3": lambda token: False, "t4": lambda token: True}
        net = self._net
        self._net = replace(
            net,
            transitions=tuple(
                replace(one, guard=dead.get(one.name, one.guard)) for one in net.transitions
            ),
        )
        return commands
'''
OF_TASKS = {
    "adaptive-placement-gives-a-table-its-socket": (
        r"(scenario: hana-fig10\n    plane: flow\n)",
        r"\1    policy: placer=./tasks.py:{}\n",
        ("Placer", "NeverHelps"),
    ),
    "adaptive-stealing-leaves-scans-at-home": (
        "stealing=adaptive",
        "stealing=./tasks.py:{}",
        ("Stealing", "IgnoresItsThreshold"),
    ),
    "elastic-cores-follow-the-load": (
        "cores=adaptive",
        "cores=./tasks.py:{}",
        ("Cores", "DeadTransition"),
    ),
}


@pytest.mark.parametrize("broken", [pytest.param(False, marks=pytest.mark.sweep), True])
@pytest.mark.parametrize("check", OF_TASKS)
def test_a_sabotaged_policy_of_tasks(
    check: str, broken: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern, replacement, classes = OF_TASKS[check]
    (tmp_path / "tasks.py").write_text(TASK_POLICIES)
    suite = suite_with(tmp_path, pattern, replacement.format(classes[broken]))
    status = main(["regress", suite, "--check", check])
    assert status == int(broken), capsys.readouterr()

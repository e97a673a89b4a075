"""The control plane's own clock: what it does to a plane, at which times, in which order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from refusals import told_by

from numatwin.sim.control.control_plane import ControlPlane
from numatwin.sim.planes.outcome import Outcome
from numatwin.sim.planes.plane import Command, Plane, StartPhase
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.commands import BalancingObservation, ObjectObservation, Rebalance

Log = list[tuple[str, Any]]

MOVES = """\
name: moves
machine: intel-4s-qpi
workload:
  name: moves
  objects:
    index: {kind: index, keys: 1_000_000}
  operations:
    lookup: {kind: lookup, object: index}
  phases:
    - start: 2 s
      name: hot
      operations:
        lookup:
          keys:
            {distribution: moving_hot_range, from: 0, to: 1000, step: 1000, every: 3 s, moves: 2}
    - start: 9 s
      name: calm
      operations:
        lookup: {keys: {distribution: uniform}}
horizon: 12 s
"""
BALANCERS = """\
import numpy as np
from numatwin import Rebalance


class Keen:
    '''Moves the middle bound by a key, each time.'''

    def __init__(self):
        self.asked = 0

    def decide(self, observation):
        self.asked += 1
        return [Rebalance("index", bounds=np.array([0, 50 + self.asked, 100]))]


class Calm:
    MEMORYLESS = True

    def decide(self, observation):
        return []


class Broken:
    def decide(self, observation):
        if observation.time_s >= 3.0:
            return 1 / 0
        return []
"""


class FakePlane:
    """A plane that notes what it is told; its index has two partitions of 50 keys."""

    def __init__(self) -> None:
        self.time_s = 0.0
        self.log: Log = []

    def advance(self, until_s: float) -> None:
        """Time never goes back; to go nowhere is fine."""
        assert until_s >= self.time_s
        self.time_s = until_s

    def observe(self, family: str) -> BalancingObservation:
        self.log.append(("observe", self.time_s))
        seen = ObjectObservation(
            kind="index",
            bounds=np.array([0, 50, 100]),
            sizes=np.array([50.0, 50.0]),
            accesses_per_s=np.array([1.0, 9.0]),
            execution_s=np.array([1e-6, 1e-6]),
            nodes=np.array([0, 1]),
            balancing=False,
        )
        return BalancingObservation(self.time_s, 1.0, {"index": seen})

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, StartPhase):
                self.log.append((f"phase {command.phase.name}", self.time_s))
            else:
                self.log.append((f"bounds {known(command.bounds)[1]}", self.time_s))

    def outcome(self) -> Outcome:
        raise AssertionError("the control plane does not ask for results")


class ChangingPlane(FakePlane):
    """What it shows changes by itself at 3.5 s, and not again."""

    @property
    def unchanged_until_s(self) -> float:
        return 3.5 if self.time_s < 3.5 else np.inf


def played(scenario: Scenario, make: type[FakePlane] = FakePlane) -> tuple[ControlPlane, FakePlane]:
    fake = make()
    plane: Plane = fake
    control = ControlPlane(scenario, plane)
    control.run()
    return control, fake


@pytest.fixture
def moves(tmp_path: Path) -> Path:
    path = tmp_path / "moves.yaml"
    path.write_text(MOVES)
    (tmp_path / "mine.py").write_text(BALANCERS)
    return path


def test_phases_and_moves_at_their_times(moves: Path) -> None:
    """Hot from 2 s on, its keys move at 5 and 8 s, calm from 9 s on; the start is no event."""
    control, plane = played(load_scenario(moves))
    assert plane.log == [
        ("phase hot", 2.0),
        ("phase hot", 5.0),
        ("phase hot", 8.0),
        ("phase calm", 9.0),
    ]
    assert plane.time_s == 12.0
    assert [(event.time_s, event.kind, event.text) for event in control.events] == [
        (2.0, "phase", "phase hot"),
        (5.0, "phase", "hot: keys move"),
        (8.0, "phase", "hot: keys move"),
        (9.0, "phase", "phase calm"),
    ]
    assert control.events[0].details == {"phase": "hot"}


def test_nothing_happens_at_or_after_the_horizon(moves: Path) -> None:
    """The phase at 9 s, and the policy's turn at 9 s, are left out of a run of 9 s."""
    settings = ["horizon=9 s", "policies.balancing.period=1.5 s"]
    control, plane = played(load_scenario(moves, policy="one-shot", settings=settings))
    assert plane.time_s == 9.0
    assert [at for what, at in plane.log if what == "observe"] == [1.5, 3, 4.5, 6, 7.5]
    assert max(event.time_s for event in control.events) == 8.0


def test_asked_once_a_period(moves: Path) -> None:
    """0.1 s has no exact float: the k-th turn is at k periods all the same, without drift."""
    settings = ["policies.balancing.period=100 ms", "horizon=2 s"]
    _, plane = played(load_scenario(moves, policy="one-shot", settings=settings))
    asked = [at for what, at in plane.log if what == "observe"]
    assert asked == pytest.approx([0.1 * k for k in range(1, 20)], rel=1e-12)


def test_a_memoryless_policy_is_asked_when_it_may_see_something_else(moves: Path) -> None:
    """In its first turn after phases (2, 5, 8, 9 s) and after the plane's change; where the plane
    does not know when it changes, once a period."""
    policy = f"{moves.parent / 'mine.py'}:Calm"
    scenario = load_scenario(moves, policy=policy, settings=["policies.balancing.period=1 s"])
    for make, turns in ((ChangingPlane, [1, 2, 4, 5, 8, 9]), (FakePlane, [*range(1, 12)])):
        _, plane = played(scenario, make)
        assert [at for what, at in plane.log if what == "observe"] == turns


def test_without_a_policy_nobody_looks(moves: Path) -> None:
    _, plane = played(load_scenario(moves, policy="none"))
    assert not [what for what, _ in plane.log if what == "observe"]


def test_at_one_time_the_workload_changes_first(moves: Path) -> None:
    """At 2, 5, 8 and 9 s both have something to do; then the monitor sees the new phase."""
    settings = ["policies.balancing.period=1 s"]
    _, plane = played(
        load_scenario(moves, policy=f"{moves.parent / 'mine.py'}:Keen", settings=settings)
    )
    for at_s in (2.0, 5.0, 8.0, 9.0):
        kinds = [what.split()[0] for what, at in plane.log if at == at_s]
        assert kinds == ["phase", "observe", "bounds"]


def test_decisions_are_events(moves: Path) -> None:
    """Each run has a policy of its own: counted from 1 again."""
    scenario = load_scenario(
        moves,
        policy=f"{moves.parent / 'mine.py'}:Keen",
        settings=["horizon=2.2 s", "policies.balancing.period=1 s"],
    )
    for _ in range(2):
        control, plane = played(scenario)
        assert [entry for entry in plane.log if "phase" not in entry[0]] == [
            ("observe", 1.0),
            ("bounds 51", 1.0),
            ("observe", 2.0),
            ("bounds 52", 2.0),
        ]
        decisions = [event for event in control.events if event.kind == "balance"]
        assert [(event.time_s, event.text) for event in decisions] == [
            (1.0, "Keen balances index"),
            (2.0, "Keen balances index"),
        ]
        assert decisions[0].details == {"object": "index"}


def test_a_policy_that_raises(moves: Path) -> None:
    """Told in one line, with the line of the user's file; what came before has been played."""
    mine = moves.parent / "mine.py"
    scenario = load_scenario(
        moves, policy=f"{mine}:Broken", settings=["policies.balancing.period=1 s"]
    )
    plane = FakePlane()
    told = told_by(ControlPlane(scenario, plane).run)
    line = 1 + BALANCERS.splitlines().index("            return 1 / 0")
    assert told.startswith(f"{mine}:{line}: policy Broken")
    assert "division by zero" in told
    assert "\n" not in told
    assert plane.time_s == 3.0


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.05, 20).map(lambda x: round(x, 3)), st.floats(0.05, 5).map(lambda x: round(x, 3))
)
def test_progress_rises_from_0_to_1(horizon_s: float, period_s: float) -> None:
    """It never falls, ends at 1, and is told as often as something happens; turns are before the
    horizon, one a period.
    """
    scenario = load_scenario(
        "eris-fig13",
        policy="one-shot",
        settings=[f"horizon={horizon_s} s", f"policies.balancing.period={period_s} s"],
    )
    told: list[float] = []
    plane = FakePlane()
    control = ControlPlane(scenario, plane)
    control.run(told.append)
    assert told == sorted(told)
    assert told[0] >= 0
    assert told[-1] == 1.0
    assert plane.time_s == scenario.horizon_s
    asked = [at for what, at in plane.log if what == "observe"]
    assert all(at < scenario.horizon_s for at in asked)
    assert asked == pytest.approx([period_s * k for k in range(1, len(asked) + 1)])
    assert (len(asked) + 1) * period_s >= horizon_s * (1 - 1e-12)


def test_a_command_reaches_the_plane_as_the_policy_gave_it(moves: Path) -> None:
    """Checked, and with arrays of its own: a policy may go on using its arrays."""
    seen: list[Rebalance] = []

    class Keeper(FakePlane):
        def apply(self, commands: Sequence[Command]) -> None:
            seen.extend(command for command in commands if isinstance(command, Rebalance))

    scenario = load_scenario(moves, policy="one-shot", settings=["horizon=1 s"])
    ControlPlane(scenario, Keeper()).run()
    assert len(seen) == 1
    assert seen[0].object == "index"
    # Loads 1 and 9, 50 keys each: 5 in each half are 1 and 4 ninths of the right partition's keys.
    assert known(seen[0].bounds).tolist() == [0, 72, 100]

"""Policies by family, on a system that the simulator does not know: see toy_system."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_system
from refusals import told_by
from small_scenarios import LOOKUP, small_file
from toy_system import LOG

from numatwin.inputs import InputError
from numatwin.sim.machine.demands import Demand
from numatwin.sim.planes.flow import FlowPlane
from numatwin.sim.planes.flow_system import MachineDemands
from numatwin.sim.run.record import load_record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario, scenario_from_settings
from numatwin.sim.systems import registry

CORES, WORK_S = 4, 1e-7
BOTH = ("clock=once", "mover=once")

MINE = """\
from toy_system import Faster, Move, Once


class Thrice(Once):
    def __init__(self):
        super().__init__(Faster(3.0))


class Mixed(Once):
    def __init__(self):
        super().__init__(Move(1.0))
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(registry.SYSTEMS, "toy", "toy_system")
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    path = small_file(tmp_path, LOOKUP)
    text = path.read_text().replace("placement: partitioned, threads: cores", "kind: toy")
    path.write_text(text.replace("horizon: 1 s", "horizon: 4 s"))
    return path


def names(scenario: Scenario) -> dict[str, str]:
    return dict(scenario.policy_names)


def test_no_policy_by_default(toy: Path) -> None:
    scenario = load_scenario(toy)
    assert names(scenario) == {"clock": "none", "mover": "none"}
    record = run_scenario(scenario)
    assert record.throughput["lookup"] == pytest.approx(CORES / WORK_S)
    assert record.control_events == ()
    assert record.warnings == ("a toy",)
    assert LOG == []


def test_each_family_has_its_effect(toy: Path) -> None:
    """From 1 s on all cores are twice as fast; 10^6 units at 100 ns of two cores are moved."""
    record = run_scenario(load_scenario(toy, policy="clock=once"))
    assert record.throughput["lookup"] == pytest.approx((1 + 2 * 3) / 4 * CORES / WORK_S)
    assert record.series["speed/cores"].tolist() == [1.0, 2.0, 2.0, 2.0]
    moved = run_scenario(load_scenario(toy, policy="mover=once"))
    assert [event.kind for event in moved.control_events] == ["mover", "done"]
    assert moved.throughput["lookup"] < CORES / WORK_S
    both = run_scenario(load_scenario(toy, policy=BOTH))
    assert {event.kind for event in both.control_events} == {"clock", "mover", "done"}
    assert both.throughput["lookup"] > moved.throughput["lookup"]


def test_the_record_names_policies_by_family(toy: Path, tmp_path: Path) -> None:
    record = run_scenario(load_scenario(toy, policy=BOTH))
    assert record.policies == {"clock": "once", "mover": "once"}
    assert record.policy == "clock=once, mover=once"
    again = load_record(record.save(tmp_path / "record"))
    assert again.policies == record.policies
    assert again.as_json()["policies"] == {"clock": "once", "mover": "once"}


@pytest.mark.parametrize(("clock_s", "mover_s"), [(1.0, 0.5), (0.5, 1.0), (1.0, 1.0)])
def test_at_one_instant_families_are_asked_in_their_order(
    toy: Path, clock_s: float, mover_s: float
) -> None:
    """Each by its own period. Who comes later sees what has just been ordered."""
    settings = [f"policies.clock.period={clock_s} s", f"policies.mover.period={mover_s} s"]
    run_scenario(load_scenario(toy, policy=BOTH, settings=settings))
    periods = {"clock": clock_s, "mover": mover_s}
    expected = [
        (k * periods[family], rank, family)
        for rank, family in enumerate(periods)
        for k in range(1, round(4 / periods[family]))
    ]
    assert [(family, at_s) for at_s, _, family in sorted(expected)] == LOG


def test_a_later_family_sees_what_an_earlier_one_ordered(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def decide(policy: object, observation: Any) -> list[Any]:
        seen.append(observation)
        return []

    monkeypatch.setattr(toy_system.Silent, "decide", decide)
    Path("watch.py").write_text("from toy_system import Silent\nclass Watch(Silent): pass\n")
    run_scenario(load_scenario(toy, policy=["clock=once", "mover=watch.py:Watch"]))
    assert [store.factor for store in seen] == [2.0, 2.0, 2.0]


def test_short_and_long_forms_in_a_file(toy: Path) -> None:
    text = toy.read_text()
    toy.write_text(text + "policies: {clock: once, mover: {policy: once, period: 2 s}}\n")
    short = load_scenario(toy)
    assert names(short) == {"clock": "once", "mover": "once"}
    assert [chosen.period_s for chosen in short.policies.values()] == [1.0, 2.0]
    toy.write_text(text + "policies: {clock: {policy: once}, mover: {policy: once, period: 2 s}}\n")
    assert load_scenario(toy).hash == short.hash
    assert scenario_from_settings(short.settings).hash == short.hash
    options = load_scenario(toy, settings=["policies.clock.factor=5.0", "policies.mover=none"])
    assert names(options) == {"clock": "once", "mover": "none"}
    assert options.policies["clock"].make() == toy_system.Once(toy_system.Faster(5.0))


def test_users_classes_by_family(toy: Path) -> None:
    scenario = load_scenario(toy, policy=["mover=once", "clock=mine.py:Thrice"])
    assert names(scenario) == {"clock": "Thrice", "mover": "once"}
    record = run_scenario(load_scenario(toy, policy="clock=mine.py:Thrice"))
    assert record.throughput["lookup"] == pytest.approx((1 + 3 * 3) / 4 * CORES / WORK_S)
    text = toy.read_text()
    for written in ("mine.py:Thrice", "{policy: mine.py:Thrice, period: 2 s}"):
        toy.write_text(f"{text}policies: {{clock: {written}}}\n")
        assert names(load_scenario(toy)) == {"clock": "Thrice", "mover": "none"}
    with pytest.raises(InputError, match="policy Mixed: no Faster"):
        run_scenario(load_scenario(toy, policy="clock=mine.py:Mixed"))


@pytest.mark.parametrize(
    ("policy", "message"),
    {
        "nosuch": "--policy nosuch: a system of kind toy has no policy 'nosuch': "
        "expected FAMILY=NAME, as 'numatwin policy list' has them",
        "onse": "--policy onse: a system of kind toy has no policy 'onse': expected clock=once or ",
        "once": "--policy once: a system of kind toy has policies of several kinds: "
        "expected clock=once or mover=once",
        "clok=once": "--policy clok=once: unknown kind of policy 'clok': expected 'clock'",
        "clock=twice": "--policy clock=twice: unknown policy: found 'twice', expected none or",
        "clock=mine.py": "--policy clock=mine.py: no policy class: expected FILE.py:CLASS",
        "clock=no.py:Mine": "no.py: cannot be read",
        "mover=once=2": "--policy mover=once=2: unknown policy: found 'once=2', expected 'once'",
    }.items(),
)
def test_a_policy_that_will_not_do(toy: Path, policy: str, message: str) -> None:
    assert told_by(load_scenario, toy, policy=policy).startswith(message)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ("{balancing: ma-8}", "a system of kind toy has no policies of kind 'balancing': found"),
        ("{clok: once}", "unknown kind of policy 'clok': expected 'clock'"),
        ("{mover: {policy: once, factor: 2.0}}", "unknown field 'factor' in policies.mover"),
        ("{clock: {file: mine.py, class: Thrice, factor: 2.0}}", "factor belongs to bundled"),
        ("{clock: 3}", "policies.clock: "),
    ],
)
def test_a_file_that_will_not_do(toy: Path, policies: str, message: str) -> None:
    lines = toy.read_text().count("\n")
    toy.write_text(toy.read_text() + f"policies: {policies}\n")
    told = told_by(load_scenario, toy)
    assert message in told
    assert f"{toy.name}:{lines + 1}:" in told


def test_none_of_a_family_that_another_system_has_is_no_matter(toy: Path) -> None:
    toy.write_text(toy.read_text() + "policies: {balancing: {policy: none, period: 1 s}}\n")
    assert names(load_scenario(toy)) == {"clock": "none", "mover": "none"}


def test_a_system_that_nobody_knows(toy: Path) -> None:
    with pytest.raises(InputError, match="system: unknown kind: found 'toys', expected one of"):
        load_scenario(toy, settings=["system.kind=toys"])


class Messages(toy_system.ToyFlow):
    """One client; each unit sends two lines from node 0 to node 1, and is 400 ns on its way."""

    def demand(self, demands: MachineDemands, time_s: float) -> Demand:
        sent = np.array([[0.0, 2.0], [0.0, 0.0]])
        whole = super().demand(demands, time_s)
        return replace(whole, sent=sent, customers=1.0, delay_s=400e-9)


def test_a_client_waits_for_messages_and_links_carry_them(toy: Path, tmp_path: Path) -> None:
    """1 / (100 ns + 400 ns) = 2 M/s; of a line 64 + 8 B go there, 8 B of its request come back."""
    path = small_file(tmp_path, LOOKUP, nodes=2)
    path.write_text(path.read_text().replace("placement: partitioned, threads: cores", "kind: toy"))
    scenario = load_scenario(path)
    plane = FlowPlane(scenario, Messages(scenario))
    plane.advance(1.0)
    outcome = plane.outcome()
    assert outcome.throughput["lookup"] == pytest.approx(2e6)
    traffic = {use.ends: use.Bps for use in outcome.resources if use.kind == "link"}
    assert traffic == pytest.approx({(0, 1): 2e6 * 2 * 72, (1, 0): 2e6 * 2 * 8})

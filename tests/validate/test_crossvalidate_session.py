"""Sessions of cross-validation on synthetic planes: rounds, rows, failures, interrupts."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import PydanticSerializationError
from synthetic_planes import NO_MEMORY, SyntheticPlanes, by_round, steady

from numatwin.inputs import InputError
from numatwin.inputs.progress import StepProgress
from numatwin.sim.run.record import Record
from numatwin.sim.run.scenario import Scenario
from numatwin.sim.run.uncertainty import DRAWS
from numatwin.topologies import load_machine
from numatwin.topologies.catalogue import CATALOGUE as MACHINES
from numatwin.validate.crossvalidate.session import Found, Session
from numatwin.validate.crossvalidate.suite import Case, load_suite
from numatwin.validate.measure.noise import Ticks

NAME = "amd-8n-ht"
SUITE = """\
name: mine
runs:
  one: {scenario: host-lookup, settings: {workload: eris-lookup-1e9}}
  two: {scenario: host-lookup, settings: {workload: lookup-zipf}, planes: [flow]}
  three: {scenario: host-lookup, settings: {workload: lookup-hot-range}}
"""
ONE, TWO, THREE = "eris-lookup-1e9", "lookup-zipf", "lookup-hot-range"
STEADY = {"native": steady(100.0), "flow": steady(110.0), "event": steady(95.0)}

# Without draws of the facts, which take 32 predictions of each case.
Sure = partial(Session, doubt=lambda record, scenario: record)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, ...]:
    path = tmp_path_factory.mktemp("suite") / "mine.yaml"
    path.write_text(SUITE)
    return load_suite(str(path), MACHINES.path(NAME), load_machine(NAME)).cases


def quiet() -> Ticks:
    """Time passes, and nobody uses a CPU."""
    return Ticks(next(SECONDS), 0.0, 0.0, 0.0)


SECONDS = count(1.0)


def found(cases: tuple[Case, ...], planes: SyntheticPlanes, rounds: int = 3) -> Found:
    return Sure(cases, rounds, play=planes, ticks=quiet).run()


def test_rounds_go_through_all_cases_in_turn(cases: tuple[Case, ...]) -> None:
    planes = SyntheticPlanes(STEADY)
    found(cases, planes)
    native = [name for name, plane in planes.played if plane == "native"]
    assert native == [ONE, TWO, THREE] * 3
    # Predictions are made in the first round, each beside its real run.
    assert planes.played[:8] == [
        (ONE, "native"), (ONE, "flow"), (ONE, "event"),
        (TWO, "native"), (TWO, "flow"),
        (THREE, "native"), (THREE, "flow"), (THREE, "event"),
    ]  # fmt: skip
    assert all(plane == "native" for _, plane in planes.played[8:])


@settings(max_examples=20, deadline=None)
@given(rounds=st.integers(1, 6), number=st.integers(1, 3), stop=st.integers(1, 18))
def test_rounds_are_balanced_whenever_they_end(
    cases: tuple[Case, ...], rounds: int, number: int, stop: int
) -> None:
    planes = SyntheticPlanes(STEADY, failing={("native", stop): KeyboardInterrupt()})
    result = found(cases[:number], planes, rounds)
    runs = [len(result.measured.get(case.name, [])) for case in cases[:number]]
    assert sum(runs) == min(stop - 1, rounds * number)
    assert max(runs) - min(runs) <= 1
    assert sorted(runs, reverse=True) == runs
    assert result.interrupted == (stop <= rounds * number)


def test_rows_by_hand(cases: tuple[Case, ...]) -> None:
    rates = {**STEADY, "native": by_round(90.0, 100.0, 130.0)}
    rows = found(cases[:1], SyntheticPlanes(rates, {"native": 2e3, "event": 1.5e3})).rows()
    told = {(row.plane, row.metric): row for row in rows}
    assert set(told) == {
        ("flow", "throughput.lookup"),
        ("event", "throughput.lookup"),
        ("event", "latency_ns.lookup.p99"),
    }
    flow = told["flow", "throughput.lookup"]
    assert (flow.measured.value, flow.measured.low, flow.measured.high) == (100.0, 90.0, 130.0)
    assert flow.relative_error == pytest.approx(0.1)
    assert flow.error == pytest.approx(0.1)
    assert told["event", "throughput.lookup"].relative_error == pytest.approx(-0.05)
    assert told["event", "latency_ns.lookup.p99"].relative_error == pytest.approx(-0.25)
    assert {row.kind for row in rows} == {"throughput", "p99 latency"}
    assert {row.set for row in rows} == {"test"}


def test_memory_traffic_that_is_not_measured_has_no_row(cases: tuple[Case, ...]) -> None:
    result = found(cases[:1], SyntheticPlanes(STEADY))
    assert not any(row.kind == "memory traffic" for row in result.rows())
    reasons = {left.what: left for left in result.left_out()}
    assert reasons["memory traffic"].reason == "this host shows no counters of its memory"
    assert reasons["memory traffic"].runs == ("one",)
    # No p99 latency either, but nobody predicts one.
    assert set(reasons) == {"memory traffic"}


def test_memory_traffic_that_is_measured_has_one(cases: tuple[Case, ...]) -> None:
    planes = SyntheticPlanes(STEADY)

    def play(scenario: Scenario) -> Record:
        return replace(planes(scenario), bandwidth_Bps={"memory": 2e9})

    rows = Sure(cases[:1], 1, play=play).run().rows()
    traffic = [row for row in rows if row.kind == "memory traffic"]
    assert [(row.plane, row.relative_error) for row in traffic] == [("flow", 0.0), ("event", 0.0)]


def test_a_real_run_that_fails_keeps_what_was_finished(cases: tuple[Case, ...]) -> None:
    # Its second run of round 2 is that of case two.
    planes = SyntheticPlanes(STEADY, failing={("native", 5): NO_MEMORY})
    result = found(cases, planes)
    (failure,) = result.failures
    assert (failure.scenario, failure.plane, failure.round) == ("two", "native", 2)
    assert failure.reason == "no memory left for the engine: expected a smaller --scale"
    assert [len(result.measured[name]) for name in ("one", "two", "three")] == [3, 1, 3]
    assert {row.scenario for row in result.rows()} == {"one", "two", "three"}
    native = [name for name, plane in planes.played if plane == "native"]
    assert native == [ONE, TWO, THREE, ONE, TWO, THREE, ONE, THREE]  # two is not tried again


@pytest.mark.parametrize("failure", [RuntimeError("a worker\ndied"), OSError(28, "disk full")])
def test_other_failures_of_runs(cases: tuple[Case, ...], failure: Exception) -> None:
    planes = SyntheticPlanes(STEADY, failing={("event", 1): failure})
    result = found(cases, planes)
    (told,) = result.failures
    assert (told.scenario, told.plane) == ("one", "event")
    assert "\n" not in told.reason
    assert [row.plane for row in result.rows() if row.scenario == "one"] == ["flow"]


def test_mistakes_of_the_program_are_no_failures_of_runs(cases: tuple[Case, ...]) -> None:
    planes = SyntheticPlanes(STEADY, failing={("native", 2): KeyError("a bug")})
    with pytest.raises(KeyError):
        found(cases, planes)


@pytest.mark.parametrize("at", range(1, 9))
def test_an_interrupt_keeps_what_was_finished(cases: tuple[Case, ...], at: int) -> None:
    planes = SyntheticPlanes(STEADY, failing={("native", at): KeyboardInterrupt()})
    result = found(cases, planes)
    assert result.interrupted
    assert result.rounds == (at - 1) // 3
    first_round = min(at - 1, 3)
    assert {row.scenario for row in result.rows()} == {"one", "two", "three"} & {
        ("one", "two", "three")[k] for k in range(first_round)
    }


def test_an_interrupt_within_pydantic_is_one(cases: tuple[Case, ...]) -> None:
    wrapped = PydanticSerializationError("Error calling function `<lambda>`: KeyboardInterrupt: ")
    result = found(cases, SyntheticPlanes(STEADY, failing={("native", 2): wrapped}))
    assert result.interrupted
    assert {row.scenario for row in result.rows()} == {"one"}
    other = PydanticSerializationError("Error calling function `<lambda>`: KeyError: 1")
    with pytest.raises(PydanticSerializationError):
        found(cases, SyntheticPlanes(STEADY, failing={("native", 2): other}))


def test_records_are_handed_over_one_by_one(cases: tuple[Case, ...]) -> None:
    kept: list[tuple[str, str]] = []
    Sure(
        cases[:2],
        2,
        play=SyntheticPlanes(STEADY),
        keep=lambda case, name, record: kept.append((case, name)),
    ).run()
    assert kept == [
        ("one", "native-1"), ("one", "flow"), ("one", "event"),
        ("two", "native-1"), ("two", "flow"),
        ("one", "native-2"), ("two", "native-2"),
    ]  # fmt: skip


class Busy:
    """Ticks of a host on which others use all CPUs during these real runs, counted from 0."""

    def __init__(self, runs: set[int]) -> None:
        self._runs, self._asked, self._busy = runs, 0, 0.0

    def __call__(self) -> Ticks:
        run, ended = divmod(self._asked, 2)
        self._busy += (os.cpu_count() or 1) if ended and run in self._runs else 0.0
        self._asked += 1
        return Ticks(float(self._asked), self._busy, 0.0, 0.0)


@pytest.mark.parametrize("busy", [set(), {1}, {0, 3}])
def test_what_others_used_meanwhile_is_told_and_all_rounds_count(
    cases: tuple[Case, ...], busy: set[int]
) -> None:
    rates = {**STEADY, "native": by_round(90.0, 100.0, 130.0, 140.0)}
    session = Sure(cases[1:2], 4, play=SyntheticPlanes(rates), ticks=Busy(busy))
    (row,) = session.run().rows()
    assert row.values == (90.0, 100.0, 130.0, 140.0)
    assert session.found.others == pytest.approx(len(busy) / 4)
    told = list(session.found.noise())
    assert len(told) == bool(busy)
    assert all(text.startswith("noisy host: other programs used") for text in told)


def test_a_full_disk_costs_no_row(cases: tuple[Case, ...]) -> None:
    asked: list[str] = []

    def full(case: str, name: str, record: Record) -> None:
        asked.append(name)
        raise InputError("cannot be written: No space left on device", "kept")

    result = Sure(cases, 2, play=SyntheticPlanes(STEADY), keep=full).run()
    assert asked == ["native-1"]  # not tried again
    assert result.not_kept == (
        "records are not kept from 'one' on: kept: cannot be written: No space left on device"
    )
    assert {row.scenario for row in result.rows()} == {"one", "two", "three"}
    assert result.failures == []


def test_progress_rises_to_the_end(cases: tuple[Case, ...]) -> None:
    told: list[float] = []
    Sure(cases, 2, play=SyntheticPlanes(STEADY), progress=lambda part, _: told.append(part)).run()
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)
    assert len(set(told)) == 3 * 2 + 5 + 1


def test_the_interval_is_that_of_the_drawn_facts(cases: tuple[Case, ...]) -> None:
    """Of 32 draws, evenly from 0.8 to 1.3 times as fast as 110 /s: 5% lie below 0.825 of that, 5%
    above 1.275; all percentiles of a latency move as its mean.
    """
    faster = np.linspace(0.8, 1.3, DRAWS)
    mean = {"lookup": {"mean": (1.0 / faster).tolist()}}
    shifts = {"throughput": {"lookup": faster.tolist()}, "latency_ns": mean}

    def doubted(record: Record, scenario: Scenario) -> Record:
        return replace(record, uncertainty={"shifts": shifts})

    planes = SyntheticPlanes(STEADY, {"native": 2e3, "event": 1.5e3})
    rows = Session(cases[:1], 1, play=planes, doubt=doubted).run().rows()
    told = {(row.plane, row.metric): row.predicted for row in rows}
    rate, p99 = told["flow", "throughput.lookup"], told["event", "latency_ns.lookup.p99"]
    assert (rate.low, rate.high) == pytest.approx((1.1 * 82.5, 1.1 * 127.5), rel=0.02)
    assert p99.low < 1.5e3 / 1.25 < 1.5e3 / 0.85 < p99.high


class FakeHost:
    """Counts passes; the facts of more than one make another plane's predictions."""

    def __init__(self, cases: tuple[Case, ...], planes: SyntheticPlanes, stop: int = 0) -> None:
        self._cases, self.planes, self.stop = cases, planes, stop
        self.passes: list[int] = []

    def measure(self, progress: StepProgress) -> None:
        self.passes.append(len(self.planes.played))
        if len(self.passes) == self.stop:
            raise KeyboardInterrupt
        progress(0.5, "walk")

    def cases(self) -> Sequence[Case]:
        return self._cases


FIRST_AND_THEN = {**STEADY, "flow": by_round(110.0, 104.0)}


def test_the_host_is_measured_before_each_round_and_all_is_predicted_with_it(
    cases: tuple[Case, ...],
) -> None:
    planes = SyntheticPlanes(FIRST_AND_THEN)
    host, kept, told = FakeHost(cases[:2], planes), [], []
    result = Sure(
        cases[:2], 3, host=host, play=planes, ticks=quiet,
        keep=lambda case, name, record: kept.append((case, name)),
        progress=lambda share, what: told.append((share, what)),
    ).run()  # fmt: skip
    assert host.passes == [5, 7]  # after the first round with its predictions, and the second
    assert planes.played[-3:] == [(ONE, "flow"), (ONE, "event"), (TWO, "flow")]
    flow = {row.scenario: row.predicted.value for row in result.rows() if row.plane == "flow"}
    assert flow == {"one": 104.0, "two": 104.0}
    assert result.predicted_again
    assert kept.count(("one", "flow")) == 2
    assert "the host once more: walk" in [what for _, what in told]
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert max(shares[:-1]) < 1.0


@pytest.mark.parametrize(("stop", "failing"), [(2, {}), (0, {("flow", 4): KeyboardInterrupt()})])
def test_an_interrupt_before_all_is_predicted_anew_leaves_what_was(
    cases: tuple[Case, ...], stop: int, failing: dict[tuple[str, int], BaseException]
) -> None:
    planes = SyntheticPlanes(FIRST_AND_THEN, failing=failing)
    host = FakeHost(cases[:2], planes, stop)
    result = Sure(cases[:2], 3, host=host, play=planes, ticks=quiet).run()
    assert (result.interrupted, result.predicted_again) == (True, False)
    assert result.rounds == (3 if failing else 2)
    flow = {row.scenario: row.predicted.value for row in result.rows() if row.plane == "flow"}
    assert flow == {"one": 110.0, "two": 110.0}


def test_what_cannot_be_predicted_is_told_once(cases: tuple[Case, ...]) -> None:
    planes = SyntheticPlanes(FIRST_AND_THEN, failing={("event", 1): NO_MEMORY})
    host = FakeHost(cases[:1], planes)
    result = Sure(cases[:1], 2, host=host, play=planes, ticks=quiet).run()
    assert [(one.scenario, one.plane) for one in result.failures] == [("one", "event")]
    assert [row.plane for row in result.rows()] == ["flow"]

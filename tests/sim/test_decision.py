"""Which of two runs does more: probability, regret, and what would settle it, by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.run.decision import decision, measure_first
from numatwin.sim.run.doubts import drawn
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.uncertainty import DRAWS, with_uncertainty

BASE = run_scenario(load_scenario("eris-fig8-intel"))


def record_of(
    value: float, shift: Floats | float = 1.0, doubts: Sequence[str] = (), spread: float = 0.0
) -> Record:
    """Throughput ``value``, by what each draw multiplies it; three replications, if any differ."""
    named = [{"name": name, "setting": f"machine.{name}", "stream": name} for name in doubts]
    shifts = {"throughput": {"lookup": (np.ones(DRAWS) * shift).tolist()}}
    values = [value - spread, value, value + spread]
    chance = {"replications": 3, "replicates": {"throughput": {"lookup": values}}}
    return replace(
        BASE,
        throughput={"lookup": value},
        uncertainty={"level": 0.9, "doubts": named, "shifts": shifts},
        **(chance if spread else {}),  # type: ignore[arg-type]
    )


def scores(stream: str) -> Floats:
    """(DRAWS,) normal scores of the draws of a doubt."""
    return np.asarray(norm.ppf(drawn(stream, DRAWS)))


def loss(mean: float, deviation: float) -> float:
    """E[max(X, 0)] of a normal X."""
    u = mean / deviation
    return float(deviation * (norm.pdf(u) + u * norm.cdf(u)))


def decided(first: Record, other: Record) -> Mapping[str, object]:
    found = decision(first, other, "lookup")
    assert found is not None
    return found


@pytest.mark.parametrize("mean", [-0.2, -0.03, 0.0, 0.05])
def test_a_normal_difference(mean: float) -> None:
    """The other is 1 + N(mean, 0.1) times as fast: probability and regret in closed form."""
    found = decided(
        record_of(100.0), record_of(100.0 * (1 + mean), 1 + 0.1 * scores("a") / (1 + mean), ["a"])
    )
    assert found["share"] == pytest.approx(norm.cdf(mean / 0.1), abs=1.5 / DRAWS)
    regret = [loss(mean, 0.1) / (1 + loss(mean, 0.1)), loss(-mean, 0.1) / (1 + loss(mean, 0.1))]
    assert found["regret"] == pytest.approx(regret, rel=0.05, abs=5e-4)
    assert found["interval"] == pytest.approx([0.8355 + mean, 1.1645 + mean], abs=0.02)


def test_one_doubt_makes_all_of_it() -> None:
    found = decided(record_of(100.0), record_of(100.0, 1 + 0.1 * scores("a"), ["b", "a", "c"]))
    assert found["measure"] == {
        "name": "a", "setting": "machine.a", "share": pytest.approx(1.0, abs=0.05)
    }  # fmt: skip


def test_of_two_doubts_the_one_that_is_worth_more() -> None:
    """Deviations of 8% and 3%: knowing the first is worth E[max(N(0, 8%), 0)] of the total's
    E[max(N(0, √(8² + 3²)%), 0)], a part of 0.936.
    """
    shift = 1 + 0.08 * scores("a") + 0.03 * scores("b")
    found = decided(record_of(100.0), record_of(100.0, shift, ["a", "b"]))
    assert found["measure"] == {
        "name": "a", "setting": "machine.a", "share": pytest.approx(0.936, abs=0.08)
    }  # fmt: skip


def test_what_both_have_in_common_cancels() -> None:
    shift = 1 + 0.2 * scores("a")
    same = record_of(100.0, shift, ["a"]), record_of(110.0, shift, ["a"])
    assert decision(*same, "lookup") is None  # the facts say nothing of the difference
    alone = decided(same[0], record_of(110.0, 1.0, ["a"]))
    assert alone["share"] < 0.9  # type: ignore[operator]


def test_chance_alone() -> None:
    """Values 100 ± 1 and 110 ± 1; more replications would not change what is sure."""
    found = decided(record_of(100.0, spread=1.0), record_of(110.0, spread=1.0))
    assert found["causes"] == ["replications"]
    assert found["share"] == 1.0
    assert found["regret"] == pytest.approx([0.1 / 1.1, 0.0], abs=1e-3)
    near = decided(record_of(100.0, spread=9.0), replace(record_of(101.0, spread=9.0), seed=7))
    assert near["measure"]["setting"] == "replications"  # type: ignore[index]


def test_of_several_rivals_what_one_doubt_is_worth() -> None:
    """One of two rivals does N(0, 10%) more by a doubt; the other is always 5% behind: knowing the
    doubt saves E[max(N(0, 10%), 0)] of the regret, all of it.
    """
    doubts = {name: {"name": name, "setting": name} for name in ("a", "b")}
    more = np.array([0.1 * scores("a"), np.full(DRAWS, -0.05)])
    regret = float(np.maximum(more.max(axis=0), 0.0).mean())
    found = measure_first(doubts, more, np.zeros(1), regret)
    assert found == {"name": "a", "setting": "a", "share": pytest.approx(1.0, abs=0.05)}


def test_many_doubts_of_which_none_decides() -> None:
    """Forty doubts that have nothing to do with it: one is named in one decision of twenty."""
    names, named = [f"d{k}" for k in range(40)], 0
    for seed in range(40):
        shift = 1 + 0.1 * np.random.default_rng(seed).permutation(scores("another"))
        found = decided(record_of(100.0), record_of(100.0, shift, names))
        named += found["measure"] is not None
    assert named <= 5  # of 40, that are 2 on average; more than 5 in 1.4% of all seeds


@given(mean=st.floats(-0.4, 0.4), deviation=st.floats(0.01, 0.3))
def test_laws(mean: float, deviation: float) -> None:
    """Regrets, less than 1, differ by the mean difference; shares of both add up to 1."""
    shift = np.maximum(1 + mean + deviation * scores("a"), 0.01)
    first, other = record_of(100.0), record_of(100.0, shift, ["a"])
    found, back = decided(first, other), decided(other, first)
    regret, mean_more = found["regret"], (shift.mean() - 1) / np.maximum(shift, 1).mean()
    assert 0.0 <= min(regret) <= max(regret) < 1.0  # type: ignore[call-overload]
    assert regret[0] - regret[1] == pytest.approx(float(mean_more), abs=1e-9)  # type: ignore[index]
    assert found["share"] == pytest.approx(1.0 - back["share"])  # type: ignore[operator]


def test_unknown_without() -> None:
    one = record_of(100.0)
    assert decision(one, one, "lookup") is None
    assert decision(one, one, "scan") is None


def test_a_run_is_as_fast_as_itself() -> None:
    """Whatever the model is wrong by."""
    scenario = load_scenario("eris-fig8-intel")
    record = with_uncertainty(run_scenario(scenario), scenario)
    assert decision(record, record, "lookup") is None

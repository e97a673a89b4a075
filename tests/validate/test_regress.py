"""The gate itself: what is held against what, after how many replications, and what it says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_suites import AGAINST, BOUND, FASTER, FLOW, KEEPS, PROMPT, REPLICATIONS, SLOWER, write

from numatwin.sim.run import replications
from numatwin.sim.run.scenario import load_scenario
from numatwin.validate import regress as sides_module
from numatwin.validate.annotations import message_of
from numatwin.validate.baseline import Entry
from numatwin.validate.metrics import Metric
from numatwin.validate.regress import AlternativeRun, Result, Sides, regress
from numatwin.validate.suite import load_suite


def play(path: str, entries: dict[str, Entry], seed: int | None = None) -> dict[str, Result]:
    found = regress(load_suite(path, seed=seed), entries, sides=Sides(1))
    return {result.check.name: result for result in found}


def baseline(path: str, seed: int | None = None) -> dict[str, Entry]:
    suite = load_suite(path, seed=seed).of_baseline()
    results = list(regress(suite, {}, update=True, sides=Sides(1)))
    assert {result.verdict for result in results} == {"undecided"}  # nothing to hold them against
    assert {result.reference for result in results} == {None}
    return {result.check.name: result.entry for result in results}


def test_nothing_changed(tmp_path: Path) -> None:
    path = write(tmp_path, KEEPS, PROMPT, FLOW)
    entries = baseline(path)
    assert [len(entries[name].values) for name in ("keeps", "prompt", "flow")] == [6, 6, 1]
    results = play(path, entries)
    for result in results.values():
        assert result.verdict == "no difference"
        assert result.difference.relative is not None
        assert result.difference.relative.value == 0.0
    # The same draws: two are enough. What draws nothing is played once.
    assert [results[name].replications for name in ("keeps", "prompt", "flow")] == [2, 2, 0]


@pytest.mark.parametrize(
    ("change", "verdict", "other"), [(SLOWER, "worse", "worse"), (FASTER, "better", "better")]
)
def test_a_change_of_one_parameter(
    change: tuple[str, str], verdict: str, other: str, tmp_path: Path
) -> None:
    entries = baseline(write(tmp_path, KEEPS, PROMPT))
    results = play(write(tmp_path, KEEPS, PROMPT, change=change), entries)
    assert results["keeps"].verdict == verdict
    assert results["keeps"].difference.paired
    assert results["prompt"].verdict in (other, "undecided")


def test_another_seed_is_another_sample(tmp_path: Path) -> None:
    path = write(tmp_path, KEEPS)
    entries = baseline(path)
    result = play(path, entries, seed=11)["keeps"]
    assert not result.difference.paired
    assert result.replications >= 5
    assert result.verdict in ("no difference", "undecided")
    slow = play(write(tmp_path, KEEPS, change=SLOWER), entries, seed=11)["keeps"]
    assert slow.verdict == "worse"


def test_no_more_pairs_than_the_baseline_has(tmp_path: Path) -> None:
    entries = baseline(write(tmp_path, KEEPS))
    few = {"keeps": replace(entries["keeps"], values=entries["keeps"].values[:2])}
    # A suspicion that two pairs cannot decide.
    result = play(write(tmp_path, KEEPS, change=SLOWER), few)["keeps"]
    assert (result.verdict, result.replications) == ("undecided", 2)


def test_the_baseline_says_what_is_left_out(tmp_path: Path) -> None:
    """Figures of another warm-up would be other figures."""
    path = write(tmp_path, KEEPS, change=(", statistics.warm_up: 0.5 ms", ""))
    entries = baseline(path)
    other = {"keeps": replace(entries["keeps"], warm_up_s=1.5e-3, values=(5.0,) * 6)}
    result = play(path, other)["keeps"]
    assert result.entry.warm_up_s == 1.5e-3
    assert result.entry.values != entries["keeps"].values[: len(result.entry.values)]


def test_bounds(tmp_path: Path) -> None:
    path = write(tmp_path, BOUND)
    result = play(path, {})["bound"]
    assert (result.verdict, result.reference) == ("better", 1e5)
    at = result.value
    for bound, verdict in ((0.5 * at, "better"), (2 * at, "worse"), (at, "undecided")):
        change = ("100 k/s", f"{bound} /s")
        found = play(write(tmp_path, BOUND, change=change), {})["bound"]
        assert found.verdict == verdict, bound
        assert found.difference.paired is False


def test_a_multiple_of_the_alternative(tmp_path: Path) -> None:
    """'At least so much better' is another promise than 'no worse than'."""
    plain = play(write(tmp_path, AGAINST), {})["against"]
    assert plain.reference is not None
    ratio = plain.value / plain.reference
    for text, verdict in (
        (f"at_least: {0.9 * ratio:.6f} ×", "better"),
        (f"at_least: {1.1 * ratio:.6f}x", "worse"),
        (f"at_most: {1.1 * ratio:.6f} ×", "better"),
        (f"at_most: {0.9 * ratio:.6f} x", "worse"),
    ):
        found = play(write(tmp_path, AGAINST, change=("tolerance: 0.05", text)), {})["against"]
        assert found.verdict == verdict, text
        assert found.check.factor == pytest.approx(float(text.split()[1].rstrip("x")))
    assert " × the alternative" in message_of(found)


def test_alternatives_have_the_same_draws_and_warm_up(tmp_path: Path) -> None:
    path = write(tmp_path, AGAINST, change=(", statistics.warm_up: 0.5 ms", ""))
    result = play(path, {})["against"]
    assert result.verdict == "better"
    assert result.difference.paired
    check = result.check
    assert check.other is not None
    sides = Sides(1)
    one, other = sides.both(check.scenario, check.other)
    own = [sides.of(scenario).warm_up_s for scenario in (check.scenario, check.other)]
    assert one.warm_up_s == other.warm_up_s == max(own) == result.entry.warm_up_s


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all replications that are played."""
    numbers: list[int] = []
    real: Callable[..., Any] = replications.play_numbers

    def play_numbers(make: Any, scenario: Any, which: range, *rest: Any) -> Any:
        numbers.extend(which)
        return real(make, scenario, which, *rest)

    monkeypatch.setattr(sides_module, "play_numbers", play_numbers)
    return numbers


def test_what_checks_share_is_played_once(tmp_path: Path, counted: list[int]) -> None:
    path = write(tmp_path, KEEPS, PROMPT, BOUND)
    entries = baseline(path)
    assert counted == list(range(1, REPLICATIONS + 1))
    counted.clear()
    results = play(path, entries)
    assert counted == list(range(1, max(one.replications for one in results.values()) + 1))


def test_an_update_is_held_against_what_it_replaces(tmp_path: Path) -> None:
    entries = baseline(write(tmp_path, KEEPS))
    suite = load_suite(write(tmp_path, KEEPS, change=SLOWER))
    (result,) = regress(suite, entries, update=True, sides=Sides(1))
    assert (result.verdict, result.replications) == ("worse", REPLICATIONS)
    assert len(result.entry.values) == REPLICATIONS


def test_rows_say_how_much_better(tmp_path: Path) -> None:
    """More latency is less good: signs are those of what is wanted, not of the figure."""
    path = write(tmp_path, PROMPT)
    entries = baseline(path)
    row = play(write(tmp_path, PROMPT, change=SLOWER), entries)["prompt"].as_json()
    assert row["value"] > row["reference"]
    assert row["better_by"] < 0
    low, high = row["interval"]
    assert low < row["better_by"] < high


def test_steps_of_figures() -> None:
    """A quantile is known up to half a bin, a rate up to one operation."""
    quantile = Metric.parsed("latency_ns.lookup.p99")
    assert quantile.grain(256.0, 1.0) == 1.0
    assert Metric.parsed("throughput.lookup").grain(5.0, 0.5) == 2.0
    for text in ("latency_ns.lookup.mean", "energy_J", "utilisation.cores.mean"):
        assert Metric.parsed(text).grain(5.0, 0.5) == 0.0


def test_no_quantile_is_further_off_than_its_step(tmp_path: Path) -> None:
    scenario = load_scenario(
        "nam-fig6-rsi", settings=["system.clients=4", "horizon=1 ms", "statistics.warm_up=0.2 ms"]
    )
    run = AlternativeRun(scenario, 2e-4, 1)
    run.play(1)
    histogram = run.outcomes[0].latencies_ns["checkout"]
    for part in (0.01, 0.5, 0.9, 0.99):
        low, high = histogram.around(part)
        step = Metric.parsed("latency_ns.checkout.p50").grain(histogram.quantile(part), 1.0)
        assert (high - low) / 2 <= step * (1 + 1e-9)


def test_progress_rises_to_the_end(tmp_path: Path) -> None:
    told: list[float] = []
    path = write(tmp_path, FLOW, KEEPS)
    list(regress(load_suite(path), baseline(path), sides=Sides(1), progress=told.append))
    assert told == sorted(told)
    assert told[-1] == 1.0

"""What evidence says of unknown conditions: coverage, hypotheses, what nothing explains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import told_by
from scipy.special import ndtri
from scipy.stats import qmc

from numatwin import load_scenario, run_scenario
from numatwin.inputs import InputError
from numatwin.sim.run.doubts import doubts_of
from numatwin.sim.run.model_error import Class
from numatwin.sim.run.uncertainty import with_uncertainty
from numatwin.sim.run.what_if import Predictor
from numatwin.validate import inference
from numatwin.validate.inference import Figure, Problem, infer
from numatwin.validate.inferred import explained, hypotheses, narrowed, next_runs, warnings
from numatwin.validate.posterior import (
    DEVIATIONS,
    EXACT,
    Known,
    error_weights,
    log_likelihood,
    normalised,
    predictive,
    quantiles,
)

LOOKUPS = Class("eris", "flow", "lookup", "throughput")
FIT = Path(__file__).parents[3] / "shared" / "cases" / "fit"
LINES = "machine.engines.eris.lines_in_flight"


def scenario_in(folder: Path, unknown: str) -> str:
    path = folder / "unknown.yaml"
    path.write_text(f"extends: eris-fig8-intel\nname: unknown\nunknown:\n  {unknown}\n")
    return str(path)


def runs_in(folder: Path, text: str) -> Path:
    path = folder / "runs.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("deviation", [0.01, 0.2])
def test_posteriors_hold_the_truth(deviation: float) -> None:
    """Simulation-based calibration: of 200 truths from the prior, 90% intervals of an unknown and
    of a figure that was not measured hold 85% to 95%, with the model's error and without.
    """
    seed, truths = 7, 200
    rng = np.random.default_rng(seed)
    slopes = np.array([[0.3, -0.2, 0.1], [0.1, 0.4, 0.0], [0.2, 0.1, 0.3]])
    scores = ndtri(qmc.Sobol(3, seed=seed).random(2048) * 0.9999 + 5e-5)
    logs = scores @ slopes.T
    weights = (
        EXACT
        if deviation == 0.01
        else np.eye(len(DEVIATIONS))[int(np.argmin(abs(DEVIATIONS - deviation)))]
    )
    held = np.zeros(2)
    for _ in range(truths):
        truth = rng.standard_normal(3)
        model = deviation * np.sqrt(0.5) * (rng.standard_normal() + rng.standard_normal(3))
        figures = slopes @ truth + model
        measured = figures + 0.05 * rng.standard_normal(3)
        known = Known(LOOKUPS, measured[:2], np.full(2, 0.05), weights), logs[:, :2]
        likelihood = log_likelihood([known], len(logs))
        low, high = quantiles(scores[:, 1], normalised(likelihood), [0.05, 0.95])
        held[0] += low <= truth[1] <= high
        low, high = predictive(logs[:, 2], likelihood, weights, known, [0.05, 0.95])
        held[1] += low <= figures[2] <= high
    assert (held >= 0.85 * truths).all(), f"seed {seed}: {held}"
    assert (held <= 0.95 * truths).all(), f"seed {seed}: {held}"


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "DRAWS", 32)
    monkeypatch.setattr(inference, "DRAWS_MAX", 128)
    monkeypatch.setattr(inference, "ENOUGH", 10.0)


def test_a_hypothesis_is_found_back(tmp_path: Path, few_draws: None) -> None:
    """Of runs with 4 KiB pages these remain; traffic that was not measured is what tells more."""
    scenario = scenario_in(tmp_path, "system.page_size: [4 KiB, 2 MiB]")
    rates = [
        Predictor(
            load_scenario(scenario, settings=["system.page_size=4 KiB", f"{OF_INDEX}={keys}"])
        ).own.throughput["lookup"]
        for keys in SIZES
    ]
    rows = "".join(f"lookup,{n},{x:.6g},5%\n" for n, x in zip(SIZES, rates, strict=True))
    found = infer([scenario], runs_in(tmp_path, f"{HEAD}{rows}"), exact=True)
    pages = next(row for row in hypotheses(found) if row.name == "system.page_size")
    assert pages.choices["4 KiB"] > 0.6
    assert sum(pages.choices.values()) == pytest.approx(1.0)
    assert narrowed(found)["system.page_size"][0] == "4 KiB"
    sure = replace(found, weights=(found.parts[:, 0] == found.parts[0, 0]).astype(float))
    assert len(narrowed(sure)) == 6, "the facts that it narrows most, too"
    assert max(row.spreads for row in explained(found)) < 1.0
    assert "traffic" in next_runs(found)[0].figure


OF_INDEX, SIZES, HEAD = (
    "workload.objects.index.keys", (10_000_000, 1_000_000_000), "operation,keys,throughput,spread\n"
)  # fmt: skip


def test_what_nothing_explains_is_told(tmp_path: Path, few_draws: None) -> None:
    scenario = scenario_in(tmp_path, f"{LINES}: {{from: 1.0, to: 10.0}}")
    found = infer([scenario], runs_in(tmp_path, f"{HEAD}lookup,1000000,90 G/s,5%\n"))
    assert any("nothing named here explains lookup, 1,000,000 keys" in t for t in warnings(found))


@pytest.mark.skipif(not FIT.exists(), reason="no folder ../shared/cases/fit")
def test_an_engine_that_is_unlike_the_model_is_told(tmp_path: Path, few_draws: None) -> None:
    """Its lookups take twice as long and more, whatever is unknown: no engine costs are named."""
    path = tmp_path / "unlike.yaml"
    unknown = "unknown:\n  system.page_size: [4 KiB, 2 MiB]\n"
    path.write_text(
        f"extends: eris-mixed-amd\nname: unlike\nmachine: intel-4s-qpi\n{unknown}"
        "system: {placement: interleaved}\n"
    )
    head, *rows = (FIT / "nolock.csv").read_text().splitlines()
    chosen = [row for row in rows if row.startswith(("lookup,1,10000,", "lookup,40,10000,"))]
    found = infer([str(path)], runs_in(tmp_path, "\n".join([head, *chosen]) + "\n"))
    told = [text for text in warnings(found) if "nothing named here explains" in text]
    assert any("lookup, 1 thread, 10,000 keys" in text for text in told)


def test_figures_of_a_source_are_no_evidence_for_its_others(tmp_path: Path) -> None:
    """What the model is taken to be wrong by is what it was for all other sources."""
    run = load_scenario(scenario_in(tmp_path, "system.page_size: [4 KiB, 2 MiB]"))
    for source in ("eris", ""):
        figure = Figure("lookup", 0, ("throughput", "lookup"), LOOKUPS, 1e8, 0.05, source)
        ((known, _),) = Problem([run], [figure], exact=False).known(np.zeros((1, 1)))
        for other in ("eris", ""):
            same = np.array_equal(known.weights, error_weights(LOOKUPS, other))
            assert same == (source == other)


BAD_RUNS = [
    ("operation,throughput\n", "no rows"),
    ("operation,throughput\nlookup,\n", "no figure was measured"),
    ("operation,throughput,memory_traffic\nlookup,,40\n", "memory_traffic: not a bandwidth"),
    ("operation,throughput,machine\nlookup,5 M/s,gh200\n", "machine: evidence of another one"),
    ("operation,throughput,scenario\nlookup,5 M/s,eris\n", "not one of those that are asked about"),
]


@pytest.mark.parametrize(("text", "words"), BAD_RUNS)
def test_bad_evidence_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in told_by(infer, ["eris-fig8-intel"], runs_in(tmp_path, text))


BAD_UNKNOWN = [
    ("system.pagesize: [4 KiB, 2 MiB]", "unknown field 'pagesize'"),
    ("system.page_size: [4 KiB, 4 KiB]", "expected different values"),
    ("system.page_size: {from: 2 MiB, to: 4 KiB}", "expected the lower end first"),
    ("system.page_size: {from: 2, to: 4 KiB}", "expected two numbers of one unit"),
    ("system.page_size: [4 KiB, 5 MB]", "expected a power of two"),
]


@pytest.mark.parametrize(("unknown", "words"), BAD_UNKNOWN)
def test_bad_hypotheses_are_refused(tmp_path: Path, unknown: str, words: str) -> None:
    with pytest.raises(InputError) as failure:
        load_scenario(scenario_in(tmp_path, unknown))
    assert words in f"{failure.value}"
    assert (failure.value.line or 0) >= 4


def test_what_is_unknown_is_drawn(tmp_path: Path) -> None:
    """Of any field, and instead of the assumption about it."""
    unknown = f"{LINES}: {{from: 1.0, to: 10.0}}\n  workload.objects.index.keys: [1000, 2000]"
    scenario = load_scenario(scenario_in(tmp_path, unknown))
    doubts = {doubt.setting: doubt for doubt in doubts_of(scenario)}
    place = ("workload", "objects", "index", "keys")
    assert [doubts[".".join(place)].at(part)[place] for part in (0.2, 0.7)] == [1000, 2000]
    (lines,) = doubts[LINES].at(0.5).values()
    assert float(lines) == pytest.approx(10**0.5)
    assert sum(LINES in doubt.assumption.settings for doubt in doubts.values()) == 1
    setting = f"unknown={{{LINES}: {{from: 1.0, to: 10.0}}}}"
    said = load_scenario("eris-fig8-intel", settings=[setting])
    assert [doubt.setting for doubt in doubts_of(said) if doubt.named] == [LINES]


def test_a_run_has_the_middle_of_what_is_unknown(tmp_path: Path) -> None:
    """So that its interval holds it; what is set is known."""
    path = scenario_in(tmp_path, f"{LINES}: {{from: 8.0, to: 18.0}}\n  system.page_size: [4 KiB]")
    scenario = load_scenario(path)
    assert scenario.settings["system"]["page_size"] == "4 KiB"
    record = with_uncertainty(run_scenario(scenario), scenario)
    low, high = (record.uncertainty or {})["throughput"]["lookup"]
    assert low < record.throughput["lookup"] < high
    stated = load_scenario(path, settings=[f"{LINES}=12.0"])
    assert [doubt.setting for doubt in doubts_of(stated) if doubt.named] == ["system.page_size"]
    rate, other = (Predictor(one).own.throughput["lookup"] for one in (scenario, stated))
    assert rate == pytest.approx(other)


def test_what_lies_between_two_ends_need_not_be(tmp_path: Path) -> None:
    scenario = load_scenario(scenario_in(tmp_path, "system.page_size: {from: 4 KiB, to: 2 MiB}"))
    assert scenario.settings["system"]["page_size"] == "4 KiB"

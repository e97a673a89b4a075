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
from numatwin.validate import inference, posterior
from numatwin.validate.inference import Figure, Problem, infer
from numatwin.validate.inferred import explained, hypotheses, narrowed, next_runs, warnings

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
    near = int(np.argmin(abs(posterior.DEVIATIONS - deviation)))
    weights = np.eye(len(posterior.DEVIATIONS))[near]
    held = np.zeros(2)
    for _ in range(truths):
        truth = rng.standard_normal(3)
        model = deviation * np.sqrt(0.5) * (rng.standard_normal() + rng.standard_normal(3))
        figures = slopes @ truth + model
        measured = figures + 0.05 * rng.standard_normal(3)
        known = posterior.Known(LOOKUPS, measured[:2], np.full(2, 0.05), weights), logs[:, :2]
        likelihood = posterior.log_likelihood([known], len(logs))
        likely = posterior.normalised(likelihood)
        low, high = posterior.quantiles(scores[:, 1], likely, [0.05, 0.95])
        held[0] += low <= truth[1] <= high
        low, high = posterior.predictive(logs[:, 2], likelihood, weights, known, [0.05, 0.95])
        held[1] += low <= figures[2] <= high
    assert (abs(held - 0.9 * truths) <= 0.05 * truths).all(), f"seed {seed}: {held}"


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
    even = replace(found, weights=np.full(len(found.parts), 1.0 / len(found.parts)))
    left = narrowed(even)["system.page_size"]
    written = dict(zip(left["choices"], left["weights"], strict=True))
    assert written == pytest.approx(hypotheses(even)[0].choices, abs=1e-3)
    sure = replace(found, weights=(found.parts[:, 0] == found.parts[0, 0]).astype(float))
    assert len(narrowed(sure)) == 6, "the facts that it narrows most, too"
    assert max(row.spreads for row in explained(found)) < 1.0
    assert "traffic" in next_runs(found)[0].figure


OF_INDEX, SIZES, HEAD = (
    "workload.objects.index.keys", (10_000_000, 1_000_000_000), "operation,keys,throughput,spread\n"
)  # fmt: skip


def test_what_nothing_explains_is_told(tmp_path: Path, few_draws: None) -> None:
    """Also what cannot be run: it is no prediction of nothing."""
    unknown = f"{LINES}: {{from: 1.0, to: 10.0}}\n  {OF_INDEX}: [1000000000000, 1000000]"
    rows = "operation,throughput,spread\n" + 2 * "lookup,90 G/s,5%\n"
    found = infer([scenario_in(tmp_path, unknown)], runs_in(tmp_path, rows))
    told = " ".join(warnings(found))
    assert "nothing named here explains lookup (row 2)" in told
    assert told.count("draws cannot be run") == told.count("do not fit into machine") == 1
    assert [row.impossible for row in hypotheses(found)[:2]] == [(), ("1000000000000",)]
    assert min(row.predicted[0] for row in explained(found)) > 1e6


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
            same = np.array_equal(known.weights, posterior.error_weights(LOOKUPS, other))
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
    ("system.page_size: {choices: [4 KiB, 2 MiB], to: 1 GiB}", "expected different values"),
    ("system.page_size: {choices: [4 KiB, 2 MiB], weights: [1]}", "a weight of each"),
    ("system.page_size: []", "expected at least one value"),
    ("machine: [epyc-2s-nps1, gh200]", "a scenario of each value, and numatwin compare"),
    ("seed: [1, 2]", "no condition of one run"),
    ("policy: [none, ma-8]", "expected policies.balancing"),
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
    ends, keys = "{from: 1.0, to: 10.0}", "{choices: [1000, 2000], weights: [3, 1]}"
    unknown = f"{LINES}: {ends}\n  {OF_INDEX}: {keys}"
    scenario = load_scenario(scenario_in(tmp_path, unknown))
    doubts = {doubt.setting: doubt for doubt in doubts_of(scenario)}
    keys_at = doubts[OF_INDEX].at
    assert [*keys_at(0.7).values(), *keys_at(0.8).values()] == [1000, 2000]
    (lines,) = doubts[LINES].at(0.5).values()
    assert float(lines) == pytest.approx(10**0.5)
    assert sum(LINES in doubt.assumption.settings for doubt in doubts.values()) == 1
    said = load_scenario("eris-fig8-intel", settings=[f"unknown={{{LINES}: {ends}}}"])
    assert [doubt.setting for doubt in doubts_of(said) if doubt.named] == [LINES]


def test_a_run_has_the_middle_of_what_is_unknown(tmp_path: Path) -> None:
    """So that its interval holds it; what is set is known. Of choices, the most likely one."""
    pages = "system.page_size: {choices: [4 KiB, 2 MiB], weights: [3, 1]}"
    path = scenario_in(tmp_path, f"{LINES}: {{from: 8.0, to: 18.0}}\n  {pages}")
    scenario = load_scenario(path)
    assert scenario.settings["system"]["page_size"] == "4 KiB"
    record = with_uncertainty(run_scenario(scenario), scenario)
    low, high = (record.uncertainty or {})["throughput"]["lookup"]
    assert low < record.throughput["lookup"] < high
    stated = load_scenario(path, settings=[f"{LINES}=12.0"])
    assert [doubt.setting for doubt in doubts_of(stated) if doubt.named] == ["system.page_size"]
    rate, other = (Predictor(one).own.throughput["lookup"] for one in (scenario, stated))
    assert rate == pytest.approx(other)
    ends = load_scenario(scenario_in(tmp_path, "system.page_size: {from: 4 KiB, to: 2 MiB}"))
    assert ends.settings["system"]["page_size"] == "4 KiB", "not all between two ends can be"

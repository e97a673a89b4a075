"""Reports on random runs: each figure with its interval, how often it ran, what was left out."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_page import open_page
from page_text import visible
from synthetic_records import phased_record, steady_record

from numatwin.reports import write_report
from numatwin.reports.intervals import between, differs_by_chance, statistics_of
from numatwin.reports.report import report_html
from numatwin.reports.runs import PIECES_MAX, runs_of, smoothed
from numatwin.sim.run.record import Record


def drawn(*rates: float, **fields: Any) -> Record:
    """A record of so many replications of lookups."""
    mean = float(np.mean(rates))
    confidence = {
        "level": 0.95,
        "throughput": {"lookup": [0.98 * mean, 1.02 * mean]},
        "bandwidth_Bps": {"memory": [97.1e9, 99.5e9], "links": None},
        "latency_ns": {"lookup": {"mean": [27_000.0, 28_400.0], "p99": None}},
        "resources": {"cores of node 0": {"utilisation": [0.311, 0.322]}},
    }
    values: dict[str, Any] = {
        "plane": "event",
        "throughput": {"lookup": mean},
        "latency_ns": {"lookup": {"mean": 27_700.0, "p50": 25_000.0, "p99": 51_000.0}},
        "replications": len(rates),
        "warm_up_s": 0.25,
        "replicates": {"throughput": {"lookup": list(rates)}},
        "confidence": confidence,
    }
    return dataclasses.replace(steady_record(), **{**values, **fields})


def test_figures_have_their_intervals() -> None:
    text = visible(report_html([drawn(0.99e9, 1.00e9, 1.01e9)]))
    assert "the engine does 1.00 G lookups/s (980 M/s to 1.02 G/s)" in text
    assert "memory traffic 98.3 GB/s 97.1 GB/s to 99.5 GB/s" in text
    assert "lookup latency 27.7 µs mean, 27 µs to 28.4 µs" in text
    assert "lookup latency 25 µs median" in text
    assert re.search(r"cores of node 0 cores \d[\d.]*% 31\.1% to 32\.2%", text)
    assert (
        "Means of 3 replications with independent draws, the first 250 ms (warm-up) left out. "
        "An interval that says nothing else holds the truth with 95% confidence."
    ) in text


def test_what_draws_nothing_has_none() -> None:
    text = visible(report_html([steady_record()]))
    assert "replication" not in text
    assert "confidence" not in text
    assert statistics_of(steady_record()) == ""
    assert between(steady_record(), "/s", "throughput", "lookup") == ""


def test_runs_that_chance_explains_are_not_ranked() -> None:
    one, other = drawn(1.0e9, 1.1e9, 1.2e9), drawn(1.15e9, 1.05e9, 1.12e9, policy="ma-8")
    assert differs_by_chance(one, other, "lookup")
    text = visible(report_html([one, other]))
    assert "No difference between the 2 runs exceeds chance" in text
    # With the same draws, pair by pair, it does not.
    paired = drawn(1.01e9, 1.11e9, 1.2101e9, policy="ma-8")
    assert not differs_by_chance(one, paired, "lookup")
    assert "ma-8 does most" in visible(report_html([one, paired]))
    assert "1.08 G/s to 1.12 G/s" in visible(report_html([one, paired]))


def test_a_prediction_and_what_it_is_of_are_no_rivals() -> None:
    predicted = steady_record()
    rates = {name: 0.8 * value for name, value in predicted.throughput.items()}
    real = dataclasses.replace(predicted, plane="native", throughput=rates)
    for runs in ([predicted, real], [real, predicted]):
        text = visible(report_html(runs))
        assert "does most" not in text
        assert re.search(r"predicts [\d.]+ \w lookups/s on average, and the real engine does", text)
        assert "0.8 times as many." in text
    chance = dataclasses.replace(
        real,
        replications=3,
        replicates={"throughput": {name: [0.1 * v, 1.5 * v, v] for name, v in rates.items()}},
        confidence={"level": 0.95},
    )
    text = visible(report_html([predicted, chance]))
    assert "0.8 times as many, which does not exceed chance." in text


def test_runs_of_flows_are_ranked_as_before() -> None:
    assert not differs_by_chance(steady_record(), steady_record(), "lookup")


@pytest.mark.parametrize("pieces", [PIECES_MAX, PIECES_MAX + 1, 1_000, 1_003])
def test_smoothed_keeps_time_and_totals(pieces: int) -> None:
    record = phased_record(pieces=pieces, replications=5)
    (run,) = runs_of([record])
    series, thin = record.series, smoothed(run).record.series
    assert len(thin["time_s"]) <= PIECES_MAX
    assert thin["time_s"][0] == 0
    assert thin["duration_s"].sum() == pytest.approx(series["duration_s"].sum())
    assert thin["time_s"][1:] == pytest.approx((thin["time_s"] + thin["duration_s"])[:-1])
    for name in set(series) - {"time_s", "duration_s"}:
        whole = series[name] @ series["duration_s"]
        assert thin[name] @ thin["duration_s"] == pytest.approx(whole)
    (flow,) = runs_of([dataclasses.replace(record, replications=0)])
    assert smoothed(flow) is flow


@pytest.mark.browser
def test_the_page_is_drawn(tmp_path: Path) -> None:
    records = [
        phased_record(policy, pieces=1_000, replications=3, warm_up_s=2.0)
        for policy in ("ma-1", "ma-8")
    ]
    opened = open_page(write_report(records, tmp_path / "report.html"), "#unfolded")
    assert opened.console == []
    assert opened.root["data-failed"] == "0"
    assert opened.root["data-plots"] == opened.root["data-drawn"] == "11"
    assert opened.text.count("Means over the replications. No figure counts the first 2 s.") == 2


def test_only_what_is_known_is_shown() -> None:
    """Of transactions the network; of a real run neither traffic nor what limits it."""
    network = drawn(1e9, bandwidth_Bps={"memory": None, "links": None, "network": 5e9})
    text = visible(report_html([network]))
    assert "network traffic 5.00 GB/s" in text
    assert not re.search("(memory|link) traffic", text)
    cores = tuple(use for use in steady_record().resources if use.kind == "cores")
    real = drawn(
        1e9,
        1.1e9,
        plane="native",
        bandwidth_Bps={"memory": None, "links": None},
        resources=cores,
        why={},
        provenance={"host": {"cpus": 2}},
    )
    text = visible(report_html([real]))
    assert "On a real host of 2 CPUs, in place of" in text
    assert "Means of 2 runs, the first" in text
    for absent in ("traffic", "capacity", "under load", "no faster", "model", "draws"):
        assert absent not in text, absent
    assert "limited by" not in visible(report_html([real, real]))


def test_without_intervals_none_is_explained() -> None:
    unknown = {"level": 0.95, "throughput": {"lookup": None}, "resolution_ns": {"lookup": [1]}}
    (alone,) = (drawn(1e9, confidence=unknown),)
    assert statistics_of(alone) == (
        "One replication, the first 250 ms (warm-up) left out. The random error of the "
        "figures is unknown."
    )
    assert "confidence" not in visible(report_html([alone, alone]))

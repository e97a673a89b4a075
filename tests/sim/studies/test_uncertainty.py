"""Uncertainty of facts and draws together: between what a figure lies, and who beats whom."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from numatwin import load_scenario, run_scenario
from numatwin.sim.run.record import Record
from numatwin.sim.studies.uncertainty import DRAWS, beats, with_uncertainty


def record_of(values: list[float], shifts: list[float] | None = None) -> Record:
    """A record of replications with these values, whose facts shift it so."""
    record = run_scenario(load_scenario("eris-fig8-intel"))
    known: dict[str, object] = {}
    if shifts is not None:
        known = {"facts": ["a"], "shifts": {"lookup": shifts}, "throughput": {}}
    return replace(
        record,
        throughput={"lookup": float(np.mean(values))},
        replications=len(values),
        replicates={"throughput": {"lookup": values}},
        uncertainty=known,
    )


def test_facts_alone() -> None:
    """Within what the corners of the ranges say, and not a point; the same each time."""
    load = partial(load_scenario, "eris-fig8-amd", machine="xeon-8s-ivb")
    scenario = load()
    record = run_scenario(scenario)
    drawn = with_uncertainty(record, scenario, lambda more: load(settings=more))
    found = drawn.uncertainty
    low, high = found["throughput"]["lookup"]
    least, most = record.fact_range["throughput"]["lookup"]
    assert 0.99 * least < low < record.throughput["lookup"] < high < 1.01 * most
    assert len(found["facts"]) == record.fact_range["facts"]
    assert len(found["shifts"]["lookup"]) == DRAWS
    assert drawn.fact_range == record.fact_range  # here corners are the extremes
    narrow = replace(record, fact_range={**record.fact_range, "throughput": {"lookup": [2e9, 2e9]}})
    wide = with_uncertainty(narrow, scenario, lambda more: load(settings=more))
    least, most = wide.fact_range["throughput"]["lookup"]
    assert least < low < high < most


def test_draws_alone() -> None:
    """Mean 100, deviation 10, five replications: 100 ± t(4, 95%) · 10 · √(1 + 1/5) = ± 23.35."""
    record = record_of([90.0, 90.0, 100.0, 110.0, 110.0])
    scenario = load_scenario("eris-fig8-intel")
    found = with_uncertainty(record, scenario, lambda more: scenario).uncertainty
    low, high = found["throughput"]["lookup"]
    assert found["facts"] == []
    assert (low, high) == pytest.approx((100 - 23.35, 100 + 23.35), abs=1.5)


def test_facts_widen_what_draws_say() -> None:
    rng = np.random.default_rng(1)
    shifts = rng.uniform(0.8, 1.2, DRAWS).tolist()
    sure = record_of([99.0, 100.0, 101.0], [1.0] * DRAWS)
    doubtful = record_of([99.0, 100.0, 101.0], shifts)
    faster = record_of([109.0, 110.0, 111.0], [1.0] * DRAWS)
    found = beats(sure, faster, "lookup")
    assert found is not None
    assert 1.0 < found["interval"][0] < 1.1 < found["interval"][1]
    assert found["share"] > 0.95
    # Of two machines, facts may be off each by itself: nothing is sure.
    other = replace(doubtful, machine={"name": "other"})
    wide = beats(other, replace(faster, machine={"name": "it"}), "lookup")
    assert wide is not None
    assert wide["interval"][0] < 1.0 < wide["interval"][1]
    # Of one machine, the same facts are off in both: they cancel.
    same = beats(doubtful, replace(faster, uncertainty=doubtful.uncertainty), "lookup")
    assert same is not None
    assert same["interval"] == pytest.approx(found["interval"], rel=1e-6)


def test_unknown_without() -> None:
    one = record_of([1.0, 2.0], [1.0] * DRAWS)
    assert beats(one, replace(one, uncertainty={}), "lookup") is None

"""How far apart CPUs are: by hand, and as it is measured."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_hosts import figure

from numatwin.sim.systems.commits.facts import ENGINE, CommitFacts
from numatwin.topologies.measurements import Measurement, Parameters
from numatwin.validate.crossvalidate.corners import corners
from numatwin.validate.measure import measured_description, processes
from numatwin.validate.measure.distance import measured_distance, smoothed, times
from numatwin.validate.measure.samples import Samples
from numatwin.validate.measure.session import measure_pass


def test_somebody_elses_turn_is_no_distance() -> None:
    """It is one moment, however long; a pair of CPUs that was moved stays so for several."""
    values = np.array([30.0] * 10 + [5000.0] + [30.0] * 10 + [160.0] * 10)
    assert (smoothed(values)[:17] == 30.0).all()
    assert (smoothed(values) == 160.0).sum() == 8
    assert smoothed(np.array([30.0, 160.0, 31.0])).tolist() == [31.0]


@given(st.lists(st.booleans(), min_size=1))
def test_times_apart_are_all_moments_apart(apart: list[bool]) -> None:
    found = times(apart)
    assert found.sum() == sum(apart)
    assert len(found) == sum(b and not a for a, b in itertools.pairwise([False, *apart]))


def line(place: str, value: float) -> Measurement:
    made = figure("line", value, "time")
    return made.model_copy(update={"parameters": Parameters(place=place)})


OTHERS = (figure("apart-lasts", 0.2, "time"), line("near", 30e-9), line("apart", 160e-9))


def test_figures_become_facts() -> None:
    near = figure("near", 0.7, "count", spread=0.1)
    assert measured_distance([near]) is None  # never apart
    found = measured_distance([near, *OTHERS])
    assert found is not None
    assert (found.line.value, found.line_apart.value) == (30e-9, 160e-9)
    assert found.near.value == 0.7
    assert found.near.range == pytest.approx((0.63, 0.77))
    assert found.lasts.value == 0.2


class Told:
    """Where figures go."""

    def __init__(self, near_ns: float) -> None:
        self.figures: dict[str, Samples] = {}
        self.quiet = SimpleNamespace(near_ns=near_ns)

    def add(self, name: str, samples: Samples, *_: Any, **of: object) -> None:
        self.figures[name] = samples


def row(name: str, samples_ns: list[float], lines_ns: list[float]) -> tuple[dict[str, Any], bool]:
    told = {"name": name, "bytes": 1032, "region": 1 << 20, "count": 1}
    return told | {"samples_ns": samples_ns, "lines_ns": lines_ns}, True


def split(*rows: tuple[dict[str, Any], bool], near_ns: float = math.inf) -> dict[str, list[float]]:
    told = Told(near_ns)
    processes._add_blocks(told, rows)  # type: ignore[arg-type]
    return {name: samples.values.tolist() for name, samples in told.figures.items()}


def test_steps_together_go_where_the_line_shows_that_processors_were() -> None:
    found = split(
        row("block-get", [40.0, 41.0], []),
        row("block-get-together", [50.0, 100.0, 51.0], [28.0, 160.0, 31.0]),
    )
    assert found == {
        "step-block-get": [40.0, 41.0],
        "step-block-get-together": [50.0, 51.0],
        "step-block-get-apart": [100.0],
    }


def test_what_was_apart_all_the_time_is_known_from_other_looks() -> None:
    together = row("block-update-together", [260.0, 270.0], [158.0, 160.0])
    assert split(together, near_ns=30.0) == {"step-block-update-apart": [260.0, 270.0]}
    assert split(together) == {"step-block-update-together": [260.0, 270.0]}


def test_the_worse_machine_is_apart_for_more_of_the_time() -> None:
    pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")
    result = measure_pass(quick=True, only=["distance", "processes"])
    figures = {m.name: m for m in result.measurements}
    if "near" not in figures:
        pytest.skip("one CPU has no other")
    assert 0.0 < figures["near"].value.value <= 1.0
    line = next(m for m in result.measurements if m.name == "line")
    assert 1e-9 < line.value.value < 1e-6
    names = {"near", *(m.name for m in OTHERS)}
    others = [m for m in result.measurements if m.name not in names]
    of_time = [figure("near", 0.7, "count", spread=0.2), *OTHERS]
    description = measured_description(
        type(result)(
            result.layout, result.host, (*others, *of_time), result.warnings, result.clock_Hz
        )
    )
    facts = description.facts_of(ENGINE, CommitFacts)
    assert facts is not None
    # Every size and region was measured alone, and together where they were near, apart, or both.
    assert all(block.get_together or block.get_apart for block in facts.blocks)
    ends = corners(description)
    assert ends is not None
    worse, better = (end["apart"]["near"]["value"] for end in ends)
    assert (worse, better) == pytest.approx((0.56, 0.84))

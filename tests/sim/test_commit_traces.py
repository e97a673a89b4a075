"""The compiled commit models give the trace of the reference ones, row for row."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from numatwin.sim.commits.parameters import CommitParameters

from commit_clusters import US, configurations, told, traces


@settings(deadline=None, max_examples=100)
@given(configurations(), st.integers(0, 2**64 - 1))
def test_the_traces_are_equal(parameters: CommitParameters, seed: int) -> None:
    plain, compiled = traces(parameters, seed, 300 * US)
    for at, (expected, found) in enumerate(zip(plain, compiled, strict=False)):
        assert told(found) == told(expected), f"row {at}, seed {seed}"
    assert len(plain) == len(compiled)

"""The benchmark of buffers at the ends of links."""

import pytest
from benchmark_runs import printed_by


def test_neighbours_are_as_calibrated_and_all_together_hold_each_other_up() -> None:
    """A buffer is taken for 3 · 64 B / 5.8 GB/s between neighbours on a whole link, and so on; of
    pairs two hops apart, and of all nodes, nothing is calibrated."""
    found, told = printed_by("link_buffers", "--us", "9")
    assert told == ""
    neighbours, undivided, divided, together = found[:3], found[3:5], found[5:7], found[7:]
    assert [one["ratio"] for one in neighbours] == pytest.approx([1.0, 1.0, 1.0], rel=0.02)
    assert [one["ratio"] for one in undivided] == pytest.approx([1.0, 1.13], rel=0.03)
    # What docs/published.md says it does not explain.
    assert all(one["ratio"] > 1.3 for one in divided)
    # Links alone would leave 104 GB/s.
    assert all(30 < one["value"] < 70 for one in together)

"""How often CPUs are taken from programs: by hand, in passes, and as it is measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from measured_hosts import figure, measured

from numatwin.topologies.measurements import Measurement, Parameters
from numatwin.topologies.schema import MachineDescription
from numatwin.validate.crossvalidate.corners import corners
from numatwin.validate.measure import Result, measured_description, merged
from numatwin.validate.measure.interrupting import KINDS, interruptions, means
from numatwin.validate.measure.session import measure_pass

WATCHED_NS = 2e9


def met(*lengths_us: float) -> list[Measurement]:
    lengths_ns = np.array([1000.0 * length for length in lengths_us])
    return [
        figure("interruption", ns * 1e-9, "time").model_copy(
            update={"parameters": Parameters(operation=kind, step=step)}
        )
        for kind, step, ns in means(lengths_ns, WATCHED_NS)
    ]


def in_passes(*passes: Sequence[Measurement]) -> Result:
    return merged([measured(list(figures)) for figures in passes])


def test_each_kind_has_its_mean_length_and_how_often_it_comes() -> None:
    lengths_us = (2, 4, 4.5, 200, 250, 2_500, 0.5, 20_000)
    found = interruptions(met(*lengths_us))
    lengths = [one.length.value for one in found]
    assert lengths == pytest.approx([3.5e-6, 225e-6, 2.5e-3])
    left_s = 2.0 - 1e-6 * sum(lengths_us)
    assert [one.every.value for one in found] == pytest.approx([left_s / 3, left_s / 2, left_s])
    assert interruptions([]) == ()


def test_kinds_are_one_after_another_and_leave_no_gap() -> None:
    ends = [end for kind in KINDS.values() for end in kind]
    assert ends[1:-1:2] == ends[2::2]
    assert ends == sorted(ends)


def test_what_some_passes_did_not_meet_came_seldom_in_them() -> None:
    """Of three passes one met a turn of 2 ms twice, two did not: half a one each is taken."""
    found = measured_description(in_passes(met(2), met(2, 2_000, 2_000), met(2))).interruptions
    assert [one.length.value for one in found] == pytest.approx([2e-6, 2e-3])
    turn = found[1].every
    assert (turn.low, turn.value, turn.high) == pytest.approx((1.0, 4.0, 4.0), rel=3e-3)


def test_ranges_hold_all_that_passes_found() -> None:
    """What others do is another thing in each minute: quartiles would leave minutes out."""
    passes = [met(*(150.0 + k,) * (10 * k)) for k in range(1, 6)]
    (found,) = measured_description(in_passes(*passes)).interruptions
    assert (found.every.low, found.every.value, found.every.high) == pytest.approx(
        (0.04, 2 / 30, 0.2), rel=5e-3
    )
    assert (found.length.low, found.length.high) == pytest.approx((151e-6, 155e-6))


def test_the_worse_machine_is_interrupted_more_often_and_for_longer() -> None:
    ends = corners(measured_description(in_passes(met(150), met(*(160,) * 10), met(*(155,) * 5))))
    assert ends is not None
    worse, better = (MachineDescription.model_validate(end).interruptions[0] for end in ends)
    assert (worse.length.value, worse.every.value) == pytest.approx((160e-6, 0.2), rel=2e-3)
    assert (better.length.value, better.every.value) == pytest.approx((150e-6, 2.0), rel=2e-3)


def test_this_hosts_interruptions() -> None:
    pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")
    result = measure_pass(quick=True, only=["interruptions"])
    found = {m.parameters.operation for m in result.measurements if m.name == "interruption"}
    assert found == set(KINDS)
    for one in measured_description(result).interruptions:
        assert 1e-6 <= one.length.value < 10e-3
        assert one.every.value > 0

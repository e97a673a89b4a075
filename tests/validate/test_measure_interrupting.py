"""How often CPUs are taken from programs: by hand, in passes, and as it is measured."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_hosts import figure, measured

from numatwin.inputs import Quantity
from numatwin.topologies.measurements import Measurement, Parameters
from numatwin.topologies.schema import INTERRUPTION_MAX_S, Interruption
from numatwin.validate.measure import Result, measured_description, merged
from numatwin.validate.measure.interrupting import KINDS, interruptions, means
from numatwin.validate.measure.layout import host_layout
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
    lengths_us = (2, 4, 4.5, 20, 25, 90, 0.5, 20_000)
    found = interruptions(met(*lengths_us)) or ()
    lengths = [one.length.value for one in found]
    assert lengths == pytest.approx([3.5e-6, 22.5e-6, 90e-6])
    left_s = 2.0 - 1e-6 * sum(lengths_us)
    assert [one.every.value for one in found] == pytest.approx([left_s / 3, left_s / 2, left_s])


def test_who_looked_and_met_none_knows_that_there_are_none() -> None:
    """Who did not look keeps what was known before."""
    assert interruptions([]) is None
    assert interruptions(met()) == ()
    known = Interruption(length=Quantity(2e-5, 2e-5, 2e-5), every=Quantity(0.1, 0.1, 0.1))
    for figures, expected in (((), (known,)), (met(), ())):
        result = measured(figures)
        before = result.layout.description.model_copy(update={"interruptions": (known,)})
        result = replace(result, layout=replace(result.layout, description=before))
        assert measured_description(result).interruptions == expected


def test_who_was_away_all_the_time_still_has_a_machine_file() -> None:
    """As one whose program was stopped for minutes while it watched."""
    for lengths_us in ((6e7,), (2.0,) * 1_000_000, (2.0, 6e7)):
        found = measured_description(measured(met(*lengths_us))).interruptions
        assert all(one.every.value >= 1e-9 for one in found)


def test_kinds_are_one_after_another_and_leave_no_gap() -> None:
    ends = [end for kind in KINDS.values() for end in kind]
    assert ends[1:-1:2] == ends[2::2]
    assert ends == sorted(ends)


def test_kinds_are_those_that_planes_play() -> None:
    assert max(most for _, most in KINDS.values()) == 1e9 * INTERRUPTION_MAX_S


def test_what_some_passes_did_not_meet_came_seldom_in_them() -> None:
    """Of three passes one met 50 us twice, two did not: half a one each is taken."""
    found = measured_description(in_passes(met(2), met(2, 50, 50), met(2))).interruptions
    assert [one.length.value for one in found] == pytest.approx([2e-6, 50e-6])
    long = found[1].every
    assert (long.low, long.value, long.high) == pytest.approx((1.0, 4.0, 4.0), rel=3e-3)


def test_ranges_hold_all_that_passes_found() -> None:
    """What others do is another thing in each minute: quartiles would leave minutes out."""
    passes = [met(*(50.0 + k,) * (10 * k)) for k in range(1, 6)]
    (found,) = measured_description(in_passes(*passes)).interruptions
    assert (found.every.low, found.every.value, found.every.high) == pytest.approx(
        (0.04, 2 / 30, 0.2), rel=5e-3
    )
    assert (found.length.low, found.length.high) == pytest.approx((51e-6, 55e-6))


# Has a CPU for 50 us of every ms or so, and writes into a file how long it has had it so far.
ANOTHER_PROGRAM = """
import mmap, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
with open(sys.argv[2], "r+b") as file:
    had_ns = mmap.mmap(file.fileno(), 8)
while True:
    until_ns = time.process_time_ns() + 50_000
    while (now_ns := time.process_time_ns()) < until_ns:
        had_ns[:8] = now_ns.to_bytes(8, "little")
    time.sleep(0.001)
"""


@contextmanager
def another_program(cpu: int, file: Path) -> Iterator[Callable[[], int]]:
    """Runs on that CPU now and then; tells how long it has had it, in ns."""
    file.write_bytes(bytes(8))
    command = [sys.executable, "-c", ANOTHER_PROGRAM, str(cpu), str(file)]
    with subprocess.Popen(command) as program:
        try:
            while not any(file.read_bytes()):
                assert program.poll() is None
                time.sleep(0.01)
            yield lambda: int.from_bytes(file.read_bytes(), "little")
        finally:
            program.kill()


def test_what_another_program_takes_of_this_host_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As much at least: others may take of it too, and hold it for longer than the longest kind."""
    engine = pytest.importorskip("numatwin.engine_native._engine", reason="no native engine")
    gaps = engine.gaps
    taken_ns: list[int] = []
    watched_ns: list[float] = []
    longer_ns: list[float] = []

    def watched(cpus: list[int], seconds: float, least_ns: float) -> list[list[float]]:
        before_ns = had_ns()
        found: list[list[float]] = gaps(cpus, seconds, least_ns)
        taken_ns.append(had_ns() - before_ns)
        watched_ns.append(len(cpus) * seconds * 1e9)
        longest_ns = max(most for _, most in KINDS.values())
        longer_ns.append(sum(ns for of_cpu in found for ns in of_cpu if ns >= longest_ns))
        return found

    monkeypatch.setattr(engine, "gaps", watched)
    with another_program(host_layout().starts[0].cores[0], tmp_path / "had") as had_ns:
        result = measure_pass(quick=True, only=["interruptions"])
    found = {m.parameters.operation for m in result.measurements if m.name == "interruption"}
    assert found == set(KINDS)
    kinds = measured_description(result).interruptions
    for one in kinds:
        assert 1e-6 <= one.length.value < 1e-4
    per_free = sum(one.length.value / one.every.value for one in kinds)
    shorter, longer = per_free / (1 + per_free), sum(longer_ns) / sum(watched_ns)
    # Of some rounds that were not calm nothing counts.
    assert shorter + longer > 0.7 * sum(taken_ns) / sum(watched_ns)
    assert sum(taken_ns) > 0.01 * sum(watched_ns)

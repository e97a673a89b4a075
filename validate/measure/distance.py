"""How far apart two CPUs are from one moment to the next, as a hypervisor moves them.

A socket has several parts, each with a last cache of its own; the CPUs of a virtual machine lie in
one of them, or in two, and are moved every some hundred milliseconds. A line that one of them has
changed takes several times as long to come to the other where they are apart: programs that work on
the same data go at half their pace meanwhile. What is measured with both near tells nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from ...topologies.measurements import Measurement
from ...topologies.schema import Apart, FactOrZero
from .bench import Bench
from .interrupting import as_quantity
from .quiet import APART_TIMES, LINES_APART, NEAR_QUANTILE
from .samples import Floats, Samples

METHOD = (
    "two CPUs send each other a word, in moments of 0.05 ms, medians of five in a row: apart where "
    "it takes more than twice as long as at best; {}"
)
MOMENT_NS, MOMENTS_MAX = 50_000, 100_000
# As long as a real run of the bundled suite.
SECONDS, QUICK_SECONDS, ROUNDS = 0.5, 0.1, 3
SMOOTHED = 5  # moments: in a single one of them it was somebody else's turn on a CPU


def measure(bench: Bench) -> Iterator[float]:
    """The share of the time in which two CPUs are near, how long they are apart, a line's time."""
    from ...engine_native._engine import ping_pong, run_team

    cpus = bench.layout.starts[0].cores[:2]
    if len(cpus) < 2:
        return
    block = bench.block(bench.layout.homes[0], 2 << 20, what="distance")
    members = [(cpu, ping_pong(block, LINES_APART, cpu == cpus[0])) for cpu in cpus]
    seconds = QUICK_SECONDS if bench.effort.quick else SECONDS
    plan = (MOMENTS_MAX, MOMENT_NS, int(seconds * 1e9))
    rounds: list[Floats] = []
    # No moments are chosen; whether they were calm is what is measured.
    for (amounts, elapsed_ns, _), _ in bench.quiet.watch(lambda: run_team(members, *plan), ROUNDS):
        rounds.append(smoothed(elapsed_ns[:, 0] / amounts[:, 0]))
        yield len(rounds) / ROUNDS
    lines_ns = np.concatenate(rounds)
    # They may have been apart all the time now, but hardly in the whole pass.
    near_ns = APART_TIMES * min(np.quantile(lines_ns, NEAR_QUANTILE), bench.quiet.near_ns)
    apart = [of_round > near_ns for of_round in rounds]
    near = 1.0 - float(np.concatenate(apart).mean())
    told = METHOD.format("share of the moments in which they are near")
    bench.add("near", Samples(np.array([near])), "count", told)
    if near > 0.0:
        line = METHOD.format("a way while they are near")
        bench.add("line", Samples(lines_ns[lines_ns <= near_ns]), "time", line, place="near")
    lengths = np.concatenate([times(of_round) for of_round in apart])
    if not len(lengths):
        return
    lasts_ns = float((lengths**2).sum() / lengths.sum()) * seconds * ROUNDS * 1e9 / len(lines_ns)
    lasts = METHOD.format("how long they stay so, in the middle of such a time")
    bench.add("apart-lasts", Samples(np.array([lasts_ns])), "time", lasts)
    line = METHOD.format("a way while they are")
    bench.add("line", Samples(lines_ns[lines_ns > near_ns]), "time", line, place="apart")


def smoothed(values: Floats) -> Floats:
    """Medians of SMOOTHED in a row each."""
    if len(values) < SMOOTHED:
        return np.median(values, keepdims=True)
    found: Floats = np.median(np.lib.stride_tricks.sliding_window_view(values, SMOOTHED), axis=1)
    return found


def times(apart: Sequence[bool] | np.ndarray) -> Floats:
    """Moments that each time apart lasts."""
    return np.array([float(sum(1 for _ in run)) for those, run in groupby(apart) if those])


def measured_distance(measurements: Sequence[Measurement]) -> Apart | None:
    """As a machine file has it; None where they never were apart, or never near."""
    found = {m.name if m.name != "line" else f"{m.parameters.place}-line": m for m in measurements}
    if "apart-lasts" not in found or "near-line" not in found:
        return None
    near = found["near"]
    ends = near.quartiles or (near.value, near.value)
    return Apart(
        near=FactOrZero(value=near.value.value, range=(ends[0].value, ends[1].value)),
        lasts=as_quantity(found["apart-lasts"]),
        line=as_quantity(found["near-line"]),
        line_apart=as_quantity(found["apart-line"]),
    )

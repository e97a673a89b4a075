"""Published results of scans on an SGI UV 300H, by CPU and copied ahead by the hub's unit.

Study of access paths (CPU, or the hub's Global Reference Unit), 2018. Its machine's file holds the
processor's data sheet and the study's own table of bandwidth and latency by distance; what it says
of the unit comes from elsewhere, with wide ranges: predictions are intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ...sim.systems.registry import trainer_of
from ...topologies import load_machine
from ..results import Prediction, Published, Runs
from .descriptor import Validation

SCENARIO = "gru-fig4-cpu"
OWN, BLADE, OFF_BLADE = 0, 1, 4  # nodes that hold the column; the thread runs on node 0


def _scan(home: int, note: str) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        record = runs(SCENARIO, f"system.home={home}")
        text = note
        if home == OWN:
            summed = runs(SCENARIO, "workload.operations.scan.result=sum")
            rate = (summed.bandwidth_Bps["memory"] or 0.0) / 1e9
            text += f" A scan that adds up what it reads would take {rate:.1f} GB/s."
        return Prediction(record.bandwidth_Bps["memory"] or 0.0, note=text)

    return predict


OWN_NOTE = (
    "Held by what one core can have under way, at a latency of 100 ns; missing: prefetchers stop "
    "at the end of each page of 4 KiB (Intel's optimization manual) and begin anew. The source "
    "does not say what its scan does with what it finds; here it writes positions, and finds next "
    "to none."
)
BLADE_NOTE = "The source says 'up to': the neighbour on the ring, one link away, is taken."
OFF_NOTE = (
    "Held by latency, and this one is doubtful: the source says 'hundreds of ns', the machine's "
    "file 500 ns; 3 GB/s would be 340 ns."
)
PLANES = ("flow", "event")

# Part of the entries that the scan finds: hardly any, and so on to all of them.
SELECTIVITIES = (0.0, 0.01, 0.1, 0.5, 1.0)
DOMINATES = 0.5
ENTRIES = 1_000_000_000  # of the scenario's column


def _grows(runs: Runs) -> Prediction:
    """What writing results takes of a scan's time, by how many there are; off the blade, where the
    unit would help most.
    """
    times = [
        1.0
        / runs.rate(
            SCENARIO,
            f"system.home={OFF_BLADE}",
            f"workload.operations.scan.selectivity={selectivity:g}",
        )
        for selectivity in SELECTIVITIES
    ]
    shares = [1.0 - times[0] / time for time in times]
    words = ", ".join(
        f"{share:.0%} where {selectivity:.0%} are found"
        for share, selectivity in zip(shares[1:], SELECTIVITIES[1:], strict=True)
    )
    rises = all(a <= b + 1e-9 for a, b in pairwise(shares))
    note = (
        "Writing overlaps with the reading of far lines here, and takes next to no time of its "
        "own. Missing: fresh pages for results, and that a core waits where its stores find no "
        f"place. Pages of 4 KiB would decide it alone if each took {_fault_s(times) * 1e6:.1f} µs "
        "(Linux's fault and its zeros: 0.6 to 1 µs on a Core of the 11th generation, by one "
        "published measurement), so they are a part of what is missing, not all. "
        "Blind: the criterion (rising, more than half of the time in the end) stood before the run."
    )
    return Prediction(f"{words} of the scan's time", rises and shares[-1] > DOMINATES, note)


PAGE_BYTES, POSITION_BYTES = 4096, 4


def _fault_s(times: list[float]) -> float:
    """What a fresh page of positions must take for writing all of them to be half of the time that
    a scan takes; ``times``: of scans that find none, and so on to all of them."""
    left_s = max(times[0] / DOMINATES - times[-1], 0.0)
    return left_s * PAGE_BYTES / (ENTRIES * POSITION_BYTES)


# -- by the unit: the scans of a column store, in which it is one of a scan's paths

UNIT_SCENARIO = "gru-scan"
PATH = "workload.operations.scan.operators.scan.path"
ROWS = "workload.objects.column.rows"
SELECTIVITY = "workload.operations.scan.operators.scan.selectivity"
VALUE_BYTES = 4
MIB = 1024 * 1024
SIZES_MIB = (0.25, 1, 4, 16, 32, 64, 256)
FULL = 0.95  # of the largest scan's throughput: "full" in figure 3
ENGINE_FACTS = ("setup", "request", "bandwidth", "in_flight")
WORSE, BETTER = "worse", "better"


def _ends(end: str) -> tuple[str, ...]:
    """Settings by which the unit's facts are at that end of their ranges."""
    facts = load_machine("sgi-uv300h-8s").description.copy_engines[0]
    found = []
    for name in ENGINE_FACTS:
        quantity = getattr(facts, name)
        shorter = name in ("setup", "request")
        value = quantity.low if (end == BETTER) == shorter else quantity.high
        unit = "s" if shorter else "B/s" if name == "bandwidth" else "B"
        number = f"{value:.0f}" if unit == "B" else f"{value:.9g}"
        found.append(f"machine.copy_engines.0.{name}={number} {unit}")
    return tuple(found)


def _seconds(runs: Runs, path: str, size_MiB: float, home: int, *settings: str) -> float:
    """Of one scan after the other by one thread."""
    record = runs(
        UNIT_SCENARIO,
        f"{PATH}={path}",
        f"{ROWS}={round(size_MiB * MIB / VALUE_BYTES)}",
        f"system.tables.column={home}",
        *settings,
    )
    mean_ns = (record.latency_ns.get("scan") or {}).get("mean")
    return mean_ns / 1e9 if mean_ns else 1.0 / sum(record.throughput.values())


def _rate_Bps(runs: Runs, path: str, size_MiB: float, home: int, *settings: str) -> float:
    return size_MiB * MIB / _seconds(runs, path, size_MiB, home, *settings)


def _interval(runs: Runs, size_MiB: float, home: int) -> str:
    low, high = (_rate_Bps(runs, "gru", size_MiB, home, *_ends(end)) for end in (WORSE, BETTER))
    return f"{low / 1e9:.1f} to {high / 1e9:.1f} GB/s"


def _by_unit(home: int) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        note = (
            f"{_interval(runs, 256, home)} over the ranges of the unit's facts, of which none was "
            "found measured elsewhere: its bandwidth is an estimate from the width of a NUMAlink "
            "port, and decides."
        )
        return Prediction(_rate_Bps(runs, "gru", 256, home), note=note)

    return predict


def _full_from(runs: Runs, path: str, *settings: str, full: float = FULL) -> float:
    """The bytes from which a scan off the blade has its full throughput, between two sizes."""
    rates = [_rate_Bps(runs, path, size, OFF_BLADE, *settings) for size in SIZES_MIB]
    wanted = full * rates[-1]
    at = next(k for k, rate in enumerate(rates) if rate >= wanted)
    if at == 0:
        return SIZES_MIB[0] * MIB
    part = (wanted - rates[at - 1]) / (rates[at] - rates[at - 1])
    logs = np.log(SIZES_MIB)
    return float(np.exp(logs[at - 1] + part * (logs[at] - logs[at - 1])) * MIB)


def _begins_by_unit(runs: Runs) -> Prediction:
    low, high = (_full_from(runs, "gru", *_ends(end)) / 1e6 for end in (BETTER, WORSE))
    note = (
        f"95% of the throughput of 256 MiB; {low:.0f} to {high:.0f} MB over the ranges of the "
        f"unit's facts; at 98% it would be {_full_from(runs, 'gru', full=0.98) / 1e6:.0f} MB: the "
        "source does not say from what part on it calls a throughput full. Setup and the first "
        "copy, before which there is nothing to scan; missing: misses in the unit's translation "
        "buffer, which Linux serves by an interrupt for each page (drivers/misc/sgi-gru)."
    )
    return Prediction(_full_from(runs, "gru"), note=note)


def _begins_by_cpu(runs: Runs) -> Prediction:
    note = (
        "95% of the throughput of 256 MiB, and the smallest size that is played: only the task's "
        "own 2 µs are in its way. Missing: what a scan's first pages cost, in the translation "
        "buffers and until the prefetchers have found the stream."
    )
    return Prediction(_full_from(runs, "cpu"), note=note)


def _advantage(runs: Runs) -> Prediction:
    """512 KiB off the blade: the CPU's time over the unit's, by what is found."""
    size = 0.5
    settings = [f"{SELECTIVITY}={part:g}" for part in SELECTIVITIES]
    times = [
        [_seconds(runs, path, size, OFF_BLADE, setting) for setting in settings]
        for path in ("cpu", "gru")
    ]
    ratios = [by_cpu / by_unit for by_cpu, by_unit in zip(*times, strict=True)]
    words = ", ".join(
        f"{ratio:.2f} where {part:.0%} are found"
        for ratio, part in zip(ratios, SELECTIVITIES, strict=True)
    )
    falls = all(a >= b - 1e-9 for a, b in pairwise(ratios))
    gone = abs(ratios[-1] - 1.0) <= 0.1 or ratios[-1] < 1.0
    note = (
        "The CPU's time over the unit's. Results are written by the thread on both paths; the "
        "criterion (falling, and within a tenth of 1 or below it in the end) stood before the run."
    )
    return Prediction(f"{words}: the CPU's time over the unit's", bool(falls and gone), note)


POOLED_MIB, POOLED_HOMES = (64, 256), (OWN, BLADE, OFF_BLADE)


def _pooled(runs: Runs, path: str, workers: int, *settings: str) -> float:
    """Mean throughput of scans from 32 MiB on, of all distances, beside copies of the unit."""
    found = []
    for home in POOLED_HOMES:
        background = (
            "system.background=[{kind: copy-engine, node: 0, "
            f"home: {home or OFF_BLADE}, workers: {workers}}}]"
        )
        found += [_rate_Bps(runs, path, size, home, background, *settings) for size in POOLED_MIB]
    return float(np.mean(found))


def _idle_unit(runs: Runs) -> Prediction:
    low, high = (_pooled(runs, "gru", 0, *_ends(end)) / 1e9 for end in (WORSE, BETTER))
    note = f"{low:.1f} to {high:.1f} GB/s over the ranges of the unit's facts."
    return Prediction(_pooled(runs, "gru", 0), note=note)


def _busy_unit(runs: Runs) -> Prediction:
    left = {
        path: [_pooled(runs, path, workers) / _pooled(runs, path, 0) for workers in (1, 4)]
        for path in ("gru", "cpu")
    }
    words = (
        f"by the unit {left['gru'][0]:.0%} and {left['gru'][1]:.0%} are left beside 1 and 4 such "
        f"workers, by CPU {left['cpu'][0]:.0%} and {left['cpu'][1]:.0%}"
    )
    holds = left["gru"][1] < 0.5 and min(left["cpu"]) > 0.9
    note = "The criterion (below half; nine tenths and more) stood before the run."
    return Prediction(words, bool(holds), note)


# -- the choice of a path

OBSERVATIONS, SEED = 20_000, 1


@cache
def _scores(plane: str, sizes: str = "log-even") -> dict[str, Any]:
    machine = load_machine("sgi-uv300h-8s")
    model = trainer_of("access-path")(machine, OBSERVATIONS, SEED, plane, None, sizes=sizes)
    scores: dict[str, Any] = model.scores
    return scores


def _score(name: str, more: str = "") -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        runs.machine("sgi-uv300h-8s")
        value, low, high = _scores(runs.plane)[name]
        best = _scores(runs.plane)["engine_is_best"][0]
        even = _scores("flow", "even")[name][0]
        note = (
            f"{low:.3f} to {high:.3f} by resampling the held-out fifth of {OBSERVATIONS:,} scans, "
            f"of which {best:.0%} are best by the unit. What was drawn in the source is not known "
            "in detail: with sizes drawn evenly, not evenly in their logarithm, it would be "
            f"{even:.3f}. {more}"
        )
        return Prediction(value, note=note.strip())

    return predict


def _loss(runs: Runs) -> Prediction:
    lost = _score("regression_loss")(runs)
    assert isinstance(lost.value, float)
    return Prediction(f"{lost.value:.1%} longer", bool(lost.value <= 0.02), lost.note)


LINEAR = (
    "Times here are products (bytes times a time per byte that depends on distance and load), "
    "which a sum of features meets badly; sizes from 64 KiB to 256 MiB."
)


PUBLISHED: Mapping[str, Published] = {
    "gru-fig4-cpu-node": Published(
        8e9, "B/s", _scan(OWN, OWN_NOTE), planes=PLANES, about="one thread scans its node"
    ),
    "gru-fig4-cpu-blade": Published(
        5e9,
        "B/s",
        _scan(BLADE, BLADE_NOTE),
        planes=PLANES,
        about="one thread scans its blade",
    ),
    "gru-fig4-cpu-off-blade": Published(
        3e9,
        "B/s",
        _scan(OFF_BLADE, OFF_NOTE),
        planes=PLANES,
        about="one thread scans off its blade",
    ),
    "gru-fig5-cpu": Published(
        "as the result grows, writing it comes to dominate",
        "share",
        _grows,
        planes=PLANES,
        about="one thread scans off its blade, by the size of the result",
    ),
    "gru-fig3-unit": Published(
        60e6,
        "B",
        _begins_by_unit,
        planes=PLANES,
        about="the unit has its full throughput from that size on, off the blade",
    ),
    "gru-fig3-cpu": Published(
        1e6,
        "B",
        _begins_by_cpu,
        planes=PLANES,
        about="the same by CPU",
    ),
    "gru-fig4-unit-node": Published(
        6e9, "B/s", _by_unit(OWN), planes=PLANES, about="the unit copies for a scan of its node"
    ),
    "gru-fig4-unit-blade": Published(
        6e9, "B/s", _by_unit(BLADE), planes=PLANES, about="the unit copies for one of its blade"
    ),
    "gru-fig4-unit-off-blade": Published(
        6e9,
        "B/s",
        _by_unit(OFF_BLADE),
        planes=PLANES,
        about="the unit copies for one off its blade",
    ),
    "gru-fig5-unit": Published(
        "as the result grows, the unit's advantage vanishes",
        "ratio",
        _advantage,
        planes=PLANES,
        about="scans of 512 KiB off the blade by both paths, by the size of the result",
    ),
    "gru-fig6-idle": Published(
        7e9, "B/s", _idle_unit, planes=PLANES, about="scans above 32 MB by an idle unit"
    ),
    "gru-fig6-busy": Published(
        "much lower beside other work of the unit; by CPU hardly affected",
        "ratio",
        _busy_unit,
        planes=PLANES,
        about="the same beside copies there and back",
    ),
    "gru-tab2-r2-cpu": Published(
        0.9347, "R²", _score("r2_cpu", LINEAR), about="a regression of the time by CPU"
    ),
    "gru-tab2-r2-unit": Published(
        0.9671, "R²", _score("r2_engine", LINEAR), about="a regression of the time by the unit"
    ),
    "gru-tab2-precision": Published(
        0.90, "precision", _score("regression_precision"), about="choosing by both regressions"
    ),
    "gru-tab2-recall": Published(
        0.77, "recall", _score("regression_recall"), about="choosing by both regressions"
    ),
    "gru-tab2-f1": Published(
        0.83, "F1", _score("regression_f1"), about="choosing by both regressions"
    ),
    "gru-tab2-tree-precision": Published(
        0.87, "precision", _score("tree_precision"), about="choosing by a decision tree"
    ),
    "gru-tab2-tree-recall": Published(
        0.95, "recall", _score("tree_recall"), about="choosing by a decision tree"
    ),
    "gru-tab2-tree-f1": Published(
        0.91, "F1", _score("tree_f1"), about="choosing by a decision tree"
    ),
    "gru-opt": Published(
        "within 2% of always choosing best",
        "",
        _loss,
        about="total time of the paths that both regressions choose",
    ),
}

BLINDNESS = """\
**Scans on the UV 300H (GRU).** Nothing of the model or of the machine was changed for these rows.
What a scan does with what it finds is open: it writes positions here, as the source's do, though
adding up was tried first; the note says what that gives. `gru-fig5-cpu` is blind: scenario and
criterion were written before the first run, and stand as they were.

By the unit nothing is blind: its facts were looked for with all figures in sight. None of them
comes from these rows; where no source was found the machine's file has an estimate with a wide
range, and the notes say what the prediction is over that range. Nor is the choice of a path blind:
traffic at the unit was counted in bytes per second at first, which one copying worker fills as well
as four (F1 0.66 by regressions, 7.6% of time lost); it is counted in copies under way since.
"""

VALIDATION = Validation(published=PUBLISHED, blindness=BLINDNESS)

"""Published results of scans on an SGI UV 300H, by CPU and copied ahead by the hub's unit.

Study of access paths (CPU, or the hub's Global Reference Unit), 2018. Its machine's file holds the
processor's data sheet and the study's own table of bandwidth and latency by distance; what it says
of the unit comes from elsewhere, with wide ranges: predictions are intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from ...topologies import load_machine
from ..results import Prediction, Published, Runs
from .access_path_choice import CHOICE
from .descriptor import Validation

SCENARIO = "gru-fig4-cpu"
OWN, BLADE, OFF_BLADE = 0, 1, 4  # nodes that hold the column; the thread runs on node 0


def _scan(home: int, note: Callable[[Runs, float], str]) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        rate_Bps = _scanned_Bps(runs, home)
        return Prediction(rate_Bps, note=note(runs, rate_Bps))

    return predict


def _scanned_Bps(runs: Runs, home: int, *settings: str) -> float:
    record = runs(SCENARIO, f"system.home={home}", *settings)
    return record.bandwidth_Bps["memory"] or 0.0


PAGE_BYTES = 4096


def _restarting_Bps(rate_Bps: float, latency_ns: float) -> float:
    """Where the first line of each page of 4 KiB is waited for once."""
    return PAGE_BYTES / (PAGE_BYTES / rate_Bps + latency_ns * 1e-9)


RESTARTS = (
    "Intel's prefetchers stop at the end of each page of 4 KiB (optimization manual) and restart"
)


def _own_note(runs: Runs, rate_Bps: float) -> str:
    summed_Bps = _scanned_Bps(runs, OWN, "workload.operations.scan.result=sum")
    return (
        f"Limited by one core's misses in flight, at a latency of 100 ns. {RESTARTS}: if each "
        f"page cost one latency it would be {_restarting_Bps(rate_Bps, 100) / 1e9:.1f} GB/s, if "
        "what loads further ahead hides that, this figure; the published one lies between. The "
        "source does not say what its scan does with matches; here it writes positions, and "
        f"finds hardly any. A scan that adds up what it reads would take {summed_Bps / 1e9:.1f} "
        "GB/s."
    )


def _blade_note(_: Runs, rate_Bps: float) -> str:
    return (
        "The source says 'up to': the neighbour on the ring, one link away, is taken. One latency "
        f"a page of 4 KiB, as in gru-fig4-cpu-node, would leave "
        f"{_restarting_Bps(rate_Bps, 200) / 1e9:.1f} GB/s."
    )


def _off_blade_note(runs: Runs, _: float) -> str:
    latency = "machine.distance_classes.3.latency"
    near_Bps, far_Bps = (
        _scanned_Bps(runs, OFF_BLADE, f"{latency}={ns} ns") for ns in OFF_BLADE_LATENCIES_NS
    )
    return (
        "Limited by latency, which is uncertain: the source says 'hundreds of ns', the machine "
        f"file 500 ns; 3 GB/s would be 340 ns. {far_Bps / 1e9:.1f} to {near_Bps / 1e9:.1f} GB/s "
        f"over its range, in which the published figure lies. {RESTARTS}, which makes it worse: "
        f"{_restarting_Bps(far_Bps, OFF_BLADE_LATENCIES_NS[1]) / 1e9:.1f} to "
        f"{_restarting_Bps(near_Bps, OFF_BLADE_LATENCIES_NS[0]) / 1e9:.1f} GB/s with one latency "
        "a page. So only a lower latency explains it, for which no source was found."
    )


OFF_BLADE_LATENCIES_NS = (300, 700)  # the range in the machine's file
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
        "place. Linux's fault of a page of 4 KiB and its zeros take 0.6 to 1 µs (on a Core of "
        "the 11th generation, by one published measurement): with them all that is found would "
        f"take {_share(times, FAULTS_S[0], 4):.0%} to {_share(times, FAULTS_S[1], 4):.0%} of the "
        f"time (half of it at {_fault_s(times) * 1e6:.1f} µs a page). The source gives no width "
        "of a position, 4 B here; with 8 B and such pages it would be "
        f"{_share(times, FAULTS_S[0], 8):.0%} to {_share(times, FAULTS_S[1], 8):.0%}, so the "
        "published words lie within the range of the unknown facts, and are not predicted by "
        "the known ones. Blind: the criterion (rising, more than half of the time in the end) "
        "was fixed before the run."
    )
    return Prediction(f"{words} of the scan's time", rises and shares[-1] > DOMINATES, note)


POSITION_BYTES = 4
FAULTS_S = (0.6e-6, 1e-6)


def _share(times: list[float], fault_s: float, position_bytes: int) -> float:
    """Of a scan's time that writing takes where all is found, with a fault for each fresh page and
    positions of that width (twice as wide ones take twice as long to write)."""
    written_s = (times[-1] - times[0]) * position_bytes / POSITION_BYTES
    written_s += fault_s * ENTRIES * position_bytes / PAGE_BYTES
    return written_s / (times[0] + written_s)


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


def _ends(times: str, rates: str | None = None) -> tuple[str, ...]:
    """Settings by which the unit's times are at that end of their ranges, and its bandwidth and
    bytes under way at theirs (by default, at the same one)."""
    facts = load_machine("sgi-uv300h-8s").description.copy_engines[0]
    found = []
    for name in ENGINE_FACTS:
        quantity = getattr(facts, name)
        shorter = name in ("setup", "request")
        end = times if shorter else rates or times
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
            f"{_interval(runs, 256, home)} over the ranges of the unit's facts, in which the "
            "published figure lies; none of them was found measured elsewhere. Its bandwidth, an "
            "estimate from the width of a NUMAlink port, decides. The source's own rows are 6 "
            "(figure 4) and just below 7 GB/s (figure 6), which no one bandwidth meets. Two things "
            "were tried by hand. A miss of its translation buffer for each page of 2 MiB, served "
            "by an interrupt of some 5 µs, would take 2%. If its port carried lines in packets as "
            "the links between hubs do here, with a header of 16 B (estimate: 8 to 32 B), 7.45 "
            "GB/s would leave 6.0 (5.0 to 6.6) for data: that could be it, but nothing says that "
            "copies cross such a port, so it is not in the machine's file."
        )
        return Prediction(_rate_Bps(runs, "gru", 256, home), note=note)

    return predict


def _full_from(runs: Runs, path: str, *settings: str, full: float = FULL) -> float:
    """The bytes from which a scan off the blade has its full throughput, between two sizes."""
    rates = [_rate_Bps(runs, path, size, OFF_BLADE, *settings) for size in SIZES_MIB]
    wanted = full * rates[-1]
    first = next(k for k, rate in enumerate(rates) if rate >= wanted)
    if first == 0:
        return SIZES_MIB[0] * MIB
    part = (wanted - rates[first - 1]) / (rates[first] - rates[first - 1])
    logs = np.log(SIZES_MIB)
    return float(np.exp(logs[first - 1] + part * (logs[first] - logs[first - 1])) * MIB)


# A task's own time of 2 µs, and that of a processor that wakes.
ASLEEP, NAPPING = "system.task=90 us", "system.task=12 us"
AWAKENING = (
    "on such a processor, in a machine of more than four sockets, Linux's intel_idle counts 88 µs "
    "until it leaves C6"
)


def _begins_by_unit(runs: Runs) -> Prediction:
    # What comes before the first chunk weighs the more the faster the rest is.
    low = _full_from(runs, "gru", *_ends(BETTER, WORSE)) / 1e6
    slow_start = _ends(WORSE, BETTER)
    high, asleep = (_full_from(runs, "gru", *slow_start, *more) / 1e6 for more in ((), (ASLEEP,)))
    note = (
        f"95% of the throughput of 256 MiB; {low:.0f} to {high:.0f} MB over the ranges of the "
        f"unit's facts, {'in' if low <= 60 <= high else 'outside'} which the published figure "
        f"lies; at 98% it would be {_full_from(runs, 'gru', full=0.98) / 1e6:.0f} MB: the source "
        "does not say which share it counts as full throughput. Setup and the first copy, "
        "before the scan can start, are modelled. Missing: a thread that sleeps before the scan "
        f"({AWAKENING}), with which the upper end is {asleep:.0f} "
        f"MB{', and the published figure lies within' if asleep >= 60 else ''}. Misses in the "
        "unit's translation buffer, which Linux serves by an interrupt for each page "
        "(drivers/misc/sgi-gru), slow small and large scans equally, so they are not the cause."
    )
    return Prediction(_full_from(runs, "gru"), note=note)


def _begins_by_cpu(runs: Runs) -> Prediction:
    asleep, napping = (_full_from(runs, "cpu", setting) / 1e6 for setting in (ASLEEP, NAPPING))
    note = (
        "95% of the throughput of 256 MiB, and the smallest simulated size: only the task's own "
        f"2 µs delay it, because the thread is awake. One that sleeps ({AWAKENING}) has full "
        f"throughput from {asleep:.1f} MB on, from {napping:.2f} MB in the state before (C1E, 10 "
        "µs): the published figure lies between; the source does not say which state applied. "
        "Page borders, where prefetchers restart, slow small and large scans equally, so they "
        "are not the cause."
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
        "criterion (falling, and within a tenth of 1 or below it in the end) was fixed before "
        "the run."
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
    note = "The criterion (below half; nine tenths and more) was fixed before the run."
    return Prediction(words, bool(holds), note)


PUBLISHED: Mapping[str, Published] = {
    "gru-fig4-cpu-node": Published(
        8e9, "B/s", _scan(OWN, _own_note), planes=PLANES, about="one thread scans its node"
    ),
    "gru-fig4-cpu-blade": Published(
        5e9,
        "B/s",
        _scan(BLADE, _blade_note),
        planes=PLANES,
        about="one thread scans its blade",
    ),
    "gru-fig4-cpu-off-blade": Published(
        3e9,
        "B/s",
        _scan(OFF_BLADE, _off_blade_note),
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
    **CHOICE,
}

BLINDNESS = """\
**Scans on the UV 300H (GRU).** Nothing of the model or of the machine was changed for these rows.
What a scan does with its matches is open: here it writes positions, as the source's do, though
sums were tried first; the note gives their result. `gru-fig5-cpu` is blind: scenario and criterion
were written before the first run, and not changed.

The unit's rows are not blind: its facts were collected with all figures in sight. None of them
comes from these rows; where no source was found the machine file has an estimate with a wide range,
and the notes give the prediction over that range. Nor is the choice of a path blind: traffic at the
unit was first counted in bytes per second, which one copying worker fills as well as four (F1 0.66
by regressions, 7.6% of time lost); now it is counted in copies in progress. The source does not
describe its scans' sizes in detail: here they are log-uniform from 64 KiB to 256 MiB, and the notes
of these rows also give two other distributions.
"""

VALIDATION = Validation(published=PUBLISHED, blindness=BLINDNESS)

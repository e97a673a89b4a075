"""Published results of scans on an SGI UV 300H, by CPU and copied ahead by the hub's unit.

Study of access paths (CPU, or the hub's Global Reference Unit), 2018. Its machine's file holds the
processor's data sheet and the study's own table of bandwidth and latency by distance; what it says
of the unit comes from elsewhere, with wide ranges: predictions are intervals.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ...sim.systems.registry import trainer_of
from ...topologies import load_machine
from ..results import Prediction, Runs, read_source
from .descriptor import Validation

SOURCE = read_source("gru")
MIB = 1024 * 1024
OBSERVATIONS, SEED = 20_000, 1

# The choice of a scan's access path by models (table 2 of the study). What scans the source
# observed is not known in detail: each row says what other draws of their sizes give.
DRAWS = {  # sizes of scans: how, and from which one on
    "for log-uniform sizes from 1 MiB on": ("log-even", float(MIB)),
    "for uniform sizes from 64 KiB on": ("even", MIB / 16),
}


@cache
def _scores(plane: str, sizes: str = "log-even", bytes_min: float = MIB / 16) -> dict[str, Any]:
    machine = load_machine("sgi-uv300h-8s")
    model = trainer_of("access-path")(
        machine, OBSERVATIONS, SEED, plane, sizes=sizes, bytes_min=bytes_min
    )
    scores: dict[str, Any] = model.scores
    return scores


def _score(name: str, published: float = 0.0) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        runs.machine("sgi-uv300h-8s")
        choice = DRAWS.get(runs.chosen("sizes of the scans that were observed", ""), ())
        value, low, high = _scores(runs.plane, *choice)[name]
        drawn = {how: _scores("flow", *draw)[name][0] for how, draw in DRAWS.items()}
        within = min(value, *drawn.values()) <= published <= max(value, *drawn.values())
        facts = {
            "low": low,
            "high": high,
            "listed": ", ".join(f"{found:.3f} {how}" for how, found in drawn.items()),
            "where": "within" if within else "outside",
        }
        return Prediction(value, facts=facts)

    return predict


def _loss(runs: Runs) -> Prediction:
    lost = _score("regression_loss")(runs)
    assert isinstance(lost.value, float)
    best = _scores(runs.plane)["engine_is_best"][0]
    facts = {**lost.facts, "observations": OBSERVATIONS, "best": best}
    return Prediction(f"{lost.value:.1%} longer", bool(lost.value <= 0.02), facts)


CHOICE: Mapping[str, Callable[[Runs], Prediction]] = {
    "gru-tab2-r2-cpu": _score("r2_cpu", 0.9347),
    "gru-tab2-r2-unit": _score("r2_engine", 0.9671),
    "gru-tab2-precision": _score("regression_precision", 0.90),
    "gru-tab2-recall": _score("regression_recall", 0.77),
    "gru-tab2-f1": _score("regression_f1"),
    "gru-tab2-tree-precision": _score("tree_precision"),
    "gru-tab2-tree-recall": _score("tree_recall"),
    "gru-tab2-tree-f1": _score("tree_f1"),
    "gru-opt": _loss,
}


SCENARIO = "gru-fig4-cpu"
OWN, BLADE, OFF_BLADE = 0, 1, 4  # nodes that hold the column; the thread runs on node 0


def _scanned_Bps(runs: Runs, home: int, *settings: str) -> float:
    record = runs(SCENARIO, f"system.home={home}", *settings)
    return record.bandwidth_Bps["memory"] or 0.0


PAGE_BYTES = 4096


def _restarting_Bps(rate_Bps: float, latency_ns: float) -> float:
    """Where the first line of each page of 4 KiB is waited for once."""
    return PAGE_BYTES / (PAGE_BYTES / rate_Bps + latency_ns * 1e-9)


def _own(runs: Runs) -> Prediction:
    rate_Bps = _scanned_Bps(runs, OWN)
    summed_Bps = _scanned_Bps(runs, OWN, "workload.operations.scan.result=sum")
    facts = {"restarting": _restarting_Bps(rate_Bps, 100) / 1e9, "summed": summed_Bps / 1e9}
    return Prediction(rate_Bps, facts=facts)


def _blade(runs: Runs) -> Prediction:
    rate_Bps = _scanned_Bps(runs, BLADE)
    return Prediction(rate_Bps, facts={"restarting": _restarting_Bps(rate_Bps, 200) / 1e9})


def _off_blade(runs: Runs) -> Prediction:
    latency = "machine.distance_classes.3.latency"
    facts = {}
    for name, latency_ns in zip(("near", "far"), OFF_BLADE_LATENCIES_NS, strict=True):
        rate_Bps = _scanned_Bps(runs, OFF_BLADE, f"{latency}={latency_ns} ns")
        facts[name] = rate_Bps / 1e9
        facts[f"{name}_restarting"] = _restarting_Bps(rate_Bps, latency_ns) / 1e9
    return Prediction(_scanned_Bps(runs, OFF_BLADE), facts=facts)


OFF_BLADE_LATENCIES_NS = (300, 700)  # the range in the machine's file

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
    narrow, wide = ([_share(times, fault_s, width) for fault_s in FAULTS_S] for width in (4, 8))
    facts = {"narrow": narrow, "wide": wide, "half_us": _fault_s(times) * 1e6}
    fresh = runs.chosen("pages of a scan's result", "kept") == "fresh"
    width = int(runs.chosen("width of a position", f"{POSITION_BYTES} B").split()[0])
    most = _share(times, sum(FAULTS_S) / 2.0 if fresh else 0.0, width)
    return Prediction(f"{words} of the scan's time", rises and most > DOMINATES, facts)


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


UNIT_SCENARIO = "gru-scan"
PATH = "workload.operations.scan.operators.scan.path"
ROWS = "workload.objects.column.rows"
SELECTIVITY = "workload.operations.scan.operators.scan.selectivity"
VALUE_BYTES = 4
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
        rate_Bps = _rate_Bps(runs, "gru", 256, home)
        return Prediction(rate_Bps, facts={"interval": _interval(runs, 256, home)})

    return predict


def _full_from(runs: Runs, path: str, *settings: str, full: float | None = None) -> float:
    """The bytes from which a scan off the blade has its full throughput, between two sizes."""
    full = full or float(runs.chosen("share that counts as full throughput", str(FULL)))
    rates = [_rate_Bps(runs, path, size, OFF_BLADE, *settings) for size in SIZES_MIB]
    wanted = full * rates[-1]
    first = next(k for k, rate in enumerate(rates) if rate >= wanted)
    if first == 0:
        return SIZES_MIB[0] * MIB
    part = (wanted - rates[first - 1]) / (rates[first] - rates[first - 1])
    logs = np.log(SIZES_MIB)
    return float(np.exp(logs[first - 1] + part * (logs[first] - logs[first - 1])) * MIB)


# A task's own time of 2 µs, and that of a processor that wakes.
NAPPING = SOURCE.stated("the thread before a scan", "in C1E")
ASLEEP = SOURCE.stated("the thread before a scan", "in C6")


def _begins_by_unit(runs: Runs) -> Prediction:
    # What comes before the first chunk weighs the more the faster the rest is.
    low = _full_from(runs, "gru", *_ends(BETTER, WORSE)) / 1e6
    slow_start = _ends(WORSE, BETTER)
    high, asleep = (_full_from(runs, "gru", *slow_start, *more) / 1e6 for more in ((), ASLEEP))
    facts = {
        "low": low,
        "high": high,
        "where": "in" if low <= 60 <= high else "outside",
        "at_98": _full_from(runs, "gru", full=0.98) / 1e6,
        "asleep": asleep,
        "and_so": ", and the published figure lies within" if asleep >= 60 else "",
    }
    return Prediction(_full_from(runs, "gru"), facts=facts)


def _begins_by_cpu(runs: Runs) -> Prediction:
    asleep, napping = (_full_from(runs, "cpu", *state) / 1e6 for state in (ASLEEP, NAPPING))
    return Prediction(_full_from(runs, "cpu"), facts={"asleep": asleep, "napping": napping})


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
    return Prediction(f"{words}: the CPU's time over the unit's", bool(falls and gone))


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
    return Prediction(_pooled(runs, "gru", 0), facts={"low": low, "high": high})


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
    return Prediction(words, bool(holds))


VALIDATION = Validation.of(
    SOURCE,
    {
        "gru-fig4-cpu-node": _own,
        "gru-fig4-cpu-blade": _blade,
        "gru-fig4-cpu-off-blade": _off_blade,
        "gru-fig5-cpu": _grows,
        "gru-fig3-unit": _begins_by_unit,
        "gru-fig3-cpu": _begins_by_cpu,
        "gru-fig4-unit-node": _by_unit(OWN),
        "gru-fig4-unit-blade": _by_unit(BLADE),
        "gru-fig4-unit-off-blade": _by_unit(OFF_BLADE),
        "gru-fig5-unit": _advantage,
        "gru-fig6-idle": _idle_unit,
        "gru-fig6-busy": _busy_unit,
        **CHOICE,
    },
)

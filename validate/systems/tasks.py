"""Published results of tasks on NUMA machines, and how each is predicted.

Psaroudakis et al., Adaptive NUMA-aware data placement and task scheduling for analytical workloads
in main-memory column-stores, PVLDB 10 (2016); Dominico et al., An Elastic Multi-Core Allocation
Mechanism for Database Systems, ICDE 2018. What goes in: the machine's facts, pages and time per
page of a move, and instruction counts of operators. The machine's stealing threshold, a published
result, is used where a scenario says so (hana-fig10), and decides nothing there: idle sockets
would have taken scans, which it forbids. The rows of thresholds come from the search, which reads
none.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ...sim.kernel.arrays import Floats
from ...sim.run.record import Record
from ...sim.systems.descriptor import LazyImport
from ...sim.systems.tasks.threshold import search_threshold
from ...workloads.schema import TABLE_BY_COLUMN
from ..results import Prediction, Runs, read_source
from .descriptor import Microbenchmark, Validation

# Decided and done, in seconds: the move of one of the first socket's tables, the partitioning of
# the other socket's, the move of its half.
FIG10_S = (53.0, 91.0, 108.0, 174.0, 190.0)
WITHIN = 0.15
STEALING = ("never", "always", "adaptive")
LAST_S = 5.0


def _rates(record: Record) -> Floats:
    """Queries per second of all kinds together, by piece of time."""
    assert record.series is not None
    columns = [name for name in record.series if name.startswith("throughput/")]
    return np.asarray(np.sum([record.series[name] for name in columns], axis=0))


def _rate_at_last(record: Record) -> float:
    """Queries per second over the last ``LAST_S``: rows of planes that have queries one by one are
    short, and have few each."""
    assert record.series is not None
    begin = record.series["time_s"]
    end = begin + record.series["duration_s"]
    inside = np.clip(end - np.maximum(begin, end[-1] - LAST_S), 0.0, None)
    return float((_rates(record) * inside).sum() / inside.sum())


def _fig10(runs: Runs) -> Prediction:
    rates = _rates(runs("hana-fig10"))
    return Prediction(float(rates[-1] / rates[0]))


def _fig10_actions(runs: Runs) -> Prediction:
    events = [e for e in runs("hana-fig10").control_events if e.kind in ("placement", "done")]
    acts = [e for e in events if "TBL4" not in e.text]
    words = "; ".join(f"{event.time_s:.0f} s {event.text}" for event in events)
    kinds = [event.text.removeprefix("adaptive: ").split()[0] for event in acts]
    same = kinds == ["move", "move", "partition", "partition", "move"]
    near = same and all(
        abs(event.time_s - then) <= WITHIN * then for event, then in zip(acts, FIG10_S, strict=True)
    )
    merged = bool(events) and "merge TBL4" in events[0].text
    return Prediction(words, merged and near)


def _per_s(record: Record) -> float:
    """Queries of all kinds together."""
    return sum(record.throughput.values())


def _stolen(runs: Runs, scenario: str) -> tuple[float, float]:
    """Queries per second where nothing is stolen, and where all may be."""
    never, always = (runs(scenario, policy=f"stealing={which}") for which in ("never", "always"))
    return _per_s(never), _per_s(always)


def _lost_by_stealing(runs: Runs) -> Prediction:
    never, always = _stolen(runs, "hana-fig11-low")
    return Prediction(1.0 - always / never)


def _fig11(share: float, best: str, others: Sequence[str]) -> Callable[[Runs], Prediction]:
    """Of selections of this ``share``: whether a rule of stealing does clearly more than others."""

    def predict(runs: Runs) -> Prediction:
        finds = [f"workload.operations.select-TBL{n}.operators.find" for n in (1, 2)]
        settings = [f"{find}.selectivity={share}" for find in finds]
        per_s = {
            rule: _per_s(runs("hana-fig11-low", *settings, policy=f"stealing={rule}"))
            for rule in STEALING
        }
        words = "queries/s: " + ", ".join(f"{per_s[rule]:.0f} {rule}" for rule in STEALING)
        most = max(per_s[rule] for rule in others)
        return Prediction(words, per_s[best] > (1.0 + CLEARLY) * most)

    return predict


def _steal_worst(runs: Runs) -> Prediction:
    never, always = _stolen(runs, "hana-steal-worst")
    return Prediction(never / always)


PARTS = (2, 4, 16, 64)


def _part_worst(runs: Runs) -> Prediction:
    whole = _per_s(runs("hana-part-worst"))
    slower = {n: whole / _per_s(runs("hana-part-worst", f"system.parts={n}")) for n in PARTS}
    listed = ", ".join(f"{factor:.2f} with {n}" for n, factor in slower.items())
    parts = int(runs.chosen("parts of the tables", "4"))
    return Prediction(slower[parts], facts={"listed": listed})


# Found by 'numatwin machine threshold MACHINE --on event --no-backlog'. Of 32 sockets, for which it
# takes most of an hour, before pairs bound only themselves, which made 660 of the 721 MB/s.
WITHOUT_BACKLOG = {"xeon-4s-ivb": 1.50e9, "xeon-8s-ivb": 721e6, "xeon-32s-hsw": 219e6}


def _threshold(name: str, published_Bps: float) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        machine = runs.machine(name)
        found = search_threshold(machine, runs.plane)
        others = [f"{crossing.value_Bps / 1e6:.0f} MB/s" for crossing in found.crossings[1:]]
        every_other = f" With vectors on every other socket: {', '.join(others)}." if others else ""
        first = found.crossings[0]
        last = first.points[-1]
        workers = last.alone_Bps / last.task_Bps  # of the sockets with vectors, all at work
        here, published = (
            Bps / len(first.nodes) for Bps in (last.stolen_Bps, workers * published_Bps)
        )
        mixed_Bps = WITHOUT_BACKLOG.get(name)
        found_so = (
            ""
            if mixed_Bps is None
            else f": {mixed_Bps / 1e6:.0f} MB/s (--no-backlog, on the event plane), "
            f"{mixed_Bps / published_Bps - 1.0:+.0%}"
        )
        facts = {
            "here": here / 1e9,
            "published": published / 1e9,
            "found_so": found_so,
            "every_other": every_other,
        }
        waiting = runs.chosen("tasks that wait as a threshold is looked for", "") != "none"
        value = found.threshold.value if waiting else WITHOUT_BACKLOG[name]
        return Prediction(value, facts=facts)

    return predict


MODES = ("adaptive", "dense", "sparse", "none")
# The source's second system knows of nodes: threads and queues of each.
NUMA_AWARE = ("system.affinity=node", "system.queue=node", "system.threads=cores")


def _with_mode(runs: Runs, mode: str, *settings: str) -> Record:
    return runs("elastic-modes", *settings, policy=f"cores={mode}")


def _all_allocated(record: Record) -> str:
    cores = [event.time_s for event in record.control_events if event.kind == "cores"]
    return f"last core allocated at {cores[-1]:.0f} s" if cores else "no core allocated"


def _elastic_modes(runs: Runs) -> Prediction:
    records = {mode: _with_mode(runs, mode) for mode in MODES}
    ends = {mode: _rate_at_last(record) for mode, record in records.items()}
    words = "queries/s at the end: " + ", ".join(f"{ends[mode]:.1f} {mode}" for mode in MODES)
    fastest = all(ends["adaptive"] > (1.0 + CLEARLY) * ends[mode] for mode in MODES[1:])
    moved = {
        mode: sum(record.model.get("migrations", {}).values()) for mode, record in records.items()
    }
    if "migrations" in records["none"].model:
        words += f"; migrations: {moved['adaptive']} adaptive, {moved['none']} none"
        fastest = fastest and moved["adaptive"] < moved["none"]
    return Prediction(words, fastest, {"last_core": _all_allocated(records["adaptive"])})


def _elastic_ratio(runs: Runs) -> Prediction:
    found = []
    for settings in ((), NUMA_AWARE):
        adaptive, plain = (
            float(_with_mode(runs, mode, *settings).model["interconnect_ratio"])
            for mode in ("adaptive", "none")
        )
        found.append((plain, adaptive))
    words = "; ".join(
        f"{name}: {plain:.2f} to {adaptive:.2f}"
        for name, (plain, adaptive) in zip(("MonetDB-like", "NUMA-aware"), found, strict=True)
    )
    fell = all(adaptive <= (1.0 - MARKEDLY) * plain for plain, adaptive in found)
    return Prediction(words, fell)


def _elastic_energy(runs: Runs) -> Prediction:
    each = {}
    for mode in ("adaptive", "none"):
        record = _with_mode(runs, mode)
        assert record.energy_J is not None
        counted_s = record.horizon_s - record.warm_up_s
        each[mode] = record.energy_J / (_per_s(record) * counted_s)
    words = f"J a query: {each['adaptive']:.2f} adaptive, {each['none']:.2f} none"
    return Prediction(words, each["adaptive"] < (1.0 - CLEARLY) * each["none"])


# What counts as a difference, and as a marked one; the source says it in words.
CLEARLY, MARKEDLY = 0.01, 0.25

SOURCE = read_source("tasks")
LOOPS = f"{__package__}.task_loops"
VALIDATION = Validation.of(
    SOURCE,
    {
        "hana-fig10": _fig10,
        "hana-fig10-actions": _fig10_actions,
        "hana-fig11-low": _lost_by_stealing,
        "hana-fig11-mid": _fig11(0.01, "adaptive", ("never", "always")),
        "hana-fig11-high": _fig11(0.1, "always", ("never",)),
        "hana-steal-worst": _steal_worst,
        "hana-thresholds": _threshold("xeon-4s-ivb", 1.2e9),
        "hana-thresholds-8s": _threshold("xeon-8s-ivb", 550e6),
        "hana-thresholds-32s": _threshold("xeon-32s-hsw", 230e6),
        "elastic-modes": _elastic_modes,
        "elastic-ratio": _elastic_ratio,
        "elastic-energy": _elastic_energy,
        "hana-part-worst": _part_worst,
    },
    measured={"queries": Microbenchmark(LazyImport(LOOPS, "measure"), 1.0)},
    described=LazyImport(LOOPS, "described"),
    traffic_cases=LazyImport(f"{__package__}.task_traffic", "traffic_cases"),
    entry_bytes={TABLE_BY_COLUMN: LazyImport("numatwin.sim.systems.tasks.spec", "bytes_per_row")},
)

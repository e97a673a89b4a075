"""Published results of tasks on NUMA machines, and how each is predicted.

Psaroudakis et al., Adaptive NUMA-aware data placement and task scheduling for analytical workloads
in main-memory column-stores, PVLDB 10 (2016); Dominico et al., An Elastic Multi-Core Allocation
Mechanism for Database Systems, ICDE 2018. What goes in: the machine's facts, pages and time per
page of a move, and instruction counts of operators. The machine's stealing threshold, a published
result, is used where a scenario says so (hana-fig10), and decides nothing there: idle sockets
would have taken scans, which it forbids. The rows of thresholds come from the search, which reads
none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from ...sim.run.record import Record
from ...sim.systems.tasks.threshold import search_threshold
from ..results import Prediction, Published, Runs
from .descriptor import Validation

Floats = npt.NDArray[np.float64]

# Decided and done, in seconds: the move of one of the first socket's tables, the partitioning of
# the other socket's, the move of its half.
FIG10_S = (53.0, 91.0, 108.0, 174.0, 190.0)
WITHIN = 0.15
LAST_S = 5.0

STEAL_NOTE = (
    "Homes keep a directory in memory (data sheet), whose updates are writes: one each time "
    "that a line's readers change between local and remote, as independent draws. With links of "
    "12.5 GB/s from each idle socket, that leaves a socket 39 of 67.5 GB/s; entries of the home "
    "agents (256 a socket) leave it 50. Not in the model: snoops by local reads of marked "
    "lines, and how long these hold entries; and, with the opposite effect, scans that follow "
    "each other so closely that they hit in the last-level cache. "
)
LOW_NOTE = STEAL_NOTE + (
    "The published figure implies 52 GB/s per socket with stealing, the published threshold of "
    "four sockets 36: one bandwidth cannot give both, and the model has 39 for both, or 43 "
    "without a backlog (see hana-thresholds). For 52, lines would change readers 0.4 times as "
    "often as independent draws do; no source supports that."
)
WORST_NOTE = STEAL_NOTE + (
    "The published figure implies 17 GB/s per hot socket with stealing, less than the 25 GB/s "
    "of its links to the two idle sockets alone: no limit of four sockets in the model explains "
    "it. Tried: without a backlog of tasks, workers of hot sockets also run other sockets' "
    "tasks (see hana-thresholds-8s). With that, sums that are bound by memory lose a factor of "
    "1.5 on four sockets, 3.3 on eight and 5.3 on 32 (machine threshold --no-backlog, n = 1); "
    "1,024 clients of 120 workers are a backlog, however, and the row is assumed to be for four "
    "sockets."
)


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
    note = (
        "Nothing is timed by hand: a part under the same load from the start may be moved once "
        "70% of its look-back is over, twice its pages times the time per page. TBL1 and TBL2 "
        "are equal, and the source moves the other one."
    )
    return Prediction(words, merged and near, note)


def _lost_by_stealing(runs: Runs) -> Prediction:
    never = runs("hana-fig11-low", policy="stealing=never")
    always = runs("hana-fig11-low", policy="stealing=always")
    lost = 1.0 - sum(always.throughput.values()) / sum(never.throughput.values())
    return Prediction(lost, note=LOW_NOTE)


def _steal_worst(runs: Runs) -> Prediction:
    never = runs("hana-steal-worst", policy="stealing=never")
    always = runs("hana-steal-worst", policy="stealing=always")
    slower = sum(never.throughput.values()) / sum(always.throughput.values())
    return Prediction(slower, note=WORST_NOTE)


PARTS = (2, 4, 16, 64)


def _part_worst(runs: Runs) -> Prediction:
    whole = runs("hana-part-worst")
    partitioned = {n: runs("hana-part-worst", f"system.parts={n}") for n in PARTS}
    slower = {
        n: sum(whole.throughput.values()) / sum(record.throughput.values())
        for n, record in partitioned.items()
    }
    note = (
        "Slower by the number of parts: "
        + ", ".join(f"{factor:.2f} with {n}" for n, factor in slower.items())
        + ". The source says up to 2, without the number of parts and groups; here 65,536 groups "
        "are merged, and the row has as many parts as sockets; some 50 parts are twice as slow."
    )
    return Prediction(slower[4], note=note)


# Found by 'numatwin machine threshold MACHINE --on event --no-backlog'. Of 32 sockets, for which it
# takes most of an hour, it was not found again since pairs bound only themselves.
WITHOUT_BACKLOG = {"xeon-4s-ivb": 1.44e9, "xeon-8s-ivb": 721e6}


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
        served = (
            f" With stealing a socket with vectors serves {here / 1e9:.0f} GB/s here; the "
            f"published threshold means {published / 1e9:.1f} GB/s in the source. The search keeps "
            "four tasks per worker waiting, so workers at the vectors never run remote tasks; "
            "the source does not say how many waited. With as many tasks as workers any worker "
            f"runs any task, nearly all reads are remote, and links are the limit{found_so}. "
            "The row does not assume that, "
            "because only the published figures support it."
        )
        return Prediction(found.threshold.value, note=THRESHOLD_NOTE + served + every_other)

    return predict


MODES = ("adaptive", "dense", "sparse", "none")
# The source's second system knows of nodes: threads and queues of each.
NUMA_AWARE = ("system.affinity=node", "system.queue=node", "system.threads=cores")

ELASTIC_NOTE = (
    "256 users without pauses keep any number of cores busy, and a core that waits for memory is "
    "busy, too: the net sees an overload until it has allocated all cores, in any mode, and from "
    "then on all modes are the operating system alone. By the net's rule fewer suffice only where "
    "the allocated ones idle for 30% of their time (th_max 0.7), with 256 users: what makes them "
    "idle is missing, and no source says it. Tried: the other metric, a lower th_max, tables that "
    "one node loaded: in none of 13 variants adaptive ends faster than none. That MonetDB's thread "
    "of a user sleeps for 1 ms where its user has no task waiting (mal_dataflow.c) would not make "
    "them idle: of 256 users, others always have some. "
    "Its operators, one for each column and step, write more results than the fewer ones here, "
    "which write theirs, too."
)


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
    when = f"Adaptive: {_all_allocated(records['adaptive'])}. "
    return Prediction(words, fastest, when + ELASTIC_NOTE)


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
    return Prediction(words, fell, ELASTIC_NOTE)


def _elastic_energy(runs: Runs) -> Prediction:
    each = {}
    for mode in ("adaptive", "none"):
        record = _with_mode(runs, mode)
        assert record.energy_J is not None
        counted_s = record.horizon_s - record.warm_up_s
        each[mode] = record.energy_J / (sum(record.throughput.values()) * counted_s)
    words = f"J a query: {each['adaptive']:.2f} adaptive, {each['none']:.2f} none"
    note = "While few cores are allocated, the others idle, and fewer queries share their energy. "
    return Prediction(words, each["adaptive"] < (1.0 - CLEARLY) * each["none"], note + ELASTIC_NOTE)


# What counts as a difference, and as a marked one; the source says it in words.
CLEARLY, MARKEDLY = 0.01, 0.25

THRESHOLD_NOTE = (
    "From the search (numatwin machine threshold): vectors on the first half of the sockets; "
    "the source does not say which half. Homes that keep their directory in memory write it "
    "each time that a line's readers change between local and remote."
)

# The machine file has the published threshold, which stealing of hana-fig10 goes by.
THRESHOLDS = ("hana-thresholds",)

BLINDNESS = """\
**Tasks (HANA).** All figures were in sight when the model was written. The placer's parameters and
the times per page are the source's; the placer's file says how its rules are read where it leaves
them open. Instruction counts of operators come from other publications. Nothing was fitted. Of the
study of elastic cores, three figures of its abstract were in sight, too; none was used.
"""

PUBLISHED: Mapping[str, Published] = {
    "hana-fig10": Published(
        2.0,
        "end / initial throughput",
        _fig10,
        THRESHOLDS,
        about="adaptive placement of three hot tables and an idle one",
    ),
    "hana-fig10-actions": Published(
        "TBL4 merged first; a table moved (53 s, done 91 s), TBL3 split (108 s, done 174 s), its "
        "half moved (190 s)",
        "actions and times",
        _fig10_actions,
        THRESHOLDS,
        about="what the placer does, and when",
    ),
    "hana-fig11-low": Published(
        0.23,
        "of throughput lost by stealing",
        _lost_by_stealing,
        about="selections of 0.1% on two tables of four sockets",
    ),
    "hana-steal-worst": Published(
        4.0,
        "never / always stealing",
        _steal_worst,
        about="selections on 190 columns, half of them hotter, 1,024 clients",
    ),
    "hana-thresholds": Published(
        1.2e9,
        "B/s",
        _threshold("xeon-4s-ivb", 1.2e9),
        planes=("flow", "event"),
        about="stealing threshold of a task, 4 sockets",
    ),
    "hana-thresholds-8s": Published(
        550e6,
        "B/s",
        _threshold("xeon-8s-ivb", 550e6),
        planes=("flow", "event"),
        about="the same, 8 sockets",
    ),
    "hana-thresholds-32s": Published(
        230e6,
        "B/s",
        _threshold("xeon-32s-hsw", 230e6),
        planes=("flow", "event"),
        about="the same, 32 sockets",
    ),
    "elastic-modes": Published(
        "adaptive beats dense, sparse and the plain operating system, with far fewer migrations",
        "throughput",
        _elastic_modes,
        planes=("flow", "event"),
        about="256 users of a small database, elastic cores",
    ),
    "elastic-ratio": Published(
        "falls markedly under the adaptive mode, for both systems",
        "remote / all traffic",
        _elastic_ratio,
        planes=("flow", "event"),
        about="the same: the interconnection ratio",
    ),
    "elastic-energy": Published(
        "falls under the adaptive mode",
        "energy",
        _elastic_energy,
        planes=("flow", "event"),
        about="the same: energy",
    ),
    "hana-part-worst": Published(
        2.0,
        "slower with parts",
        _part_worst,
        about="aggregations on tables that are partitioned without need",
    ),
}

VALIDATION = Validation(
    published=PUBLISHED,
    blindness=BLINDNESS,
)

"""Studies of the 8-node machine in the flow plane, five factors: speed, growth, memory, resume.

Runs a second on one and two workers, run and written; what a run costs inside a study over its bare
rates; the same runs on dask's workers (without its profiler) and on joblib's; how time and memory
grow with the number of runs; how long a finished study of many rows takes to say so. ``--long``:
10,000 runs for the speed, up to 100,000 of a quicker scenario for growth, dask by four workers, and
a run of each bundled steady scenario. Rows for the resume are copies of one run's. One JSON object
a line on standard output, the hash of the rows on standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numatwin.inputs.shared_work import SharedWork
from numatwin.sim.run.scenario import load_scenario, scenario_names
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.studies.base import Base
from numatwin.sim.studies.evaluate import ERROR, WALL, Runs, rows_of
from numatwin.sim.studies.run_study import run_study
from numatwin.sim.studies.search import search
from numatwin.sim.studies.store import Store
from numatwin.sim.studies.study import Study, load_study
from numatwin.sim.systems.registry import system_of

STUDY = """\
name: benchmark
scenario: eris-fig8-amd
factors:
  system.nodes: [4, 5, 6, 7, 8]
  system.buffer_commands: {from: 8, to: 1024, steps: 10, scale: log}
  workload.objects.index.keys: {from: 1_000_000, to: 1_000_000_000, steps: 10, scale: log}
  machine.link_types.ht-full.bandwidth: {from: 4 GB/s, to: 16 GB/s, steps: 5}
  machine.node_types.opteron-6274-die.clock: {from: 1.6 GHz, to: 3 GHz, steps: STEPS}
"""
# Of growth: quick runs, of which the first hundred take as long as the last.
GROWTH = """\
name: growth
scenario: eris-fig12-scan
factors:
  horizon: {from: 1 s, to: 10 s, steps: 25}
  system.buffer_commands: {from: 8, to: 1024, steps: 10, scale: log}
  workload.objects.column.entries: {from: 100_000_000, to: 1_000_000_000, steps: 10, scale: log}
  workload.operations.scan.selectivity: {from: 0.001, to: 0.5, steps: 10, scale: log}
  system.nodes: [5, 6, 7, 8]
"""
SEARCHED = """\
name: searched
scenario: eris-fig8-amd
factors:
  system.nodes: [4, 5, 6, 7, 8]
  system.buffer_commands: {from: 16, to: 1024, steps: 5, scale: log}
  machine.link_types.ht-full.bandwidth: {from: 4 GB/s, to: 12 GB/s, steps: 5}
constraints: ["utilisation.link.busiest < 80%"]
objective: maximise throughput.lookup per cost
prices: {currency: EUR, default: {per_node: 1000, per_GB: 5, per_port: 100, fixed: 2000}}
"""
IDLE_S = 2.0
BUNDLED_RUNS = 5  # of each scenario
WHOLE = 10_000  # runs
CLUSTER_MAX = 2_000  # runs, on dask and on joblib
WHOLE_S, RUN_MS, RESUME_S, MEMORY_MIB = 60.0, 10.0, 5.0, 1024.0
STEPS_WHOLE = 4  # 5 · 10 · 10 · 5 · 4 = 10,000


def study(folder: Path, points: int) -> Study:
    """The study with at least so many points."""
    path = folder / "study.yaml"
    path.write_text(STUDY.replace("STEPS", str(max(STEPS_WHOLE, -(-points // 2500)))))
    return load_study(path)


def line(name: str, value: float, unit: str, versus: str, ratio: float) -> None:
    found = {"name": f"studies/{name}", "value": round(value, 3), "unit": unit}
    print(json.dumps(found | {"versus": versus, "ratio": round(ratio, 3)}), flush=True)


def speed(folder: Path, points: int) -> None:
    """Seconds for 10,000 scenarios, run and written, on one and two workers."""
    took = {}
    for jobs in (1, 2):
        where, before = folder / f"speed-{jobs}", _cpu_s()
        took[jobs] = run_study(study(folder, points), where, jobs=jobs, limit=points).wall_s
        times = WHOLE / points
        whole_s, cpu_s = took[jobs] * times, (_cpu_s() - before) * times
        line(f"10,000 runs on {jobs}", whole_s, "s", f"allowed: {WHOLE_S:g} s", WHOLE_S / whole_s)
        if jobs == 2 and times == 1.0 and cpu_s > 0:
            # Other work on this machine changes it less. With fewer runs workers' start counts.
            allowed = f"allowed on two processors: {2 * WHOLE_S:g} s"
            line("10,000 runs, processor time", cpu_s, "s of CPU", allowed, 2 * WHOLE_S / cpu_s)
    line("two workers", took[1] / took[2], "times", "one worker, the same runs", took[1] / took[2])
    tables = [Store(folder / f"speed-{jobs}").read().drop_columns([WALL]) for jobs in (1, 2)]
    assert tables[0].equals(tables[1])
    digest = hashlib.sha256(json.dumps(tables[0].to_pylist()).encode()).hexdigest()[:16]
    print(f"studies: rows {digest}", file=sys.stderr)


def cluster(folder: Path, points: int, workers: int, rounds: int) -> None:
    """The same runs on dask's workers and on joblib's, in turn: seconds, and processor time of all.

    Where other work runs on this machine, processor time says more; but what an idle cluster takes,
    its clocks and heartbeats, grows with the seconds.
    """
    try:
        import dask
        from distributed import LocalCluster
    except ImportError:
        print("studies: no dask.distributed: its workers are not measured", file=sys.stderr)
        return
    found = study(folder, points)
    # Its profiler looks at what each worker does a hundred times a second: a sixth of their time.
    dask.config.set({"distributed.worker.profile.enabled": False})

    def timed(name: str, **options: Any) -> tuple[float, float]:
        # The first runs start workers, and fill what these keep.
        run_study(found, folder / f"{name}-first", limit=50 * workers, **options)
        began, before = time.perf_counter(), _cpu_s()
        run_study(found, folder / name, limit=points, **options)
        return time.perf_counter() - began, _cpu_s() - before

    idle: list[float] = []
    took: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for k in range(rounds):
        local = timed(f"joblib-{k}", jobs=workers)
        with LocalCluster(workers, threads_per_worker=1, dashboard_address=None) as started:
            took.append((local, timed(f"dask-{k}", scheduler=started.scheduler_address)))
            began, before = time.perf_counter(), _cpu_s()
            time.sleep(IDLE_S)
            idle.append((_cpu_s() - before) / (time.perf_counter() - began))
    tables = [Store(folder / name).read().drop_columns([WALL]) for name in ("joblib-0", "dask-0")]
    assert tables[0].equals(tables[1])
    names = ("time", "processor time")
    for at, (what, unit) in enumerate(zip(names, ("s", "s of CPU"), strict=True)):
        ratios = [one[at] / other[at] for one, other in took]
        middle = statistics.median(other[at] for _, other in took)
        versus = f"joblib's, {rounds} times in turn: {min(ratios):.2f} to {max(ratios):.2f}"
        line(f"{what} on {workers} dask workers", middle, unit, versus, statistics.median(ratios))
    resting = statistics.median(idle)
    busy = statistics.median(other[1] / other[0] for _, other in took)
    line("an idle cluster", 100 * resting, "% of a processor", "a busy one", resting / busy)


def _cpu_s() -> float:
    """Processor time of this process and of all that it started, those that have ended too; 0
    without psutil, which dask.distributed has."""
    try:
        import psutil
    except ImportError:
        return 0.0
    here = psutil.Process()
    times = [one.cpu_times() for one in (here, *here.children(recursive=True))]
    return sum(sum(one[:4]) for one in times)  # user, system, and both of children that were reaped


def overhead(folder: Path, points: int) -> None:
    """Processor time of a run inside a study, and of its rates alone."""
    runs, design = study(folder, points).runs, study(folder, points).design
    chosen = [(k, design.of(k)) for k in range(0, design.count, max(1, design.count // points))]
    work = SharedWork()
    rows_of(runs, chosen[:3], work)
    start = time.process_time()
    rows_of(runs, chosen, work)
    each_ms = 1e3 * (time.process_time() - start) / len(chosen)
    scenarios = [runs.base.load(*runs.settings(*point)) for point in chosen]
    start = time.process_time()
    for scenario in scenarios:
        flow_plane(scenario).rates()
    bare_ms = 1e3 * (time.process_time() - start) / len(chosen)
    line("a run", each_ms, "ms of CPU", f"allowed: {RUN_MS:g} ms", RUN_MS / each_ms)
    line("overhead", each_ms / bare_ms, "times", "its rates alone", each_ms / bare_ms)


def bundled() -> None:
    """Processor time of a run inside a study of each bundled steady scenario that has flows: those
    whose policies do not act, with one phase and no faults."""
    for name in scenario_names():
        scenario = load_scenario(name)
        system = scenario.settings["system"]
        acting = any(policy.acts for policy in scenario.policies.values())
        faults = system.get("faults") or system.get("stragglers")
        steady = len(scenario.workload.phases) == 1 and not acting and not faults
        if not steady or "flow" not in system_of(scenario.system).planes:
            continue
        runs, work = Runs(Base(name, {"plane": "flow"}), ("seed",), ("",)), SharedWork()
        took = []
        for seed in range(1 + BUNDLED_RUNS):
            start = time.process_time()
            (row,) = rows_of(runs, [(seed, (seed,))], work)
            took.append(time.process_time() - start)
            assert ERROR not in row, row[ERROR]
        each_ms = 1e3 * statistics.median(took[1:])  # the first one makes what they share
        versus = f"allowed: {RUN_MS:g} ms; {len(scenario.machine.nodes)} nodes"
        line(f"a run of {name}", each_ms, "ms of CPU", versus, RUN_MS / each_ms)


def beyond(whole: float, part: float) -> float:
    """What a time has beyond a part of it; less than a hundredth is not told from none."""
    return max(whole - part, 0.01 * whole)


def searching(folder: Path) -> None:
    """Processor time of a search, of half as many runs, and of the whole grid."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        print("studies: no Optuna: searches are not measured", file=sys.stderr)
        return
    path = folder / "search.yaml"
    path.write_text(SEARCHED)
    found = load_study(path)
    search(found, folder / "search-first", runs_max=20, jobs=1)  # with its imports
    start = time.process_time()
    run_study(found, folder / "grid", jobs=1)
    grid_s, start = time.process_time() - start, time.process_time()
    runs = search(found, folder / "search", jobs=1)
    took_s = time.process_time() - start
    line("search", took_s, "s of CPU", f"the grid of {runs.grid}, by {runs.new}", grid_s / took_s)
    own_ms = 1e3 * beyond(took_s / runs.new, grid_s / runs.grid)
    line("search a trial", own_ms, "ms of CPU", "the grid's run", own_ms * runs.grid / grid_s / 1e3)


def growth(folder: Path, sizes: list[int]) -> None:
    """Time of each further run and memory, by the number of runs; printed size by size."""
    path = folder / "growth.yaml"
    path.write_text(GROWTH)
    found = load_study(path)
    run_study(found, folder / "growth-first", jobs=1, limit=sizes[0])
    second_s = before_s = 0.0
    for points, before in zip(sizes, [0, *sizes], strict=False):
        start = time.process_time()
        run_study(found, folder / f"growth-{points}", jobs=1, limit=points)
        took_s = time.process_time() - start
        # A study's fixed costs fall out, but of the first ones; they vary by what a few runs take.
        each_s, before_s = beyond(took_s, before_s) / (points - before), took_s
        second_s = second_s or (each_s if before else 0.0)
        name, versus = f"{points:,} runs", f"from {sizes[0]:,} to {sizes[1]:,}"
        ratio = each_s / second_s if second_s else 1.0
        line(name, 1e3 * each_s, "ms of CPU each further run", versus, ratio)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        versus = f"allowed: {MEMORY_MIB:g} MiB"
        line(f"memory of {points:,} runs", memory, "MiB", versus, MEMORY_MIB / memory)


def resume(folder: Path, points: int) -> None:
    """A finished study of many rows says that it is."""
    found, where = study(folder, points), folder / "resume"
    store = Store(where)
    (row,) = rows_of(found.runs, [(0, found.design.of(0))], SharedWork())
    store.begin(found.identity)
    count = found.design.count
    for first in range(0, count, 1_000):
        store.add([row | {"point": k} for k in range(first, min(first + 1_000, count))], first)
    start = time.perf_counter()
    done = run_study(study(folder, points), where)
    took_s = time.perf_counter() - start
    assert (done.new, done.complete) == (0, True)
    line(f"resume {count:,} rows", took_s, "s", f"allowed: {RESUME_S:g} s", RESUME_S / took_s)


def alone(part: str) -> None:
    """A part in a process of its own."""
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "--part", part], check=True)


PARTS = ("resume", "overhead", "speed", "search", "cluster", "growth", "bundled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=300, help="runs for the speed")
    parser.add_argument("--rows", type=int, default=100_000, help="rows for the resume")
    parser.add_argument("--workers", type=int, help="of joblib and dask (2; --long: 4); 0: not")
    parser.add_argument("--rounds", type=int, default=3, help="of joblib and dask in turn")
    parser.add_argument("--long", action="store_true", help="10,000 runs, growth to 100,000")
    parser.add_argument("--part", choices=PARTS, help="this alone")
    options = parser.parse_args()
    if options.workers is None:
        options.workers = 4 if options.long else 2
    points = 10_000 if options.long else options.points
    sizes = [100, 1_000, 10_000, 100_000] if options.long else [max(points // 3, 1), points]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], None]] = {
            "resume": lambda: resume(folder, options.rows),
            "overhead": lambda: overhead(folder, min(points, 300)),
            "speed": lambda: speed(folder, points),
            "search": lambda: searching(folder),
            "cluster": lambda: cluster(
                folder, min(points, CLUSTER_MAX), options.workers, options.rounds
            ),
            # Its memory is that of a process that has done nothing else.
            "growth": lambda: growth(folder, sizes) if options.part else alone("growth"),
            "bundled": bundled,
        }
        if not (options.long or options.part):
            del parts["bundled"]
        if not options.workers:
            del parts["cluster"]
        for part in [options.part] if options.part else parts:
            parts[part]()


if __name__ == "__main__":
    main()

"""The event plane of tasks: tasks scheduled and played per second of CPU time.

Closed clients ask for a scan and a materialisation of one of 16 tables; 60 workers on 4 nodes and
576 on 32, in a ring. The reference in SimPy plays the first milliseconds of the same. Then whole
runs, in CPU seconds: data placement of figure 10 on both planes (as flows also as a study runs it,
without the four further runs over the ranges of uncertain facts), and a TPC-H-like mix of 1,024
clients on 8 sockets. One JSON object a line on standard output, how many tasks ended and queries
were answered on standard error.

The mix runs for 300 s, in the CPU time that was asked for 10 s: no query can end within 10 s. One
reads 60 GB and computes for 6.4 s of a core on average; 1,024 come at once, so that 8 sockets of
67.5 GB/s need 115 s for one round of them. The first stages of all, whose tasks come first, take
some 0.9 s of a core each: 8 s of 120 cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

from numatwin.inputs import parse_yaml
from numatwin.sim._kernel import TaskSetup
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.run.runner import bare_record, run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.tasks.event_plane import EventModel, Model, ReferenceModel
from numatwin.sim.systems.tasks.parameters import task_setup
from numatwin.sim.systems.tasks.program import (
    Entries,
    EntryCost,
    MemoryUse,
    Part,
    Program,
    Query,
    Scheduling,
    Stage,
    Table,
)
from numatwin.topologies import machine_from_document

ASKED = {60: 500_000.0, 576: 100_000.0}  # tasks a second
MS = 1_000_000_000  # ps

MACHINE = """\
name: bench
node_types:
  plain:
    cores: {cores}
    clock: 2.5 GHz
    ipc: 2
    outstanding_misses: 10
    streaming_misses: 20
    memory: {{size: 128 GiB, bandwidth: 65 GB/s, latency: 100 ns}}
nodes: [{{ids: 0-{last}, type: plain}}]
link_types:
  link: {{bandwidth: 16 GB/s, latency: 60 ns, data_header: 8 B, request: 8 B}}
generate: [{{shape: ring, link: link}}]
"""


def mix(nodes: int, workers: int) -> TaskSetup:
    """Scans and materialisations of 16 tables in a part each, by twice as many clients as workers.

    A scan takes some 10 µs of a thread alone, a materialisation as long.
    """
    text = MACHINE.format(cores=workers // nodes, last=nodes - 1)
    machine = machine_from_document(parse_yaml(text, "bench.yaml"))
    ones = np.ones(nodes)
    scan = EntryCost(0.1e-9 * ones, 0 * ones, 20 * ones, (MemoryUse("part", 1 / 32),))
    pick = EntryCost(20e-9 * ones, 0 * ones, 10 * ones, (MemoryUse("part", 2.0),))
    tables, queries = [], []
    for t in range(16):
        tables.append(Table(f"t{t}", (Part(40_000, t % nodes),), 2.0, 0.0))
        stages = (
            Stage("scan", "scan", scan, Entries(per_row=1.0), t),
            Stage("pick", "pick", pick, Entries(per_row=0.01), t, (0,)),
        )
        queries.append(Query(f"q{t}", stages, 2 * workers // 16, 0.0))
    scheduling = Scheduling(
        np.full(nodes, workers // nodes, dtype=np.int64), None, 1e-6, float("inf"), 0.0
    )
    program = Program(tuple(tables), tuple(queries), scheduling, 0, 0.0, 0.0)
    return task_setup(program, CostModel(machine))


def rate(model: Model, until_ps: int) -> float:
    """Tasks that end per second of CPU time."""
    model.allow([False, True])
    start = time.process_time()
    model.run(until_ps)
    passed_s = time.process_time() - start
    return float(model.counts()["classes"][:, 1].sum() / passed_s)


ONCE = ("statistics.replications=1", "statistics.warm_up=0 s")
# Name: (scenario, plane, settings, how many seconds are simulated, CPU seconds at most).
RUNS: dict[str, tuple[str, str, tuple[str, ...], float, float]] = {
    "hana_fig10_flow": ("hana-fig10", "flow", (), 200.0, 0.5),
    "hana_fig10_flow_in_study": ("hana-fig10", "flow", (), 200.0, 0.5),
    "hana_fig10_event": ("hana-fig10", "event", ONCE, 200.0, 20.0),
    "tpch_100_event": ("snc4-tpch", "event", ("machine=xeon-8s-ivb", *ONCE), 300.0, 30.0),
}


def print_run(name: str, part: float) -> None:
    """The CPU seconds of one of ``RUNS``, or of the first ``part`` of its time."""
    scenario, plane, settings, simulated_s, most_s = RUNS[name]
    horizon = f"horizon={part * simulated_s:g} s"
    loaded = load_scenario(scenario, plane=plane, settings=(*settings, horizon))
    start = time.process_time()
    record = bare_record(loaded) if name.endswith("_in_study") else run_scenario(loaded, workers=1)
    passed_s = time.process_time() - start
    done = sum(record.model["tasks"].values())
    answered = sum(record.operations.values())
    print(
        f"tasks/{name}: {done:.0f} tasks, {answered:.0f} queries answered in "
        f"{loaded.horizon_s:g} s simulated",
        file=sys.stderr,
    )
    whole = part == 1.0
    line = {
        "name": f"tasks/{name}",
        "value": round(passed_s, 3),
        "unit": "s",
        "versus": f"at most {most_s:g}" if whole else None,
        "ratio": round(most_s / passed_s, 2) if whole else None,
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[60, 576])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--simulated-ms", type=int, default=200)
    parser.add_argument("--reference-ms", type=int, default=2)
    parser.add_argument("--runs", nargs="*", choices=RUNS, default=list(RUNS))
    parser.add_argument("--part", type=float, default=1.0, help="of the runs' simulated time")
    options = parser.parse_args()
    for workers, nodes in zip(options.workers, options.nodes, strict=True):
        parameters = mix(nodes, workers)
        model = EventModel(parameters, 1, 1)
        found = rate(model, options.simulated_ms * MS)
        name = f"tasks/event_{workers}_workers"
        print(f"{name}: {int(model.counts()['classes'][:, 1].sum())} tasks ended", file=sys.stderr)
        asked = ASKED.get(workers)
        line = {
            "name": name,
            "value": round(found),
            "unit": "tasks/s",
            "versus": f"at least {asked:g}" if asked else None,
            "ratio": round(found / asked, 2) if asked else None,
        }
        print(json.dumps(line), flush=True)
    parameters = mix(options.nodes[0], options.workers[0])
    until_ps = options.reference_ms * MS
    event, reference = EventModel(parameters, 1, 1, True), ReferenceModel(parameters, 1, 1, True)
    rates = rate(event, until_ps), rate(reference, until_ps)
    if not np.array_equal(event.trace(), reference.trace()):
        raise SystemExit("the two planes' traces differ")
    line = {
        "name": "tasks/event_versus_reference",
        "value": round(rates[0] / rates[1], 1),
        "unit": "x",
        "versus": "at least 50",
        "ratio": round(rates[0] / rates[1] / 50.0, 2),
    }
    print(json.dumps(line), flush=True)
    for name in options.runs:
        print_run(name, options.part)


if __name__ == "__main__":
    main()

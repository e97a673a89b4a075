"""The event plane of tasks: tasks scheduled and played per second of CPU time.

Closed clients ask for a scan and a materialisation of one of 16 tables; 60 workers on 4 nodes and
576 on 32, in a ring. The reference in SimPy plays the first milliseconds of the same. One JSON
object a line on standard output, how many tasks ended on standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

from numatwin.inputs import parse_yaml
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.systems.tasks.models import EventModel, Model, ReferenceModel
from numatwin.sim.systems.tasks.parameters import TaskParameters, task_parameters
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


def mix(nodes: int, workers: int) -> TaskParameters:
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
    return task_parameters(program, CostModel(machine))


def rate(model: Model, until_ps: int) -> float:
    """Tasks that end per second of CPU time."""
    model.allow([False, True])
    start = time.process_time()
    model.run(until_ps)
    passed_s = time.process_time() - start
    return float(model.class_counts()[:, 1].sum() / passed_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[60, 576])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--simulated-ms", type=int, default=200)
    parser.add_argument("--reference-ms", type=int, default=2)
    options = parser.parse_args()
    for workers, nodes in zip(options.workers, options.nodes, strict=True):
        parameters = mix(nodes, workers)
        model = EventModel(parameters, 1, 1)
        found = rate(model, options.simulated_ms * MS)
        name = f"tasks/event_{workers}_workers"
        print(f"{name}: {int(model.class_counts()[:, 1].sum())} tasks ended", file=sys.stderr)
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


if __name__ == "__main__":
    main()

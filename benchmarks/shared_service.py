"""Tasks on cores that share a machine max-min fair: tasks played per second of CPU time.

Every core does one task after the other: scans of 30 µs to 300 µs when nobody is in the way, half
of them of another node's memory, some bound by instructions. One JSON object a line on standard
output, how many tasks ended on standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

from numatwin.sim._kernel import play_closed_pieces
from numatwin.sim.machine.reference.interconnect import Routes
from numatwin.sim.machine.reference.memory_controller import LoadCurve
from numatwin.sim.machine.reference.shared_service import Piece, PieceMemory, ServiceMachine

NS, US = 1e3, 1e6
ASKED = {60: 500_000.0}  # tasks a second


def machine(nodes: int, cores: int) -> ServiceMachine:
    """Nodes with a link each way between any two: 100 GB/s a controller, 30 GB/s a link."""
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    link = {pair: k for k, pair in enumerate(pairs)}
    entering = [link.get((a, b), -1) for a in range(nodes) for b in range(nodes)]
    before = [a if a != b else -1 for a in range(nodes) for b in range(nodes)]
    latency = np.full((nodes, nodes), 150.0 * NS)
    np.fill_diagonal(latency, 90.0 * NS)
    return ServiceMachine(
        read_ps=[0.64 * NS] * nodes,
        write_ps=[0.9 * NS] * nodes,
        latency_ps=latency.ravel().tolist(),
        curve=LoadCurve((0.0, 0.5, 0.8, 1.0), (1.0, 1.1, 1.5, 3.0)),
        core_node=[core // (cores // nodes) for core in range(cores)],
        core_threads=[1] * cores,
        data_ps=[2130] * len(pairs),
        request_ps=[270] * len(pairs),
        routes=Routes(entering, before, nodes),
    )


def tasks(nodes: int, seed: int = 1) -> list[Piece]:
    """What tasks come, again and again: (lines) of one node or of two, by how many at a time."""
    random = np.random.Generator(np.random.Philox(seed))
    found = []
    for _ in range(9973):
        lines = float(random.uniform(3_000, 30_000))
        homes = random.choice(nodes, 2, replace=False).tolist()
        memory = [PieceMemory(homes[0], 1.0)]
        if random.uniform() < 0.3:  # a copy
            memory.append(PieceMemory(homes[1], 0.0, 0.5))
        instructions_ps = float(random.choice([2.0, 5.0, 20.0])) * NS
        found.append(Piece(lines, instructions_ps, 0.0, 10.0, tuple(memory)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, nargs="+", default=[60, 576])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--simulated-us", type=int, default=100_000)
    options = parser.parse_args()
    for cores, nodes in zip(options.cores, options.nodes, strict=True):
        place, work = machine(nodes, cores), tasks(nodes)
        start = time.process_time()
        done = play_closed_pieces(place, work, int(options.simulated_us * US))
        rate = done / (time.process_time() - start)
        name = f"shared_service/tasks_{cores}_cores"
        print(f"{name}: {done} tasks ended", file=sys.stderr)
        asked = ASKED.get(cores)
        line = {
            "name": name,
            "value": round(rate),
            "unit": "tasks/s",
            "versus": f"at least {asked:g}" if asked else None,
            "ratio": round(rate / asked, 2) if asked else None,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

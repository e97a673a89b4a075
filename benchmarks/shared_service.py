"""Tasks on cores that share a machine max-min fair: tasks played per second of CPU time.

Every core does one task after the other, scans and materialisations of 30 µs to 300 µs: of its own
node's memory, but for those that it has stolen, of any node's (``stolen_10``: one in ten; ``any``:
all). The loop is compiled when this runs (``shared_service.cpp``). Beside it the same in Python
(``reference``, for a shorter time), and what a program could play at most that shares out all
running tasks again, one by one, at each end (``one_by_one``: the kernel's ``solve_max_min`` alone).
One JSON object a line on standard output; how many tasks ended on standard error.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pybind11
import simpy

from numatwin.sim._kernel import ServiceMachine, solve_max_min
from numatwin.sim.machine.reference.service_machine import MemoryUse, PieceDemand
from numatwin.sim.machine.reference.shared_service import NEVER, SharedService

HERE = Path(__file__).parent
SIM = HERE.parent / "sim"
LOOP, MACHINE_PARTS = "shared_service_loop", ("shared_service", "service_machine", "memory_home")
NS, US = 1e3, 1e6
STOLEN = {"stolen_10": 0.1, "any": 1.0}
ASKED = {60: 900_000.0, 576: 200_000.0}  # of stolen_10, tasks a second

Tasks = tuple[list[PieceDemand], list[list[tuple[float, int]]]]
"""Demands; for each node, units and demand (a position) of the tasks that its cores do in turn."""


def compiled(folder: Path) -> Any:
    """The module with the loop in C++."""
    parts = ["kernel/class_sharing.cpp"]
    parts += [f"machine/kernel/{name}.cpp" for name in MACHINE_PARTS]
    made = folder / f"{LOOP}.so"
    flags = ["-std=c++20", "-O3", "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden"]
    flags += os.environ.get("CXXFLAGS", "").split()  # a test has -O0, which compiles sooner
    folders = [SIM, Path(sysconfig.get_paths()["include"]), Path(pybind11.get_include())]
    sources = [HERE / "shared_service.cpp", *(SIM / part for part in parts)]
    command = [os.environ.get("CXX", "g++"), *flags, *(f"-I{path}" for path in folders)]
    # As one, but for the last, which names a constant as another does: most of the compiler's work
    # is the headers that they share.
    together = "".join(f'#include "{source}"\n' for source in sources[:-1])
    command += [str(sources[-1]), "-x", "c++", "-", "-o", str(made)]
    done = subprocess.run(command, input=together, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"shared_service.cpp does not compile:\n{done.stderr[:2000]}")
    spec = importlib.util.spec_from_file_location(LOOP, made)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        load=(0.0, 0.5, 0.8, 1.0),
        load_ratio=(1.0, 1.1, 1.5, 3.0),
        core_node=[core // (cores // nodes) for core in range(cores)],
        core_threads=[1] * cores,
        data_ps=[2130] * len(pairs),
        request_ps=[270] * len(pairs),
        entering=entering,
        predecessor=before,
        vertices=nodes,
    )


def tasks(nodes: int, stolen: float, seed: int = 1) -> Tasks:
    """Half scans, half materialisations, which write what they find to their own node."""
    random = np.random.Generator(np.random.Philox(seed))
    demands: list[PieceDemand] = []
    number: dict[PieceDemand, int] = {}
    lists = []
    for node in range(nodes):
        found = []
        for _ in range(2003):
            home = int(random.integers(nodes)) if random.uniform() < stolen else node
            if random.uniform() < 0.5:
                lines = float(random.uniform(3_000, 30_000))
                demand = PieceDemand(2 * NS, 0.0, (MemoryUse(home, 1.0, slots=16.0),))
            else:
                lines = float(random.uniform(1_000, 10_000))
                memory = MemoryUse(home, 1.0, slots=10.0), MemoryUse(node, 0.0, 0.25)
                demand = PieceDemand(20 * NS, 0.0, memory)
            if demand not in number:
                number[demand] = len(demands)
                demands.append(demand)
            found.append((lines, number[demand]))
        lists.append(found)
    return demands, lists


class ServedPieces:
    """A service on SimPy's clock: a piece's end is an event."""

    def __init__(self, env: simpy.Environment, service: SharedService) -> None:
        self.env, self.service = env, service
        self.ends: list[simpy.Event] = []
        self.planned = 0

    def start(self, core: int, demand: int, units: float) -> simpy.Event:
        """A piece begins: its end."""
        end = self.env.event()
        self.ends.append(end)
        self.service.start(int(self.env.now), core, demand, units, len(self.ends) - 1)
        self._plan()
        return end

    def _plan(self) -> None:
        self.planned += 1
        plan, due_ps = self.planned, self.service.next_change()

        def due(_: object) -> None:
            if plan == self.planned:
                while (job := self.service.finish(int(self.env.now))) is not None:
                    self.ends[job].succeed()
                self._plan()

        if due_ps < NEVER:
            self.env.timeout(due_ps - int(self.env.now)).callbacks.append(due)


def reference_rate(place: ServiceMachine, work: Tasks, until_ps: int) -> float:
    """Tasks a second of the same loop in Python."""
    env = simpy.Environment()
    service = SharedService(place)
    pieces = ServedPieces(env, service)
    numbers = [service.demand(demand) for demand in work[0]]
    taken = [0] * len(work[1])
    done = 0

    def core(at: int, node: int) -> Any:
        nonlocal done
        while True:
            units, demand = work[1][node][taken[node] % len(work[1][node])]
            taken[node] += 1
            yield pieces.start(at, numbers[demand], units)
            done += 1

    for at, node in enumerate(place.core_node):
        env.process(core(at, node))
    start = time.process_time()
    env.run(until=until_ps)
    return done / (time.process_time() - start)


def one_by_one_rate(place: ServiceMachine, work: Tasks) -> float:
    """Shares of one task a core, found again, per second."""
    nodes = len(place.read_ps)
    rows, resource, time_ps, cap = [0], [], [], []
    for core, node in enumerate(place.core_node):
        demand = work[0][work[1][node][core][1]]
        held = 0.0
        for home, read, written, slots in demand.memory:
            resource.append(home)
            time_ps.append(read * place.read_ps[home] + written * place.write_ps[home])
            held += read * place.latency_ps[node * nodes + home] / slots
            if home != node:
                for link, each in (
                    (place.entering[home * nodes + node], place.data_ps),
                    (place.entering[node * nodes + home], place.request_ps),
                ):
                    resource.append(nodes + link)
                    time_ps.append(read * each[link])
        rows.append(len(resource))
        cap.append(1 / max(demand.instructions_ps, held))
    problem = (
        np.ones(nodes + len(place.data_ps)),
        np.array(rows),
        np.array(resource),
        np.array(time_ps),
        np.array(cap),
        np.ones(len(cap)),
    )
    times, start = 0, time.process_time()
    while (spent := time.process_time() - start) < 0.2:
        solve_max_min(*problem)
        times += 1
    return times / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, nargs="+", default=[60, 576])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--simulated-us", type=int, default=100_000)
    options = parser.parse_args()
    until_ps = int(options.simulated_us * US)
    with tempfile.TemporaryDirectory() as name:
        play = compiled(Path(name)).play_closed_tasks
    for cores, nodes in zip(options.cores, options.nodes, strict=True):
        for mix, stolen in STOLEN.items():
            place, work = machine(nodes, cores), tasks(nodes, stolen)
            demands = [tuple(demand)[:3] for demand in work[0]]
            start = time.process_time()
            done = play(place, demands, work[1], until_ps)
            rate = done / (time.process_time() - start)
            name = f"shared_service/tasks_{cores}_cores_{mix}"
            print(f"{name}: {done} tasks ended", file=sys.stderr)
            asked = ASKED.get(cores) if mix == "stolen_10" else None
            rows = [(name, rate, f"at least {asked:g}" if asked else None, asked)]
            other = reference_rate(place, work, max(until_ps // 100, int(1_000 * US)))
            rows.append((f"{name}/over_reference", rate, f"reference, {other:.0f}", other))
            other = one_by_one_rate(place, work)
            rows.append((f"{name}/over_one_by_one", rate, f"one by one, {other:.0f}", other))
            for row, value, versus, than in rows:
                ratio = round(value / than, 2) if than else None
                line = {"name": row, "value": round(value), "unit": "tasks/s"}
                print(json.dumps(line | {"versus": versus, "ratio": ratio}), flush=True)


if __name__ == "__main__":
    main()

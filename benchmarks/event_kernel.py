"""Events per CPU-second of the compiled kernel against SimPy: the hold model, and M/M/1.

Hold model: so many processes, each of which waits an exponential time, again and again (Vaucher and
Duval, A comparison of simulation event list algorithms, CACM 1975). M/M/1 at utilisation 0.9:
customers through a server, with quantiles of how long they stay. Both are models of a few lines on
the kernel's headers (``event_kernel.cpp``, compiled when this runs). SimPy does the same work in
the same run, as its documentation does it, with as many draws, from Python's own generator. CPU
time, the best of several. One JSON object a line goes to standard output, the hash of the kernel's
result to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import simpy

from numatwin.sim.kernel.streams import stream_key

HERE = Path(__file__).parent
KERNEL = HERE.parent / "sim" / "kernel"
UTILISATION = 0.9
SEED = 1

SimPyProcess = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Run:
    """How many events or customers in so many CPU seconds, and what tells two results apart."""

    done: int
    cpu_s: float
    result: str

    @property
    def rate(self) -> float:
        """Events or customers per CPU-second."""
        return self.done / self.cpu_s


def best_of(repeat: int, run: Callable[[], Run]) -> Run:
    """The quickest of several runs: what else the machine does can only slow a run down."""
    return max((run() for _ in range(repeat)), key=lambda run: run.rate)


def simpy_hold(processes: int, events: int) -> Run:
    draws = random.Random(SEED)

    def process(env: simpy.Environment) -> SimPyProcess:
        while True:
            yield env.timeout(draws.expovariate(1.0))

    env = simpy.Environment()
    for _ in range(processes):
        env.process(process(env))
    env.run(until=1.0)  # all have started
    start = time.process_time()
    env.run(until=1.0 + events / processes)
    # Counting would slow SimPy down: there are so many events but for 1 / sqrt(events), at random.
    return Run(events, time.process_time() - start, "")


def simpy_mm1(customers: int) -> Run:
    draws = random.Random(SEED)
    sojourns: list[float] = []

    def customer(env: simpy.Environment, server: simpy.Resource) -> SimPyProcess:
        arrived = env.now
        with server.request() as turn:
            yield turn
            yield env.timeout(draws.expovariate(1.0 / UTILISATION))
        sojourns.append(env.now - arrived)

    def source(env: simpy.Environment, server: simpy.Resource) -> SimPyProcess:
        while True:
            yield env.timeout(draws.expovariate(1.0))
            env.process(customer(env, server))

    env = simpy.Environment()
    env.process(source(env, simpy.Resource(env)))
    start = time.process_time()
    env.run(until=customers)
    return Run(len(sojourns), time.process_time() - start, str(len(sojourns)))


class Program:
    """The models on the kernel's headers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "event_kernel"
        source = HERE / "event_kernel.cpp"
        flags = ["-std=c++20", "-O3", "-ffp-contract=off", f"-I{KERNEL.parent}"]
        command = [os.environ.get("CXX", "g++"), *flags, str(source), "-o", str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{source.name} does not compile:\n{done.stderr[:2000]}")

    def run(self, *arguments: object) -> Run:
        command = [str(self.path), *map(str, arguments)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True)
        cpu_s, done, *result = printed.stdout.split()
        return Run(int(done), float(cpu_s), " ".join([done, *result]))

    def hold(self, processes: int, events: int, repeat: int) -> Run:
        return self.run(repeat, "hold", processes, events, *stream_key(SEED, 0, "hold"))

    def mm1(self, customers: int, repeat: int) -> Run:
        keys = stream_key(SEED, 0, "arrivals") + stream_key(SEED, 0, "service")
        return self.run(repeat, "mm1", customers, UTILISATION, *keys)


def report(name: str, ours: Run, unit: str, theirs: Run) -> None:
    digest = hashlib.sha256(ours.result.encode()).hexdigest()[:16]
    print(f"{name}: result {digest}", file=sys.stderr)
    line = {
        "name": name,
        "value": round(ours.rate),
        "unit": f"{unit}/CPU-s",
        "versus": f"SimPy {simpy.__version__}: {theirs.rate:.0f}/CPU-s",
        "ratio": round(ours.rate / theirs.rate, 2),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[10, 10_000])
    parser.add_argument("--events", type=int, default=3_000_000, help="of the kernel")
    parser.add_argument("--simpy-events", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        program = Program(Path(name))
        for processes in options.processes:
            theirs = best_of(options.repeat, partial(simpy_hold, processes, options.simpy_events))
            ours = program.hold(processes, options.events, options.repeat)
            report(f"event_kernel/hold/{processes}_processes", ours, "events", theirs)
        ours = program.mm1(options.events // 2, options.repeat)
    theirs = best_of(options.repeat, partial(simpy_mm1, options.simpy_events // 5))
    report("event_kernel/mm1", ours, "customers", theirs)


if __name__ == "__main__":
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise SystemExit("event_kernel: needs a C++20 compiler (CXX, or g++)")
    main()

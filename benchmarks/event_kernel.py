"""Events per CPU-second of the compiled kernel against SimPy: the hold model, and M/M/1.

Hold model: so many processes, each of which waits an exponential time, again and again (Vaucher and
Duval, A comparison of simulation event list algorithms, CACM 1975). It is played by a model of a
few lines on the kernel's headers (``event_kernel_hold.cpp``, compiled when this runs), and by the
kernel's QueueingNetwork, which also gathers its statistics. M/M/1 at utilisation 0.9: customers
through a QueueingNetwork. SimPy does the same work in the same run, as its documentation does it,
with as many draws, from Python's own generator. CPU time, the best of several. One JSON object a
line goes to standard output, the hash of the kernel's result to standard error.
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

from numatwin.sim._kernel import Durations, QueueingNetwork
from numatwin.sim.kernel.streams import stream, stream_key

HERE = Path(__file__).parent
KERNEL = HERE.parent / "sim" / "kernel"
MEAN_PS = 1_000_000
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


def network_hold(processes: int, events: int) -> Run:
    network = QueueingNetwork(SEED)
    delay = network.add_delay(Durations.exponential(MEAN_PS), stream(SEED, 0, "hold"))
    network.set_route(delay, [1.0], stream(SEED, 0, "route"))
    network.add_customers(delay, processes)
    start = time.process_time()
    network.run(round(events / processes * MEAN_PS))
    cpu_s = time.process_time() - start
    return Run(network.events, cpu_s, f"{network.events} {network.sojourn_ps(delay).mean}")


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


def kernel_mm1(customers: int) -> Run:
    network = QueueingNetwork(SEED)
    service = Durations.exponential(UTILISATION * MEAN_PS)
    queue = network.add_fifo(service, stream(SEED, 0, "service"))
    network.add_source(queue, Durations.exponential(MEAN_PS), stream(SEED, 0, "arrivals"))
    start = time.process_time()
    network.run(customers * MEAN_PS)
    cpu_s = time.process_time() - start
    sojourn = network.response_ps()
    return Run(sojourn.count, cpu_s, f"{sojourn.count} {sojourn.mean} {sojourn.quantile(0.99)}")


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


class HoldProgram:
    """The model on the kernel's headers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "event_kernel_hold"
        source = HERE / "event_kernel_hold.cpp"
        flags = ["-std=c++20", "-O3", "-ffp-contract=off", f"-I{KERNEL.parent}"]
        command = [os.environ.get("CXX", "g++"), *flags, str(source), "-o", str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{source.name} does not compile:\n{done.stderr[:2000]}")

    def run(self, processes: int, events: int, repeat: int) -> Run:
        arguments = map(str, [processes, events, repeat, *stream_key(SEED, 0, "hold")])
        command = [str(self.path), *arguments]
        printed = subprocess.run(command, check=True, capture_output=True, text=True)
        cpu_s, done, *result = printed.stdout.split()
        return Run(int(done), float(cpu_s), " ".join([done, *result]))


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
        program = HoldProgram(Path(name))
        for processes in options.processes:
            theirs = best_of(options.repeat, partial(simpy_hold, processes, options.simpy_events))
            case = f"event_kernel/hold/{processes}_processes"
            model = program.run(processes, options.events, options.repeat)
            report(case, model, "events", theirs)
            network = best_of(options.repeat, partial(network_hold, processes, options.events))
            report(f"{case}/with_statistics", network, "events", theirs)
    ours = best_of(options.repeat, partial(kernel_mm1, options.events // 2))
    theirs = best_of(options.repeat, partial(simpy_mm1, options.simpy_events // 5))
    report("event_kernel/mm1", ours, "customers", theirs)


if __name__ == "__main__":
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise SystemExit("event_kernel: needs a C++20 compiler (CXX, or g++)")
    main()

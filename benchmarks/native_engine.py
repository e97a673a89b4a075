"""The native engine against its own baseline, the shared index, and what routing costs.

Two threads, uniform keys of a dense domain; ERIS (partitioned, commands travel) and the shared
index (any thread, atomic updates) are in one process and take turns, so that what else the host
does meets both; the medians of the ratios are told. Rates are per second of wall time; the cost of
an operation in CPU time, which a busy host distorts less, stands beside them. The baseline
overlaps the misses of a batch just as ERIS does. One JSON object a line goes to standard output,
the hash of the answers of a fixed sequence of commands to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from numatwin.engine_native._engine import Engine, EngineSetup, KeyDraws
from numatwin.engine_native.systems.eris.setup import totals_of

PAUSE_S = 0.02  # for buffers to fill, or to empty


def engine(placement: str, kind: str, keys: int, threads: int) -> Engine:
    """One of the two, loaded and started; its clients pause."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus = [allowed[k % len(allowed)] for k in range(threads)]
    setup = EngineSetup([0] * threads, cpus, [-1])
    setup.placement = placement
    setup.add_index("index", keys)
    setup.add_operation(kind, kind, 0)
    setup.set_phase([1.0], [KeyDraws([0, keys], [1.0])])
    made = Engine(setup)
    made.load()
    made.start()
    made.set_making(False)
    return made


@dataclass(frozen=True)
class Run:
    """Operations per second of wall time, and nanoseconds of CPU time each."""

    rate: float
    cpu_ns: float


def run(one: Engine, seconds: float) -> Run:
    """What an engine does in so long, while the other one pauses."""
    one.set_making(True)
    time.sleep(PAUSE_S)
    before, wall, cpu = totals_of(one)["done"].sum(), time.perf_counter(), time.process_time()
    time.sleep(seconds)
    done = int(totals_of(one)["done"].sum() - before)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    one.set_making(False)
    time.sleep(PAUSE_S)
    return Run(done / wall, cpu / max(done, 1) * 1e9)


def compared(
    kind: str, keys: int, threads: int, seconds: float, rounds: int
) -> Iterator[dict[str, str | float]]:
    """The lines of one kind of operation."""
    eris, shared = (engine(place, kind, keys, threads) for place in ("partitioned", "interleaved"))
    pairs = [(run(eris, seconds), run(shared, seconds)) for _ in range(rounds)]
    eris.stop()  # raises where a command was lost or done twice
    shared.stop()
    name = f"native_engine/{kind}/{keys}_keys"
    yield {
        "name": name,
        "value": statistics.median(a.rate for a, _ in pairs),
        "unit": "1/s",
        "versus": "shared index",
        "ratio": statistics.median(a.rate / b.rate for a, b in pairs),
    }
    yield {
        "name": f"{name}/cpu_time",
        "value": statistics.median(a.cpu_ns for a, _ in pairs),
        "unit": "ns",
        "versus": "shared index, its time over the engine's",
        "ratio": statistics.median(b.cpu_ns / a.cpu_ns for a, b in pairs),
    }


def answers_hash(threads: int) -> str:
    """Of a fixed sequence of commands."""
    setup = EngineSetup([0] * threads, [-1] * threads, [-1])
    setup.add_index("index", 1_000)
    made = Engine(setup)
    made.load()
    made.start()
    draws = np.random.default_rng(1)
    kinds = draws.integers(0, 2, 5_000)
    keys, values = draws.integers(0, 2_000, (2, 5_000))
    answers = made.execute(kinds, np.zeros(5_000), keys, values)
    made.stop()
    return hashlib.sha256(b"".join(part.tobytes() for part in answers)).hexdigest()


def main() -> None:
    """Prints the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="+", default=[10**8, 10**6])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.4, help="of each turn")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    for keys in arguments.keys:
        for kind in ("lookup", "upsert"):
            for line in compared(
                kind, keys, arguments.threads, arguments.seconds, arguments.rounds
            ):
                print(json.dumps(line), flush=True)
    print(f"result: {answers_hash(arguments.threads)}", file=sys.stderr)


if __name__ == "__main__":
    main()

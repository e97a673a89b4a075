"""Look-ups and upserts of larger and larger values: predicted ratios against the native engine's.

One worker, a dense index; an engine for each size of values, all in one process, which take turns,
so that what else the host does meets them alike. A ratio is operations per second of processor time
with 8 B over that with the size; its interval (95%, Student's t on logarithms) is of the turns.
Predictions are of the flow plane for ``--machine``, a file that ``numatwin machine measure`` wrote
on this host. The native engine stores values above 8 B out of line; the prediction for values that
lie in their entries stands beside it. One JSON object a line; ``--table``: Markdown, for
docs/model/one-host.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from scipy.stats import t as student

from numatwin import Scenario, load_scenario, run_scenario
from numatwin.engine_native._engine import Engine
from numatwin.engine_native.host_mapping import HostMapping
from numatwin.engine_native.systems.eris.setup import engine_setup, totals_of

WORKLOADS = {"lookup": "eris-lookup-1e9", "upsert": "eris-upsert-1e9"}
SMALL = 8
PAUSE_S = 0.02  # for buffers to fill, or to empty


def scenario_of(machine: str, kind: str, keys: int, size: int, inline: int = SMALL) -> Scenario:
    """One worker's."""
    settings = [
        *("system.nodes=1", "system.threads=1", f"system.inline_values={inline} B"),
        *(f"workload.objects.index.keys={keys}", f"workload.objects.index.value_size={size} B"),
    ]
    return load_scenario(
        "host-lookup",
        machine=machine,
        workload=WORKLOADS[kind],
        plane="flow",
        scale=1.0,
        settings=settings,
    )


def predicted(machine: str, kind: str, keys: int, size: int, inline: int = SMALL) -> float:
    """Operations per second."""
    return run_scenario(scenario_of(machine, kind, keys, size, inline)).throughput[kind]


def engine(machine: str, kind: str, keys: int, size: int) -> Engine:
    """Loaded and started; its clients pause."""
    cpu = min(os.sched_getaffinity(0))
    mapping = HostMapping(cpu=(cpu,), host_node=(-1,), warnings=())
    made = Engine(engine_setup(scenario_of(machine, kind, keys, size), [0], mapping))
    made.load()
    made.start()
    made.set_making(False)
    return made


def rate(one: Engine, seconds: float) -> float:
    """Operations per second of processor time, while the other engines pause."""
    one.set_making(True)
    time.sleep(PAUSE_S)
    before, cpu_s = totals_of(one)["done"].sum(), time.process_time()
    time.sleep(seconds)
    done, cpu_s = totals_of(one)["done"].sum() - before, time.process_time() - cpu_s
    one.set_making(False)
    time.sleep(PAUSE_S)
    return float(done) / cpu_s


@dataclass(frozen=True)
class Interval:
    """The geometric mean of ratios, and where it lies with 95%."""

    mean: float
    low: float
    high: float


def interval_of(ratios: Sequence[float]) -> Interval:
    """Of at least two ratios."""
    logs = [log(ratio) for ratio in ratios]
    mean, spread = statistics.mean(logs), statistics.stdev(logs) / sqrt(len(logs))
    half = float(student.ppf(0.975, len(logs) - 1)) * spread
    return Interval(exp(mean), exp(mean - half), exp(mean + half))


@dataclass(frozen=True)
class Row:
    """One kind of operation and size. ``ns``: of processor time, of an operation for real."""

    kind: str
    size: int
    ns: float
    native: Interval
    predicted: float
    inline: float


def rows(
    machine: str, keys: int, sizes: Sequence[int], seconds: float, rounds: int
) -> Iterator[Row]:
    """A row for each size above the smallest."""
    for kind in WORKLOADS:
        engines = {size: engine(machine, kind, keys, size) for size in (SMALL, *sizes)}
        turns = [{size: rate(one, seconds) for size, one in engines.items()} for _ in range(rounds)]
        for one in engines.values():
            one.stop()  # raises where a command was lost or done twice
        small = predicted(machine, kind, keys, SMALL)
        for size in sizes:
            yield Row(
                kind,
                size,
                1e9 / statistics.median(turn[size] for turn in turns),
                interval_of([turn[SMALL] / turn[size] for turn in turns]),
                small / predicted(machine, kind, keys, size),
                small / predicted(machine, kind, keys, size, inline=size),
            )


def main() -> None:
    """Prints the lines, or the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="zen5-2c", help="measured on this host")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256, 1000])
    parser.add_argument("--seconds", type=float, default=0.4, help="of each turn")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--table", action="store_true", help="Markdown")
    of = parser.parse_args()
    if of.table:
        print("| values | operation | native (95%) | predicted | error | predicted in line |")
        print("| --- | --- | --- | --- | --- | --- |")
    for row in rows(of.machine, of.keys, of.sizes, of.seconds, of.rounds):
        native = row.native
        error = row.predicted / native.mean - 1.0
        if of.table:
            print(
                f"| {row.size:,} B | {row.kind} | {native.mean:.2f} ({native.low:.2f} to "
                f"{native.high:.2f}) | {row.predicted:.2f} | {error:+.0%} | {row.inline:.2f} |",
                flush=True,
            )
            continue
        line = {
            "name": f"native_values/{row.kind}/{row.size}_B",
            "value": row.ns,
            "unit": "ns",
            "versus": "8 B, its rate over this; low, high, and as predicted",
            "ratio": native.mean,
            "interval": [native.low, native.high],
            "predicted": row.predicted,
            "error": error,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

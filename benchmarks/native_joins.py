"""RDMA radix join between processes over shared memory against the same join in one process.

Both play ``--rounds`` joins of ``--inner`` with ``--outer`` tuples of 16 bytes on two nodes, by
turns ``--repeat`` times: as processes that write into each other's memory, and as threads of one
process over plain memory. Tuples of both tables per second of the busiest node's processor time,
without waiting for the other one: the median of all rounds (time on the wall depends on who else
has the processors). Then the other operators over shared memory and over TCP, against threads.

``--seconds`` is for all of it, on a loaded host too: operators get equal parts, and play in these
as many turns as fit, one of each transport at least. A run that does not end in its operator's part
is stopped and has no figure (its value is null).

One JSON object a line goes to standard output; the rows of each result to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

import numpy as np

from numatwin.engine_native import _engine
from numatwin.engine_native.engine_process import EngineTooLong
from numatwin.engine_native.systems.joins.cluster import (
    JOINS,
    OPERATORS,
    PHASES,
    JoinRounds,
    operator_streams,
    run_operator,
)

NODES, SEED = 2, 1
TRANSPORTS = ("threads", "shm", "tcp")


def work_s(operator: str, found: JoinRounds) -> list[float]:
    """By round: the busiest node's processor time, waiting left out."""
    own = [k for k, phase in enumerate(PHASES[operator]) if phase != "wait for others"]
    return [max(sum(node.cpu_s[k] for k in own) for node in nodes) for nodes in found.rounds]


def by_turns(settings: dict[str, Any], repeat: int, end_s: float) -> dict[str, float | None]:
    """Tuples per second by transport; None where no run ended before ``end_s``."""
    operator: str = settings["name"]
    seconds: dict[str, list[float]] = {transport: [] for transport in TRANSPORTS}
    rows: set[int] = set()
    longest_s = dict.fromkeys(TRANSPORTS, 0.0)
    for turn in range(repeat):
        for transport in TRANSPORTS:
            began_s = time.monotonic()
            left_s = end_s - began_s
            if turn > 0 and left_s < longest_s[transport]:
                continue
            try:
                found = run_operator(settings, transport, timeout_s=max(left_s, 1.0))
            except EngineTooLong as stopped:
                print(f"{operator}/{transport}: {stopped}", file=sys.stderr)
                longest_s[transport] = np.inf
                continue
            # The first round meets pages and caches that nobody has used.
            seconds[transport] += work_s(operator, found)[1:]
            rows |= {sum(node.rows for node in nodes) for nodes in found.rounds}
            longest_s[transport] = max(longest_s[transport], time.monotonic() - began_s)
    (rows_each,) = rows
    print(f"{operator}: {rows_each} rows", file=sys.stderr)
    joins = operator in JOINS
    tuples = settings["outer"] + (settings["inner"] if joins else 0)
    return {name: tuples / float(np.median(of)) if of else None for name, of in seconds.items()}


def line_of(operator: str, transport: str, found: dict[str, float | None]) -> dict[str, Any]:
    """The figure of a transport as it is printed."""
    value, threads = found[transport], found["threads"]
    assert threads is not None  # threads of this process are never stopped
    return {
        "name": f"native_joins/{operator}/{transport}",
        "value": None if value is None else round(value / 1e6, 2),
        "unit": "10^6 tuples/s",
        "versus": f"threads of one process: {threads / 1e6:.2f}",
        "ratio": None if value is None else round(value / threads, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inner", type=int, default=1_000_000)
    parser.add_argument("--outer", type=int, default=4_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=256)
    parser.add_argument("--buffer-bytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--operator", action="append", choices=OPERATORS, help="default: all")
    parser.add_argument("--seconds", type=float, default=240.0)
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    settings = {
        "nodes": NODES,
        "inner": options.inner,
        "outer": options.outer,
        "groups": options.groups,
        "partitions": options.partitions,
        "buffer_bytes": options.buffer_bytes,
        "rounds": options.rounds,
        "streams": operator_streams(SEED, 0, NODES),
        "cpus": cpus[:NODES] if len(cpus) >= NODES else [],
    }
    end_s = time.monotonic() + options.seconds
    chosen = options.operator or OPERATORS
    for number, operator in enumerate(chosen):
        began_s = time.monotonic()
        part_s = max(end_s - began_s, 0.0) / (len(chosen) - number)
        found = by_turns(settings | {"name": operator}, options.repeat, began_s + part_s)
        for transport in ("shm", "tcp"):
            print(json.dumps(line_of(operator, transport, found)), flush=True)


if __name__ == "__main__":
    if not _engine.HAS_UCX:
        raise SystemExit("native_joins: needs libucx-dev when the engine is built")
    main()

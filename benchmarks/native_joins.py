"""RDMA radix join between processes over shared memory against the same join in one process.

Both play ``--rounds`` joins of ``--inner`` with ``--outer`` tuples of 16 bytes on two nodes, by
turns ``--repeat`` times: as processes that write into each other's memory, and as threads of one
process over plain memory. Tuples of both tables per second of the busiest node's processor time,
without waiting for the other one: the median of all rounds (time on the wall depends on who else
has the processors). Then the other operators over shared memory and over TCP, against threads.

One JSON object a line goes to standard output; the rows of each result to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

import numpy as np

from numatwin.engine_native import _engine
from numatwin.engine_native.systems.joins.cluster import (
    JOINS,
    OPERATORS,
    PHASES,
    JoinRounds,
    operator_streams,
    run_operator,
)

NODES, SEED = 2, 1


def work_s(operator: str, found: JoinRounds) -> list[float]:
    """By round: the busiest node's processor time, waiting left out."""
    own = [k for k, phase in enumerate(PHASES[operator]) if phase != "wait for others"]
    return [max(sum(node.cpu_s[k] for k in own) for node in nodes) for nodes in found.rounds]


def by_turns(
    settings: dict[str, Any], transports: tuple[str, ...], repeat: int
) -> dict[str, float]:
    """Tuples per second by transport."""
    operator: str = settings["name"]
    seconds: dict[str, list[float]] = {transport: [] for transport in transports}
    rows: set[int] = set()
    for _ in range(repeat):
        for transport in transports:
            found = run_operator(settings, transport)
            # The first round meets pages and caches that nobody has used.
            seconds[transport] += work_s(operator, found)[1:]
            rows |= {sum(node.rows for node in nodes) for nodes in found.rounds}
    (rows_each,) = rows
    print(f"{operator}: {rows_each} rows", file=sys.stderr)
    joins = operator in JOINS
    tuples = settings["outer"] + (settings["inner"] if joins else 0)
    return {name: tuples / float(np.median(of)) for name, of in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inner", type=int, default=1_000_000)
    parser.add_argument("--outer", type=int, default=4_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=256)
    parser.add_argument("--buffer-bytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=3)
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
    for operator in OPERATORS:
        found = by_turns(settings | {"name": operator}, ("threads", "shm", "tcp"), options.repeat)
        for transport in ("shm", "tcp"):
            line = {
                "name": f"native_joins/{operator}/{transport}",
                "value": round(found[transport] / 1e6, 2),
                "unit": "10^6 tuples/s",
                "versus": f"threads of one process: {found['threads'] / 1e6:.2f}",
                "ratio": round(found[transport] / found["threads"], 3),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    if not _engine.HAS_UCX:
        raise SystemExit("native_joins: needs libucx-dev when the engine is built")
    main()

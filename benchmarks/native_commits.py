"""An RSI commit over shared memory against the sum of its parts.

One client, alone, updates three records of 1 KiB that a second process holds, as often as
``--commits``. A commit goes from the first CAS to the timestamp's bit; what comes before (snapshot,
reads, new blocks) is left out. In turn with each commit, on other records that were read before
likewise: its three CAS and three copies with nothing between, on the shared mapping (raw), and
through the fabric. A copy is done when others can see it, so the raw parts end with a fence, as the
commit ends with an atomic add. Means without the slowest twentieth and the clock's own time; the
median of ``--repeat`` such runs by their ratio. ``by_ucx``: the same where each request goes
through UCX's calls.

One JSON object a line goes to standard output, the hash of the records' stocks to standard error.
The ratio is that of the commit to the raw parts: at most 1.5 is asked for.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from numatwin.engine_native import _engine
from numatwin.engine_native.engine_process import EngineProcess
from numatwin.engine_native.transports import ucx_settings
from numatwin.sim.kernel.streams import stream_key

SEED = 1


def commit_costs(direct: bool, records: int, commits: int, repeat: int) -> dict[str, Any]:
    """The run of median ratio."""
    run = {
        "clients": 1,
        "nodes": 1,
        "storage": [0],
        "managers": [0],
        "timestamps": 0,
        "records": records,
        "inserts": 0,
        "snapshot_bytes": 8,
        "streams": [*stream_key(SEED, 0, "client 0 keys"), *stream_key(SEED, 0, "client 0 think")],
    } | ucx_settings("shm", direct=direct)

    def measure() -> dict[str, Any]:
        process = EngineProcess("measure_commit", run, (commits,))
        try:
            result: dict[str, Any] = process.result(300.0)
            return result
        finally:
            process.close()

    runs = [measure() for _ in range(repeat)]
    runs.sort(key=lambda one: one["commit_ns"] / (one["raw_ns"] or one["raw_fabric_ns"]))
    return runs[len(runs) // 2]


def report(name: str, cost: dict[str, Any], against: str, what: str) -> None:
    print(f"{name}: result {cost['hash']:016x}", file=sys.stderr)
    line = {
        "name": f"native_commits/{name}",
        "value": round(cost["commit_ns"], 1),
        "unit": "ns",
        "versus": f"{what}: {cost[against]:.1f} ns",
        "ratio": round(cost["commit_ns"] / cost[against], 2),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    amounts = (options.records, options.commits, options.repeat)
    direct = commit_costs(True, *amounts)
    report("commit", direct, "raw_ns", "raw CAS and copies")
    report("commit/against_fabric", direct, "raw_fabric_ns", "CAS and copies by the fabric")
    by_ucx = commit_costs(False, *amounts)
    report("commit/by_ucx", by_ucx, "raw_fabric_ns", "CAS and copies by UCX's calls")


if __name__ == "__main__":
    if not _engine.HAS_UCX:
        raise SystemExit("native_commits: needs libucx-dev when the engine is built")
    main()

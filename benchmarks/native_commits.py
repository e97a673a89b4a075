"""An RSI commit over shared memory against the sum of its parts.

One client, alone, updates three records of 1 KiB that a second process holds, as often as
``--commits`` (``native_commits.cpp``, compiled when this runs). A commit goes from the first CAS to
the timestamp's bit; what comes before (snapshot, reads, new blocks) is left out. In turn with each
commit, on other records that were read before likewise: its three CAS and three copies with nothing
between, on the shared mapping (raw), and through the fabric. A copy is done when others can see it,
so the raw parts end with a fence, as the commit ends with an atomic add. Means without the slowest
twentieth and the clock's own time; the median of ``--repeat`` such runs by their ratio. ``by_ucx``:
the same where each request goes through UCX's calls.

One JSON object a line goes to standard output, the hash of the records' stocks to standard error.
The ratio is that of the commit to the raw parts: at most 1.5 is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from numatwin.engine_native import _engine
from numatwin.sim.kernel.streams import stream_key

HERE = Path(__file__).parent
ENGINE = HERE.parent / "engine_native"
SEED = 1


class Cost(NamedTuple):
    """Means, see ``native_commits.cpp``; and a hash of what the records hold afterwards."""

    commit_ns: float
    raw_ns: float
    raw_fabric_ns: float
    result: str


def build(folder: Path) -> Path:
    """Compiles ``native_commits.cpp`` with the engine's commits, as the Python module is."""
    program, commits = folder / "native_commits", ENGINE / "systems" / "commits"
    sources = [
        HERE / "native_commits.cpp",
        *sorted(set(commits.glob("[!r]*.cpp")) - set(commits.glob("measure_*.cpp"))),
        commits / "roles.cpp",
        *sorted((ENGINE / "fabric").glob("*.cpp")),
        *sorted((ENGINE / "memory").glob("[!r]*.cpp")),  # not register.cpp, which binds Python
    ]
    flags = ["-std=c++20", "-O3", f"-I{ENGINE}", f"-I{ENGINE.parent / 'sim'}", "-DNUMATWIN_UCX"]
    command = [os.environ.get("CXX", "g++"), *flags, *map(str, sources), "-o", str(program)]
    done = subprocess.run([*command, "-lucp", "-lucs", "-lnuma"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"native_commits.cpp does not compile:\n{done.stderr[:2000]}")
    return program


def commit_costs(program: Path, direct: bool, records: int, commits: int, repeat: int) -> Cost:
    """The run of median ratio."""
    keys = [*stream_key(SEED, 0, "client 0 keys"), *stream_key(SEED, 0, "client 0 think")]
    words = ["direct" if direct else "by-ucx", *map(str, (records, commits, *keys))]

    def measure() -> Cost:
        done = subprocess.run([str(program), *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"native_commits: {done.stderr.strip()}")
        commit, raw, fabric, result = done.stdout.split()
        return Cost(float(commit), float(raw), float(fabric), result)

    runs = [measure() for _ in range(repeat)]
    runs.sort(key=lambda one: one.commit_ns / (one.raw_ns or one.raw_fabric_ns))
    return runs[len(runs) // 2]


def report(name: str, cost: Cost, against_ns: float, what: str) -> None:
    print(f"{name}: result {cost.result}", file=sys.stderr)
    line = {
        "name": f"native_commits/{name}",
        "value": round(cost.commit_ns, 1),
        "unit": "ns",
        "versus": f"{what}: {against_ns:.1f} ns",
        "ratio": round(cost.commit_ns / against_ns, 2),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    amounts = (options.records, options.commits, options.repeat)
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        direct = commit_costs(program, True, *amounts)
        report("commit", direct, direct.raw_ns, "raw CAS and copies")
        report(
            "commit/against_fabric", direct, direct.raw_fabric_ns, "CAS and copies by the fabric"
        )
        by_ucx = commit_costs(program, False, *amounts)
        report("commit/by_ucx", by_ucx, by_ucx.raw_fabric_ns, "CAS and copies by UCX's calls")


if __name__ == "__main__":
    if not _engine.HAS_UCX:
        raise SystemExit("native_commits: needs libucx-dev when the engine is built")
    main()

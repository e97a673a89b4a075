"""Figures of ``numatwin machine measure`` against what a user would run instead.

Latency of dependent loads against a plain loop as in lmbench's lat_mem_rd (``native_measure.cpp``,
compiled when this runs: memory from malloc, so in small pages, and no CPU chosen), and against
lat_mem_rd itself where it is installed; bandwidth of the triad against STREAM's loop (same file).
Both sides measure in turn; of each the median of its rounds. A ratio near 1 says that both tools
agree; small pages and a scheduler that moves threads make the plain loop slower, most where the
working set is large. One JSON object a line goes to standard output, the hash of the sizes that
were measured to standard error: the figures themselves differ from run to run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from numatwin.engine_native._engine import Block, Traffic, chase, run_team, stream
from numatwin.validate.measure.bench import Windows
from numatwin.validate.measure.layout import Layout, host_layout

HERE = Path(__file__).parent
WINDOW_NS = 1_000_000


def compiled(folder: Path) -> Path:
    path = folder / "native_measure"
    source = HERE / "native_measure.cpp"
    # -march=native: STREAM is built so.
    flags = ["-std=c++20", "-O3", "-march=native", "-pthread"]
    command = [os.environ.get("CXX", "g++"), *flags, str(source), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{source.name} does not compile:\n{done.stderr[:2000]}")
    return path


def plain(program: Path, *words: object) -> float:
    command = [str(program), *map(str, words)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def our_latency_ns(layout: Layout, size: int, seconds: float) -> float:
    block = Block(size, -1, True)
    lines = block.arrange_cycle(size, seed=1)
    cpu = layout.starts[0].cores[0]
    limit_ns = int(seconds * 1e9)
    done = run_team([(cpu, chase(block, 0, min(lines, 1 << 20)))], 50, WINDOW_NS, limit_ns)
    return Windows(*done).ns_each().median


def our_triad_Bps(layout: Layout, size: int, seconds: float) -> float:
    cores = layout.starts[0].cores
    block = Block(size, -1, True)
    share = size // len(cores) // 64 * 64
    members = [
        (cpu, stream(block, k * share, share, Traffic.TRIAD, 0)) for k, cpu in enumerate(cores)
    ]
    return Windows(*run_team(members, 50, WINDOW_NS, int(seconds * 1e9))).rates().median


def lmbench_ns(size: int) -> float | None:
    """What lat_mem_rd says for that working set, in random order; None where it is not there."""
    tool = shutil.which("lat_mem_rd") or shutil.which("/usr/lib/lmbench/bin/lat_mem_rd")
    if tool is None:
        return None
    command = [tool, "-t", "-N", "3", str(max(size >> 20, 1)), "64"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line.split() for line in printed.stderr.splitlines() if line[:1].isdigit()]
    nearest = min(rows, key=lambda row: abs(float(row[0]) * 2**20 - size))
    return float(nearest[1])


def report(name: str, value: float, unit: str, versus: str, other: float) -> None:
    line = {
        "name": f"native_measure/{name}",
        "value": float(f"{value:.4g}"),
        "unit": unit,
        "versus": f"{versus}: {other:.4g} {unit}",
        "ratio": round(value / other, 2),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[24 << 10, 256 << 10, 256 << 20])
    parser.add_argument("--triad-size", type=int, default=192 << 20)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    layout = host_layout()
    rounds, seconds = range(options.rounds), options.seconds
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for size in options.sizes:
            pairs = [
                (our_latency_ns(layout, size, seconds), plain(program, "latency", size, seconds))
                for _ in rounds
            ]
            ours, theirs = (median(column) for column in zip(*pairs, strict=True))
            name = f"latency/{size >> 10}_KiB"
            report(name, ours, "ns", "a plain loop, as lat_mem_rd's", theirs)
            if (lmbench := lmbench_ns(size)) is not None:
                report(name, ours, "ns", "lat_mem_rd", lmbench)
        threads, size = len(layout.starts[0].cores), options.triad_size
        pairs = [
            (
                our_triad_Bps(layout, size, seconds),
                plain(program, "triad", size, seconds, threads),
            )
            for _ in rounds
        ]
        ours, theirs = (median(column) for column in zip(*pairs, strict=True))
        report(f"triad/{threads}_threads", ours, "B/s", "STREAM's triad, best pass", theirs)
    told = f"{options.sizes} {options.triad_size} {threads}"
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    print(f"native_measure: result {digest}", file=sys.stderr)


if __name__ == "__main__":
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise SystemExit("native_measure: needs a C++20 compiler (CXX, or g++)")
    main()

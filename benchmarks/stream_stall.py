"""What a core waits for whose instructions for a stream take as long as its lines: ``stream_stall``
of a machine file (``sim/planes/rates.py``, ``overlapped``), on this host.

Passes over memory with more and more additions a line, which wait for each other, in turns with
passes over a cached array and passes without additions. One JSON object a line: the stall that
each gives, of those where both times are within a factor of two, and their median.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
FLAGS = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"]
NEAR = 2.0


def measured(mebibytes: int, rounds: int) -> Iterator[tuple[int, float, float, float]]:
    """Additions, and ns a line: in cache, in memory without additions, in memory with them."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "stream_stall"
        source = HERE / "stream_stall.cpp"
        compiler = os.environ.get("CXX", "g++")
        subprocess.run([compiler, *FLAGS, str(source), "-o", str(program)], check=True)
        command = [str(program), str(mebibytes), str(rounds)]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in found.splitlines():
        additions, *times = line.split()
        work, lines, both = map(float, times)
        yield int(additions), work, lines, both


def stall_of(work: float, lines: float, both: float) -> float:
    """The stall with which both take so long."""
    longer, shorter = max(work, lines), min(work, lines)
    part = shorter / longer
    return max(both / longer - 1.0, 0.0) * (1.0 + part + part * part) / (3.0 * part**3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise SystemExit("stream_stall: needs a C++20 compiler (CXX, or g++)")
    stalls = list[float]()
    for additions, work, lines, both in measured(options.mebibytes, options.rounds):
        stall = stall_of(work, lines, both)
        if 1.0 / NEAR <= work / lines <= NEAR:
            stalls.append(stall)
        name = f"{additions} additions: {work:.2f} ns, lines {lines:.2f} ns, both {both:.2f} ns"
        print(json.dumps(row(name, stall)))
    if stalls:
        print(json.dumps(row(f"median of {len(stalls)}", median(stalls))))


def row(name: str, stall: float) -> dict[str, object]:
    return {
        "name": f"stream_stall/{name}", "value": round(stall, 3), "unit": "1",
        "versus": "0 if all is hidden, 1 if nothing", "ratio": None,
    }  # fmt: skip


if __name__ == "__main__":
    main()

"""Instructions that ERIS's inner loops execute, counted by callgrind, against those of the model.

The counts of sim/systems/eris/costs.py come from here. They are those of a compiler and of
x86-64; where
callgrind or such a machine is missing nothing is measured, and the model's counts stand.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from numatwin.sim.systems.eris.costs import INSTRUCTIONS

HERE = Path(__file__).parent
SOURCE = HERE / "instruction_counts.cpp"
FLAGS = [
    "-std=c++20",
    # As an engineer would have built it in 2014: all machines of ERIS know SSE4.2, not all AVX.
    "-O3",
    "-march=x86-64",
    "-msse4.2",
    # A call of memcpy would take the widest vectors of the machine at hand.
    "-fno-tree-loop-distribute-patterns",
    # Distributions harden their compilers' output, each in its own way.
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-fcf-protection=none",
]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion"]
UNITS = 512


def compiler() -> str:
    return os.environ.get("CXX", "g++")


def missing() -> str | None:
    """What it would take to measure here, in a line; None where nothing is missing."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"counts x86-64 instructions, not those of {platform.machine()}"
    if shutil.which(compiler()) is None:
        return f"needs a C++20 compiler (CXX, or g++): '{compiler()}' is not installed"
    header = [compiler(), "-E", "-x", "c++", "-", "-o", os.devnull]
    include = "#include <valgrind/callgrind.h>\n"
    if (
        shutil.which("valgrind") is None
        or subprocess.run(header, input=include, capture_output=True, text=True).returncode
    ):
        return "needs valgrind, which is not installed (Debian, Ubuntu: apt-get install valgrind)"
    return None


def build(folder: Path) -> Path:
    """The compiled loops, in that folder."""
    program = folder / "instruction_counts"
    command = [compiler(), *FLAGS, *WARNINGS, str(SOURCE), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"instruction_counts.cpp does not compile:\n{done.stderr[:2000]}")
    return program


def per_unit(program: Path, units: int) -> dict[str, float]:
    """Instructions per unit of each case: the difference of its two sizes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no"]
        command += [f"--callgrind-out-file={out}", str(program), str(units)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"instruction_counts under callgrind failed:\n{done.stderr[:2000]}")
        sizes: dict[str, list[tuple[int, int]]] = {}
        for dump in Path(folder).glob("callgrind.out.*"):
            text = dump.read_text()
            case = re.search(r"^desc: Trigger: Client Request: (\S+) (\d+)$", text, re.M)
            total = re.search(r"^totals: (\d+)$", text, re.M)
            assert case, f"{dump} names no case"
            assert total, f"{dump} has no total"
            sizes.setdefault(case[1], []).append((int(case[2]), int(total[1])))
    counts = {}
    for name, runs in sizes.items():
        (few, low), (many, high) = sorted(runs)
        counts[name] = (high - low) / (many - few)
    return counts


def counts_of(case: dict[str, float]) -> dict[str, float]:
    """The model's counts, by the names of their fields, from those of the cases."""
    tree_level = case["lookup.4"] - case["lookup.3"]
    route_level = case["route.3"] - case["route.2"]
    flush_line = (case["flush.33"] - case["flush.1"]) / 32
    return {
        "tree_level": tree_level,
        "tree_entry": case["lookup.4"] - 4 * tree_level,
        "upsert_entry": case["upsert.4"] - 4 * tree_level,
        "upsert_shared": case["upsert_shared.4"] - 4 * tree_level,
        "generate": case["generate"],
        "route_level": route_level,
        "route_split": case["route.3"] - 3 * route_level,
        "flush_fixed": case["flush.1"] - flush_line,
        "flush_line": flush_line,
        "receive": case["receive"],
        "scan_line_sum": case["scan_sum.64"],
        "scan_line_sum_32": case["scan_sum.32"],
        "scan_line_bitmap": case["scan_bitmap.64"],
        "scan_line_bitmap_32": case["scan_bitmap.32"],
        "scan_position": (case["scan_positions.64"] - case["scan_bitmap.64"]) / 8,
        "flatten_key": case["flatten"],
        "rebuild_key": case["rebuild"],
        "link_level": case["link.4"] / 4,
    }


def measure(units: int = UNITS) -> dict[str, float]:
    """Each count of the model, measured here and now."""
    with tempfile.TemporaryDirectory() as folder:
        return counts_of(per_unit(build(Path(folder)), units))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=UNITS, help="the smaller of the two sizes")
    options = parser.parse_args()
    if options.units < 16:
        parser.error("--units: expected at least 16")
    if reason := missing():
        print(f"instruction_counts: skipped: {reason}", file=sys.stderr)
        return
    for name, value in measure(options.units).items():
        model = getattr(INSTRUCTIONS, name)
        line = {
            "name": f"instruction_counts/{name}",
            "value": round(value, 1),
            "unit": "instructions",
            "versus": f"sim/systems/eris/costs.py: {model:g}",
            "ratio": round(value / model, 3),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

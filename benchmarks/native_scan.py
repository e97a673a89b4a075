"""Column scans of the native engine against the fastest plain read of the same memory.

``native_scan.cpp`` (compiled when this runs) has a column for each thread, on its node, far larger
than the caches, and scans it: predicate to bitmap, count, sum, positions, and 8 predicates in one
pass. The plain read, as in STREAM's manner but of reads alone, loads every entry and or-s it to one
of several accumulators; of its versions (C++, AVX2, AVX-512, with prefetch) the fastest of the run
counts. All play the same slices in turn; figures are medians of CPU time, of plays for which the
thread had its core for itself. A bitmap is written to
memory of its own, a 64th of what is read. One JSON object a line goes to standard output, the hash
of the answers to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ENGINE = HERE.parent / "engine_native"


def build(folder: Path) -> Path:
    """The program; ends where it does not compile, as without libnuma's headers."""
    program = folder / "native_scan"
    sources = [
        HERE / "native_scan.cpp",
        ENGINE / "storage" / "column.cpp",
        *sorted((ENGINE / "storage").glob("scan*.cpp")),
        *sorted((ENGINE / "memory").glob("[!r]*.cpp")),  # not register.cpp, which binds Python
    ]
    flags = ["-std=c++20", "-O3", f"-I{ENGINE}", f"-I{ENGINE.parent / 'sim'}", "-pthread"]
    command = [os.environ.get("CXX", "g++"), *flags, *map(str, sources), "-o", str(program)]
    done = subprocess.run([*command, "-lnuma"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"native_scan.cpp does not compile:\n{done.stderr[:2000]}")
    return program


def main() -> None:
    """Prints a line for each read and each scan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=2048, help="of all threads' columns")
    parser.add_argument("--steps", type=int, default=128, help="slices that each contender plays")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        program = build(Path(name))
        arguments = [options.mebibytes, options.steps, *options.threads]
        command = [str(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"native_scan: {done.stderr.strip()}")
    answers = hashlib.sha256()
    for line in done.stdout.splitlines():
        kind, scan, threads, selectivity, rate, ratio, read, matches, check = line.split("\t")
        plural = "" if threads == "1" else "s"
        case = f"native_scan/{kind}/{scan}/{threads}_thread{plural}"
        if kind == "scan":
            case += f"/{100 * float(selectivity):g}%"
            answers.update(f"{case} {matches} {check}\n".encode())
        row = {
            "name": case,
            "value": float(rate),
            "unit": "GB/s",
            "versus": f"plain read, {read}",
            "ratio": round(float(ratio), 3),
        }
        print(json.dumps(row), flush=True)
    print(f"native_scan: result {answers.hexdigest()[:16]}", file=sys.stderr)


if __name__ == "__main__":
    main()

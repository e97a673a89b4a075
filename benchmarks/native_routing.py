"""Raw routing of 16-byte commands by the native engine, per core, against memcpy of the same bytes.

A stream of random keys and values, much larger than the caches, is routed to so many owners by
``native_routing.cpp``, compiled when this runs. ``routing``: what the sending core does, that is
finding owners, splitting, gathering, writing into incoming buffers. ``with_receiving``: the same
core takes everything out again too, and looks at every word. ``two_threads``: another core does
that; waiting for it counts. Against: one memcpy of the whole stream to a destination of the same
size, in turns in the same process; ``copy_into_cache`` and ``copy_in_cache`` say what memcpy makes
of a destination, or of both sides, in the cache. CPU time; medians of the turns of ``--runs`` runs.
The sweep over commands per buffer is figure 5 of the ERIS paper. One JSON object a line goes to
standard output, the hash of what arrived to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
ENGINE = HERE.parent / "engine_native"
USUAL_BUFFER = 128
ROUTING = (
    "incoming_buffers",
    "node_search",
    "outgoing_buffers",
    "partition_table",
    "rank_search",
)
COLUMNS = ("routing", "with_receiving", "memcpy", "copy_into_cache", "copy_in_cache")


@dataclass(frozen=True)
class Turns:
    """Bytes a second of each turn, by column, and a sum of what arrived."""

    columns: dict[str, list[float]]
    result: str

    def rate_Bps(self, column: str) -> float:
        return median(self.columns[column])

    def ratio(self, column: str) -> float:
        pairs = zip(self.columns[column], self.columns["memcpy"], strict=True)
        return median(ours / copied for ours, copied in pairs)


class Program:
    """The C++ side, compiled as the Python module is."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.runs = runs
        self.path = folder / "native_routing"
        routing = ENGINE / "systems" / "eris"
        sources = [HERE / "native_routing.cpp", *(routing / f"{name}.cpp" for name in ROUTING)]
        flags = ["-std=c++20", "-O3", "-pthread", f"-I{ENGINE}"]
        compiler = os.environ.get("CXX", "g++")
        command = [compiler, *flags, *map(str, sources), "-o", str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"native_routing.cpp does not compile:\n{done.stderr[:2000]}")

    def run(self, owners: int, per_buffer: int, commands: int, repeat: int, threads: int) -> Turns:
        """The turns of all runs."""
        arguments = [str(number) for number in (owners, per_buffer, commands, repeat, threads)]
        kept = [self.run_once(arguments) for _ in range(self.runs)]
        columns = {name: [rate for one in kept for rate in one.columns[name]] for name in COLUMNS}
        return Turns(columns, kept[0].result)

    def run_once(self, arguments: list[str]) -> Turns:
        done = subprocess.run([str(self.path), *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"native_routing: {done.stderr.strip()}")
        *lines, result = done.stdout.splitlines()
        columns = zip(*(map(float, line.split()) for line in lines), strict=True)
        return Turns(
            {name: list(column) for name, column in zip(COLUMNS, columns, strict=True)}, result
        )


def report(name: str, turns: Turns, column: str) -> None:
    line = {
        "name": f"native_routing/{name}",
        "value": round(turns.rate_Bps(column) / 16),
        "unit": "commands/s and core",
        "versus": f"memcpy: {turns.rate_Bps('memcpy') / 16:.0f} times 16 B/s",
        "ratio": round(turns.ratio(column), 3),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, nargs="+", default=[2, 8, 64])
    parser.add_argument("--buffers", type=int, nargs="+", default=[4**i for i in range(7)])
    parser.add_argument("--commands", type=int, default=12_000_000, help="in the stream")
    parser.add_argument("--repeat", type=int, default=5, help="turns of a run")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder), options.runs)
        for owners in options.owners:
            case = f"{owners}_owners"
            turns = program.run(owners, USUAL_BUFFER, options.commands, options.repeat, 1)
            print(f"native_routing/{case}: result {turns.result}", file=sys.stderr)
            for column in COLUMNS:
                if column != "memcpy":
                    report(f"{case}/{column}", turns, column)
            turns = program.run(owners, USUAL_BUFFER, options.commands, options.repeat, 2)
            print(f"native_routing/{case}/two_threads: result {turns.result}", file=sys.stderr)
            report(f"{case}/two_threads", turns, "routing")
        owners = options.owners[min(1, len(options.owners) - 1)]
        for per_buffer in options.buffers:
            turns = program.run(owners, per_buffer, options.commands, options.repeat, 1)
            report(f"{owners}_owners/routing/{per_buffer}_per_buffer", turns, "routing")


if __name__ == "__main__":
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise SystemExit("native_routing: needs a C++20 compiler (CXX, or g++)")
    main()

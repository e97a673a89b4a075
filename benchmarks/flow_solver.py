"""Flow completions per second on a 64-node hypercube: ClassSharing, a full re-solve, SimGrid.

A closed loop: a window of flows runs; each that ends is followed at once by the next of a list of
random pairs (e-cube routes, a link in each direction) and random sizes. ClassSharing keeps shares
up to date, as it does for pieces of work in event planes. All contenders play the same list in the
same run; their completion times are compared. SimGrid takes part where Debian's
libsimgrid-dev is installed. One JSON object a line goes to standard output, the hash of the result
to standard error.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
KERNEL = HERE.parent / "sim" / "kernel"
DIMENSIONS = 6
NODES = 2**DIMENSIONS
LINK_BPS = 1e9
SIZE_BYTES = (5e8, 15e8)
# The loop is chaotic: a difference of one rounding grows about tenfold in ten seconds of virtual
# time, in every solver. So times are compared over the first flows only, this many a place.
COMPARED_PER_PLACE = 20
TOLERANCE = 1e-6


@dataclass(frozen=True)
class FlowList:
    """Routes in compressed rows, as solve_max_min takes them; one entry a flow otherwise."""

    capacity: NDArray[np.float64]
    row_ptr: NDArray[np.int64]
    resource: NDArray[np.int64]
    volume: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]

    def write(self, path: Path) -> None:
        """The file that flow_solver_list.hpp reads."""
        counts = [len(self.capacity), len(self.volume), len(self.resource), NODES]
        with path.open("wb") as file:
            file.write(np.array(counts, np.int64).tobytes())
            for column in (
                self.capacity,
                self.row_ptr,
                self.resource,
                self.volume,
                self.source,
                self.target,
            ):
                file.write(column.tobytes())


@dataclass(frozen=True)
class Run:
    """When each flow of the list ended, and how long it took to find out."""

    times: NDArray[np.float64]
    wall_s: float


def hypercube_flows(count: int, seed: int) -> FlowList:
    """Random pairs of distinct nodes; e-cube: the lowest differing dimension first."""
    random = np.random.Generator(np.random.Philox(seed))
    source = random.integers(NODES, size=count)
    target = (source + 1 + random.integers(NODES - 1, size=count)) % NODES
    crosses = (source ^ target)[:, None] >> np.arange(DIMENSIONS) & 1
    # The node before dimension d is crossed has the target's bits below d.
    below = (1 << np.arange(DIMENSIONS)) - 1
    at = (source[:, None] & ~below) | (target[:, None] & below)
    links = at * DIMENSIONS + np.arange(DIMENSIONS)
    return FlowList(
        capacity=np.full(NODES * DIMENSIONS, LINK_BPS),
        row_ptr=np.concatenate([[0], np.cumsum(crosses.sum(axis=1))]),
        resource=links[crosses == 1],
        volume=np.floor(random.uniform(*SIZE_BYTES, size=count)),
        source=source,
        target=target,
    )


Contender = Callable[[FlowList, int], Run]


class Program:
    """A compiled contender: reads a flow list, writes times, prints seconds and a version."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.folder = folder
        self.path = folder / name
        self.version = ""
        compiler = os.environ.get("CXX", "g++")
        source = HERE / f"{name}.cpp"
        command = [compiler, "-std=c++20", "-O3", str(source), "-o", str(self.path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{name}.cpp does not compile:\n{done.stderr[:2000]}")

    def run(self, flows: FlowList, window: int) -> Run:
        listed, times = self.folder / "flows", self.folder / "times"
        flows.write(listed)
        command = [str(self.path), str(listed), str(times), str(window)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, *version = printed.split()
        self.version = " ".join(version)
        return Run(np.fromfile(times), float(seconds))


def on_kernel(folder: Path, name: str, source: str) -> Program:
    """A contender that uses one of the kernel's sources."""
    return Program(folder, name, f"-I{KERNEL.parent}", str(KERNEL / source))


def has_simgrid() -> bool:
    """Whether the compiler finds SimGrid's headers."""
    compiler = os.environ.get("CXX", "g++")
    check = [compiler, "-std=c++20", "-E", "-x", "c++", "-", "-o", os.devnull]
    source = "#include <simgrid/s4u.hpp>\n"
    return subprocess.run(check, input=source, capture_output=True, text=True).returncode == 0


def largest_difference(one: Run, other: Run, window: int) -> float:
    """Of the completion times, relative, over the flows before rounding has grown."""
    first = slice(COMPARED_PER_PLACE * window)
    return float(np.max(np.abs(one.times[first] / other.times[first] - 1)))


def digest(run: Run, window: int) -> str:
    """A hash of the completion times to nine digits, the same on any machine."""
    text = "\n".join(f"{end:.8e}" for end in run.times[: COMPARED_PER_PLACE * window])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def best_of(repeat: int, contender: Contender, flows: FlowList, window: int) -> Run:
    """The quickest of several runs: what else the machine does can only slow a run down."""
    return min((contender(flows, window) for _ in range(repeat)), key=lambda run: run.wall_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--flows", type=int, default=40_000, help="length of the list")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    flows = hypercube_flows(options.flows, options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classes = on_kernel(folder, "flow_solver_classes", "class_sharing.cpp")
        full = on_kernel(folder, "flow_solver_full", "max_min.cpp")
        contenders: dict[str, Contender] = {"full re-solve": full.run}
        if has_simgrid():
            simgrid = Program(folder, "flow_solver_simgrid", "-lsimgrid")
            contenders["SimGrid"] = simgrid.run
        for window in options.windows:
            ours = best_of(options.repeat, classes.run, flows, window)
            case = f"flow_solver/hypercube{NODES}/{window}_flows"
            print(f"{case}: result {digest(ours, window)}", file=sys.stderr)
            for versus, contender in contenders.items():
                theirs = best_of(options.repeat, contender, flows, window)
                difference = largest_difference(ours, theirs, window)
                if not difference <= TOLERANCE:
                    raise SystemExit(f"{case}: times differ by {difference:.1e} from {versus}")
                if versus == "SimGrid":
                    versus = f"SimGrid {simgrid.version}"
                rate, their_rate = (options.flows / run.wall_s for run in (ours, theirs))
                line = {
                    "name": case,
                    "value": round(rate),
                    "unit": "completions/s",
                    "versus": f"{versus}: {their_rate:.0f}/s",
                    "ratio": round(rate / their_rate, 2),
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        raise SystemExit("flow_solver: needs a C++20 compiler (CXX, or g++)")
    main()

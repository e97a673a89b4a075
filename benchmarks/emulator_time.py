"""How near the times that counts predict come to those of programs on this host.

Five programs (``emulator_time/programs.c``: a copy, a pointer chase, a hash join, a sort, a small
server behind a socket) run on this host, and in a guest of its machine file (measured, unless
``--machine`` names one), where ``emulate --predict`` counts them. A line for each: the predicted
processor time in s against the measured one (the median of some runs, as facts of the machine file
are medians and interruptions have their mean; the fastest stands beside it), with the interval that
holds what counts cannot know, and whether it holds the measured time. One JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from numatwin.sim.run.counted_time import counted_time
from numatwin.topologies import load_machine
from numatwin.topologies.emulator.counting import SOURCES, Counting, run_counted
from numatwin.topologies.emulator.guest_machine import guest_machine

HERE = Path(__file__).parent
MIB = 1 << 20
PROGRAMS = ("copy", "chase", "join", "sort", "server")
GUEST_BYTES = 512 * MIB


def build(folder: Path) -> Path:
    """The programs; ends where they do not compile."""
    program = folder / "programs"
    source = HERE / "emulator_time" / "programs.c"
    command = ["gcc", "-O2", f"-I{SOURCES}", str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"programs.c does not compile:\n{done.stderr[:2000]}")
    return program


def measured_machine(folder: Path) -> Path:
    """This host's machine file."""
    file = folder / "machine.yaml"
    command = [
        sys.executable,
        "-m",
        "numatwin",
        "machine",
        "measure",
        "--quick",
        "--out",
        str(file),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return file


def measured_s(program: Path, name: str, mebibytes: int, runs: int) -> tuple[float, float]:
    """Processor time of its region: the median of all runs, and the fastest one."""
    command = [str(program), name, str(mebibytes)]
    times = [float(subprocess.check_output(command)) for _ in range(runs)]
    return median(times), min(times)


def main() -> None:
    """Prints a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", type=Path, help="this host's machine file")
    parser.add_argument("--mebibytes", type=int, default=128, help="that each program works on")
    parser.add_argument("--runs", type=int, default=5, help="on this host")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--interval", type=int, default=20_000_000, help="in instructions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        program = build(Path(name))
        file = options.machine or measured_machine(Path(name))
        guest = guest_machine(load_machine(str(file)), memory_bytes=GUEST_BYTES)
        for what in options.programs:
            took_s, fastest_s = measured_s(program, what, options.mebibytes, options.runs)
            command = [str(program), what, str(options.mebibytes)]
            counted = run_counted(guest, command, Counting(interval=options.interval))
            if counted.run.status != 0:
                raise SystemExit(f"{what}: status {counted.run.status} in the guest")
            found = counted_time(counted.traffic)
            row = {
                "name": f"emulator_time/{what}",
                "value": round(found.time_s, 6),
                "unit": "s",
                "versus": f"{took_s:.6f} s on this host",
                "ratio": round(found.time_s / took_s, 4),
                "interval_s": [round(found.least_s, 6), round(found.most_s, 6)],
                "fastest_s": fastest_s,
                "within": found.least_s <= took_s <= found.most_s,
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

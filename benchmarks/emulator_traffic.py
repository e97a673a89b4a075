"""What counting a guest's memory traffic costs, and how exact it is.

Programs of known traffic (``emulator_traffic/programs.c``) run in guests of `amd-8n-ht` with one
processor per node: uncounted, counted without caches, with caches of their own, and with coherence
between them. Rates are accesses per second of QEMU's processor time, times two: what two cores of a
host do. Each is the difference of a long and an empty run in the same guest, so that the start
costs nothing. Errors are of accesses, misses and lines handed over, of what the programs do. One
JSON object a line goes to standard output, the hash of what is exact to standard error.
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

from numatwin.topologies import load_machine
from numatwin.topologies.emulator.counting import SOURCES, Counting, run_counted
from numatwin.topologies.emulator.guest import run_in_guest
from numatwin.topologies.emulator.guest_machine import GuestMachine, guest_machine

HERE = Path(__file__).parent
MIB = 1 << 20
WORDS, LINES = MIB // 8, MIB // 64  # per MiB
# What is touched per round and MiB; rounds of each. (Random ones miss in QEMU's own buffers: slow.)
PATTERNS = {"read": (WORDS, 4), "write": (WORDS, 4), "random": (LINES, 1), "atomic": (WORDS, 2)}
DETAILS = {
    "uncounted": None,
    "accesses": Counting(caches=False),
    "caches": Counting(coherence=False),
    "coherence": Counting(),
}
HOST_CORES = 2
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def build(folder: Path) -> Path:
    """The programs; ends where they do not compile."""
    program = folder / "programs"
    source = HERE / "emulator_traffic" / "programs.c"
    command = ["gcc", "-O2", f"-I{SOURCES}", str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"programs.c does not compile:\n{done.stderr[:2000]}")
    return program


def guest(nodes: int = 8) -> GuestMachine:
    """One processor per node, caches an eighth."""
    return guest_machine(
        load_machine("amd-8n-ht"), nodes=nodes, scale=1 / 8, memory_bytes=nodes * 128 * MIB
    )


class Meter:
    """Processor time of this process' children, at each line that the guest writes."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def __call__(self, piece: bytes) -> None:
        self.times_s += [children_s()] * piece.count(b"\n")


def children_s() -> float:
    """Processor time, so far, of the processes that this one has started and that still run."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total * TICK_S


def rates(program: Path, detail: str, mebibytes: int, rounds: int, processors: list[int]) -> dict[
    tuple[str, int], float
]:  # fmt: skip
    """Accesses per second of processor time, by pattern and number of processors."""
    steps = []
    for pattern, (_, factor) in PATTERNS.items():
        for count in processors:
            # Long enough for a clock of hundredths of a second.
            many = rounds * factor * (8 if DETAILS[detail] is None else 1)
            for times in (0, many):
                one = f"{program} {pattern} $k $k {mebibytes} {times} 2>/dev/null"
                steps.append(f"for k in $(seq 0 {count - 1}); do {one} & done; wait; echo")
    command = ["sh", "-c", "echo; " + "; ".join(steps)]
    meter = Meter()
    counting = DETAILS[detail]
    if counting is None:
        run_in_guest(guest(), command, stdout=meter)
    else:
        run_counted(guest(), command, counting, stdout=meter)
    spent = [
        after - before for before, after in zip(meter.times_s, meter.times_s[1:], strict=False)
    ]
    found = {}
    for at, (pattern, count) in enumerate((p, c) for p in PATTERNS for c in processors):
        per_round, factor = PATTERNS[pattern]
        accesses = per_round * mebibytes * rounds * factor * count
        accesses *= 8 if counting is None else 1
        # Of a run that is too short for the clock, no more than one of its ticks is known.
        found[pattern, count] = accesses / max(spent[2 * at + 1] - spent[2 * at], TICK_S)
    return found


def errors(program: Path, mebibytes: int) -> dict[str, tuple[int, int]]:
    """(counted, expected) of programs whose traffic is known."""
    n = mebibytes
    steps = [
        f"read 0 1 {n} 2",
        f"write 1 2 {n} 2",
        f"atomic 2 3 {n} 2",
        f"copy 3 4 {n} 2 5",
        f"random 4 6 {n} 4",
        f"move 5 7 {n} 2 0",
        "bounce 6 6 1 8 7",
    ]
    script = " && ".join(f"{program} {step}" for step in steps)
    counts = run_counted(guest(), ["sh", "-c", script]).traffic.counted

    def of(name: str, node: int, home: int) -> int:
        return int(counts.pairs[name][node, home])

    return {
        "sequential reads": (of("reads_user", 0, 1), 2 * n * WORDS),
        "sequential reads, misses": (of("read_misses_user", 0, 1), 2 * n * LINES),
        "sequential writes": (of("writes_user", 1, 2), 2 * n * WORDS),
        "sequential writes, misses": (of("write_misses_user", 1, 2), 2 * n * LINES),
        "atomic increments, reads": (of("reads_user", 2, 3), 2 * n * WORDS),
        "atomic increments, writes": (of("writes_user", 2, 3), 2 * n * WORDS),
        "copy, lines read": (of("read_misses_user", 3, 4), 2 * n * LINES),
        "copy, lines written": (of("write_misses_user", 3, 5), 2 * n * LINES),
        "random reads, misses": (of("read_misses_user", 4, 6), 4 * n * LINES),
        "moved pages, before": (of("reads_user", 5, 7), n * WORDS),
        "moved pages, after": (of("reads_user", 5, 0), n * WORDS),
        "lines written in turn, misses": (of("write_misses_user", 7, 6), 4 * LINES),
    }


def line(name: str, value: float, unit: str, versus: str, ratio: float) -> None:
    """One figure."""
    row = {"name": f"emulator_traffic/{name}", "value": value, "unit": unit, "versus": versus}
    print(json.dumps(row | {"ratio": round(ratio, 6)}), flush=True)


def main() -> None:
    """Prints a line for each rate and each error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=16, help="that each program touches")
    parser.add_argument("--rounds", type=int, default=8, help="of the longest pattern, a quarter")
    parser.add_argument("--processors", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--details", nargs="+", choices=DETAILS, default=list(DETAILS))
    parser.add_argument("--no-errors", action="store_true", help="rates alone")
    options = parser.parse_args()
    exact = hashlib.sha256()
    with tempfile.TemporaryDirectory() as name:
        program = build(Path(name))
        uncounted: dict[tuple[str, int], float] = {}
        for detail in options.details:
            found = rates(program, detail, options.mebibytes, options.rounds, options.processors)
            uncounted = uncounted or found
            for (pattern, count), rate in found.items():
                case = f"{detail}/{pattern}/{count}_processor{'' if count == 1 else 's'}"
                value = HOST_CORES * rate / 1e6
                ratio = rate / uncounted[pattern, count]
                line(case, round(value, 1), "M/s", f"the same {options.details[0]}", ratio)
        known = {} if options.no_errors else errors(program, min(options.mebibytes, 8))
        for case, (counted, expected) in known.items():
            error = counted / expected - 1
            line(f"counted/{case}", counted, "", f"{expected}", counted / expected)
            exact.update(f"{case} {abs(error) <= 1e-3}\n".encode())
    print(f"emulator_traffic: result {exact.hexdigest()[:16]}", file=sys.stderr)


if __name__ == "__main__":
    main()

"""Steps whose results lie in new memory, of NumPy on this host, against the same in kept memory.

python benchmarks/materialised.py [--rows 8_000_000] [--machine host.yaml] [--write]

Three steps over arrays of doubles, each of which makes an array: into arrays that are kept, and
into new ones, in small pages and in huge ones. Each is measured as processor time of one thread and
of two, in turn, and predicted from a machine file that ``machine measure`` has written. An entry is
one instruction (vectors of eight). ``--write``: the table of docs/model/os-memory.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from numatwin import load_scenario, run_scenario
from numatwin.sim.run.uncertainty import with_uncertainty

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "model" / "os-memory.md"
MARK = "<!-- figures -->"
ROUNDS = 5
WAYS = {"kept": "pooled", "new, small pages": "materialised", "new, huge pages": "materialised"}
PROGRAM = """\
import sys, threading, time
import numpy as np
rows, threads, kept, times = map(int, sys.argv[1:])
columns = [(np.full(rows, 1.5), np.full(rows, 2.5), [np.ones(rows) for _ in range(3)])
           for _ in range(threads)]
def work(a, b, made):
    if kept:
        np.multiply(a, b, out=made[0])
        np.add(made[0], a, out=made[1])
        np.subtract(made[1], b, out=made[2])
    else:
        product = a * b
        total = product + a
        total - b
def loop(mine, found):
    begun = time.thread_time()
    for _ in range(times):
        work(*mine)
    found.append((time.thread_time() - begun) / times)
found = []
all_of = [threading.Thread(target=loop, args=(mine, found)) for mine in columns]
for one in all_of: one.start()
for one in all_of: one.join()
print(sum(found) / threads)
"""
WORKLOAD = """\
name: steps
objects: {{t: {{kind: table, rows: {rows}, columns: {{v: {{distinct: 2, value_size: 8 B}}}}}}}}
operations:
  steps:
    kind: query
    operators:
      product: {{kind: custom, table: t, {step}}}
      total: {{kind: custom, inputs: product, {step}}}
      less: {{kind: custom, inputs: total, {step}}}
clients: {{kind: closed, count: {threads}}}
"""
STEP = "instructions: 1, read: 16 B, written: 8 B, concurrency: 1"
SCENARIO = """\
name: steps
machine: {machine}
workload: steps.yaml
system: {{kind: tasks, threads: {threads}, task: 0 s, intermediates: {how}, pages: {pages}}}
policies: {{stealing: none}}
horizon: 60 s
"""


def measured_s(rows: int, threads: int, way: str) -> float:
    """Processor time of a thread for the three steps."""
    huge = "1" if "huge" in way else "0"
    # glibc keeps what is smaller, and NumPy asks for huge pages unless it is told not to.
    known = {"NUMPY_MADVISE_HUGEPAGE": huge, "MALLOC_MMAP_THRESHOLD_": "131072"}
    words = [str(rows), str(threads), str(int(way == "kept")), "8"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=os.environ | known, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(done.stdout)


def predicted_s(
    folder: Path, machine: str, rows: int, threads: int, way: str
) -> tuple[float, float, float]:
    """The same, and the ends of its 90% interval."""
    (folder / "steps.yaml").write_text(WORKLOAD.format(rows=rows, threads=threads, step=STEP))
    path, pages = folder / "scenario.yaml", "huge" if "huge" in way else "small"
    fields = {"machine": machine, "threads": threads, "how": WAYS[way], "pages": pages}
    path.write_text(SCENARIO.format(**fields))
    scenario = load_scenario(path, plane="flow")
    record = with_uncertainty(run_scenario(scenario), scenario)
    assert record.uncertainty is not None
    (rate,) = record.throughput.values()
    ((low, high),) = record.uncertainty["throughput"].values()
    return threads / rate, threads / high, threads / low


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--machine")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    cases = [
        (threads, way) for threads in (1, 2) for way in WAYS if threads <= (os.cpu_count() or 1)
    ]
    lines = [
        "| threads | results | measured | predicted | 90% interval | ratio |",
        "| --- " * 6 + "|",
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        machine = given.machine or str(folder / "host.yaml")
        if not given.machine:
            command = [sys.executable, "-m", "numatwin", "machine", "measure", "--quick"]
            subprocess.run([*command, "--out", machine], check=True, stdout=subprocess.DEVNULL)
        if Path(machine).exists():
            machine = str(Path(machine).resolve())
        times: dict[tuple[int, str], list[float]] = {case: [] for case in cases}
        for _ in range(given.rounds):
            for case in cases:
                times[case].append(measured_s(given.rows, *case))
        for case in cases:
            measured = median(times[case])
            found, low, high = predicted_s(folder, machine, given.rows, *case)
            threads, way = case
            lines.append(
                f"| {threads} | {way} | {1e3 * measured:.3g} | {1e3 * found:.3g} "
                f"| {1e3 * low:.3g} to {1e3 * high:.3g} | {found / measured:.2f} |"
            )
            name = f"materialised/{way}, {threads} thread{'s' * (threads > 1)}"
            print(json.dumps({
                "name": name, "value": found, "unit": "s",
                "versus": "processor time of NumPy", "ratio": round(found / measured, 3),
            }))  # fmt: skip
    if given.write:
        before, _, after = PAGE.read_text().split(MARK)
        PAGE.write_text(f"{before}{MARK}\n" + "\n".join(lines) + f"\n{MARK}{after}")


if __name__ == "__main__":
    main()

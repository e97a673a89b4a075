"""Real engines, profiled by ``numatwin profile`` alone, predicted and measured on this host.

python benchmarks/real_engines.py [--rows 120_000 1_200_000] [--queries q6 …] [--machine host.yaml]

Six queries in DuckDB on tables in memory: each is counted by callgrind on one thread, which writes
the workload; no number is set by hand. It is predicted on ``--machine``, by default this host as
``machine measure --quick`` finds it. The query then runs on one and two threads in turns. One
thread's time is compared as processor time, two threads' as wall time, which other programs on the
host lengthen: rows of two threads during which these, or the hypervisor, took more than a tenth of
the processors' time are kept as such, and left out of the page.
``--write``: the figures, and the table of docs/real-engines.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from numatwin import load_scenario, run_scenario
from numatwin.sim.run.uncertainty import with_uncertainty
from numatwin.validate.measure.noise import OTHERS_MAX, taken, ticks
from numatwin.validate.profile import read_profiles, workload_text
from numatwin.validate.profile.importers import Found
from numatwin.validate.profile.run_counted import run_counted

HERE = Path(__file__).parent
SCRIPT = HERE / "real_engines" / "duckdb_query.py"
FIGURES = HERE / "real_engines" / "figures.json"
PAGE = HERE.parent / "docs" / "real-engines.md"
MARK = "<!-- figures -->"
QUERIES = ("q6", "q1", "g6", "join", "sort", "topk")
ROUNDS, RUNS = 3, 5
AIM = 0.25
SCENARIO = """\
name: engine
machine: {machine}
workload: {workload}
system: {{kind: tasks, threads: {threads}, placement: interleaved}}
policies: {{stealing: none}}
horizon: 10 s
"""


def run(*words: str) -> list[dict[str, float]]:
    """The times that the query's script prints."""
    command = [sys.executable, str(SCRIPT), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def profiled(folder: Path, data: Path, query: str) -> Found:
    """The query's plan and counts."""
    plan = folder / f"{query}.json"
    run(str(data), query, "--plan", str(plan))
    command = [sys.executable, str(SCRIPT), str(data), query, "--region"]
    return Found(read_profiles([plan]).plan, run_counted(command, region=True), None)


def predicted(folder: Path, machine: str, query: str, threads: int) -> tuple[float, float, float]:
    """Seconds of the query alone, and the ends of its 90% interval."""
    path = folder / "engine.yaml"
    fields = {"machine": machine, "workload": folder / f"{query}.yaml", "threads": threads}
    path.write_text(SCENARIO.format(**fields))
    scenario = load_scenario(path, plane="flow")
    record = with_uncertainty(run_scenario(scenario), scenario)
    assert record.uncertainty is not None
    low, high = record.uncertainty["throughput"][query]
    return 1 / record.throughput[query], 1 / high, 1 / low


class Measured:
    """Runs of a query on so many threads, and what part of all processors' time others took."""

    def __init__(self, threads: int) -> None:
        self.threads, self.times = threads, list[dict[str, float]]()
        self.taken_s = self.wall_s = 0.0

    def run(self, data: Path, query: str) -> None:
        before = ticks()
        self.times += run(str(data), query, "--threads", str(self.threads), "--runs", str(RUNS))
        after = ticks()
        self.taken_s += sum(taken(before, after))
        self.wall_s += after.wall - before.wall

    def median(self, clock: str) -> float:
        return median(each[clock] for each in self.times)

    @property
    def taken(self) -> float:
        return self.taken_s / (self.wall_s * (os.cpu_count() or 1))


def measured(data: Path, query: str) -> list[Measured]:
    """Runs on one and two threads, in turns."""
    found = [Measured(1), Measured(2)]
    for _ in range(ROUNDS):
        for one in found:
            one.run(data, query)
    return found


def quiet(row: dict[str, Any]) -> bool:
    """Whether a row judges the model, rather than what others did on the host meanwhile."""
    return bool(row["threads"] == 1 or row["taken"] <= OTHERS_MAX)


def figures(rows: int, queries: Sequence[str], machine: str) -> Iterator[dict[str, Any]]:
    """A row for each query and number of threads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.duckdb"
        subprocess.run([sys.executable, str(SCRIPT), str(data), "--make", str(rows)], check=True)
        for query in queries:
            found = profiled(folder, data, query)
            (folder / f"{query}.yaml").write_text(workload_text(found, query))
            for runs in measured(data, query):
                predicted_s, low_s, high_s = predicted(folder, machine, query, runs.threads)
                yield {
                    "query": query,
                    "rows": rows,
                    "threads": runs.threads,
                    "predicted_s": predicted_s,
                    "interval_s": [low_s, high_s],
                    "measured_s": runs.median("cpu_s" if runs.threads == 1 else "wall_s"),
                    "cpu_s": runs.median("cpu_s"),
                    "taken": runs.taken,
                }


def within(row: dict[str, Any]) -> bool:
    """Whether a prediction is as near as is aimed at."""
    low, high = row["interval_s"]
    off = abs(row["predicted_s"] / row["measured_s"] - 1)
    return bool(off <= AIM or low <= row["measured_s"] <= high)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = [
        "| query | rows | threads | predicted | 90% interval | measured | ratio | processor time |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        ms = [f"{1e3 * row[key]:.3g} ms" for key in ("predicted_s", "measured_s", "cpu_s")]
        ends = " to ".join(f"{1e3 * end:.3g}" for end in row["interval_s"])
        ratio = row["predicted_s"] / row["measured_s"]
        lines.append(
            f"| {row['query']} | {row['rows']:,} | {row['threads']} | {ms[0]} | {ends} ms "
            f"| {ms[1]} | {ratio:.2f} | {ms[2]} |"
        )
    return "\n".join(lines)


def write(rows: Sequence[dict[str, Any]], machine: str) -> None:
    """The figures, and the page's table of them."""
    import duckdb

    about = {"machine": machine, "python": platform.python_version(), "duckdb": duckdb.__version__}
    FIGURES.write_text(json.dumps({**about, "rows": list(rows)}, indent=1) + "\n")
    render()


def render() -> None:
    """The page's table, of the figures as they were written."""
    found = json.loads(FIGURES.read_text())
    rows = list(filter(quiet, found["rows"]))
    sums = [summary(rows, count) for count in sorted({row["threads"] for row in rows})]
    if disturbed := len(found["rows"]) - len(rows):
        sums.append(
            f"- left out: {disturbed} rows of two threads, as others took more than "
            f"{OTHERS_MAX:.0%} of the processors"
        )
    text = f"DuckDB {found['duckdb']}:\n\n" + "\n".join(sums) + f"\n\n{table(rows)}"
    before, _, after = PAGE.read_text().split(MARK)
    PAGE.write_text(f"{before}{MARK}\n{text}\n{MARK}{after}")


def summary(rows: Sequence[dict[str, Any]], threads: int) -> str:
    """How many of those with so many threads are as near as is aimed at."""
    rows = [row for row in rows if row["threads"] == threads]
    ratios = [row["predicted_s"] / row["measured_s"] for row in rows]
    near = sum(abs(ratio - 1) <= AIM for ratio in ratios)
    width = median(row["interval_s"][1] / row["interval_s"][0] for row in rows)
    return (
        f"- {threads} thread{'s' * (threads > 1)}: {near} of {len(rows)} within {AIM:.0%}, "
        f"{sum(map(within, rows))} within that or their 90% interval,\n"
        f"  whose ends are a factor of {width:.1f} apart; median error "
        f"{median(abs(ratio - 1) for ratio in ratios):.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[120_000, 1_200_000])
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=QUERIES)
    parser.add_argument("--machine")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--render", action="store_true", help="the page of what was written")
    given = parser.parse_args()
    if given.render:
        return render()
    with tempfile.TemporaryDirectory() as folder:
        machine = given.machine
        if machine is None:
            machine = str(Path(folder) / "host.yaml")
            words = ["-m", "numatwin", "machine", "measure", "--quick", "--out", machine]
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        rows = []
        for count in given.rows:
            for row in figures(count, given.queries, machine):
                rows.append(row)
                name = f"{row['query']}/{count}_rows/{row['threads']}_threads"
                line = {
                    "name": f"real_engines/{name}",
                    "value": row["predicted_s"],
                    "unit": "s",
                    "versus": row["measured_s"],
                    "ratio": row["predicted_s"] / row["measured_s"],
                    "disturbed": not quiet(row),
                }
                print(json.dumps(line), flush=True)
    if given.write:
        write(rows, Path(given.machine).name if given.machine else "measured at the same time")


if __name__ == "__main__":
    main()

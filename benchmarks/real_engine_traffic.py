"""Traffic of real queries by node: predicted from their profile, and counted in guests.

python benchmarks/real_engine_traffic.py [--rows 1_200_000] [--queries g6 …] [--write]

The queries of ``real_engines.py`` in DuckDB, each profiled by ``numatwin profile`` on this host
with as many threads as it is run with, run on parts of two machines, whose caches are smaller than
all that was measured here: on one thread of node 0, with all memory on node 1 or interleaved, and
on two threads of two nodes.
Counted are the bytes that each node's memory reads and writes for a query, those of the guest's
kernel among them. ``--write``: the figures, and the table of docs/real-engines.md; ``--predict``:
what was counted stays, and is predicted again; ``--render``: the table of what was written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from real_engines import Embedded, duckdb, onto_page

from numatwin import load_scenario, run_scenario
from numatwin.engine_native.emulated import on_machine_of
from numatwin.topologies.emulator import guest_machine
from numatwin.validate.profile import workload_text

FIGURES = Path(__file__).parent / "real_engines" / "traffic.json"
MACHINES = {"xeon-4s-ivb": "1/15", "opteron-4n": "1/4"}
# Nodes with threads, numactl's word for the memory, and the scenario's.
PLACED = {
    "remote": ((0,), "--membind=1", "{policy: bind, nodes: [1]}"),
    "interleaved": ((0,), "--interleave=all", "{policy: interleave}"),
    "two threads, interleaved": ((0, 1), "--interleave=all", "{policy: interleave}"),
}
RUNS, AIM, NOTABLE = 3, 0.10, 0.02
SCENARIO = """\
name: traffic
machine: {machine}
workload: {workload}
system: {{kind: tasks, nodes: {nodes}, threads: 1, memory: {memory}, task: 0 s}}
policies: {{stealing: none}}
horizon: 10 s
"""


def counted(engine: Embedded, data: str, query: str, machine: str, placed: str) -> list[float]:
    """Bytes of a query by node, in a guest."""
    nodes, words, _ = PLACED[placed]
    with tempfile.TemporaryDirectory() as out:
        guest = ["emulate", machine, "--scale", MACHINES[machine], "--memory", "4GiB", "--out", out]
        bound = ["numactl", words, f"--cpunodebind={','.join(map(str, nodes))}"]
        program = [engine.python, str(engine.script), data, query, "--counted", str(RUNS)]
        program += ["--threads", str(len(nodes))]
        command = [sys.executable, "-m", "numatwin", *guest, "--", *bound, *program]
        subprocess.run(command, check=True, capture_output=True)
        record = json.loads((Path(out) / "record.json").read_text())
    memory = record["traffic"]["memory"]
    return [(node["read_bytes"] + node["written_bytes"]) / RUNS for node in memory]


def predicted(folder: Path, workload: Path, machine: str, placed: str) -> list[float]:
    """Bytes of a query by node, on the machine that the guest is."""
    nodes, _, memory = PLACED[placed]
    path = folder / "traffic.yaml"
    fields = {"machine": machine, "workload": workload, "nodes": [*nodes], "memory": memory}
    path.write_text(SCENARIO.format(**fields))
    scenario = load_scenario(path, plane="flow")
    part, whole = map(int, MACHINES[machine].split("/"))
    record = run_scenario(
        on_machine_of(guest_machine(scenario.machine, scale=part / whole), scenario)
    )
    (rate,) = record.throughput.values()
    by_name = {use.name: (use.Bps or 0.0) / rate for use in record.resources}
    names = [f"memory of node {node.id}" for node in scenario.machine.nodes]
    return [by_name.get(name, 0.0) for name in names]


def counted_rows(engine: Embedded, size: int, queries: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each query, machine and placement."""
    with tempfile.TemporaryDirectory() as folder:
        data = engine.data(Path(folder), size)
        for query, machine, placed in product(queries, MACHINES, PLACED):
            row = {"query": query, "rows": size, "machine": machine, "placed": placed}
            yield row | {"counted_B": counted(engine, data, query, machine, placed)}


def predict(engine: Embedded, rows: Sequence[dict[str, Any]]) -> None:
    """Adds what is predicted to what was counted."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for row in rows:
            query, threads = row["query"], len(PLACED[row["placed"]][0])
            workload = folder / f"{query}-{threads}.yaml"
            if not workload.exists():
                data = engine.data(folder, row["rows"])
                profile = engine.profiled(folder, data, query, threads)
                workload.write_text(workload_text(profile, query))
            row["predicted_B"] = predicted(folder, workload, row["machine"], row["placed"])
            print(json.dumps({"name": "real_engine_traffic", **row, "off": off(row)}), flush=True)


def off(row: dict[str, Any]) -> float:
    """Of all bytes, the relative error."""
    return float(sum(row["predicted_B"]) / sum(row["counted_B"]) - 1)


def off_by_node(row: dict[str, Any]) -> list[float]:
    """Relative errors of the nodes with a notable part of the bytes."""
    least = NOTABLE * sum(row["counted_B"])
    pairs = zip(row["predicted_B"], row["counted_B"], strict=True)
    return [predicted / counted - 1 for predicted, counted in pairs if counted >= least]


def render() -> None:
    """The page's table, of the figures as they were written."""
    found = json.loads(FIGURES.read_text())
    lines = [
        "| query | machine | memory | MB a query, counted | predicted | all | by node |",
        "| --- | --- | --- | --: | --: | --: | --- |",
    ]
    for row in found["rows"]:
        both = [f"{sum(row[key]) / 1e6:.3g}" for key in ("counted_B", "predicted_B")]
        nodes = ", ".join(f"{each:+.0%}" for each in off_by_node(row))
        cells = [
            row["query"],
            f"`{row['machine']}`",
            row["placed"],
            *both,
            f"{off(row):+.0%}",
            nodes,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    sums = []
    for threads in (1, 2):
        of = [row for row in found["rows"] if len(PLACED[row["placed"]][0]) == threads]
        for what, errors in (
            ("all bytes", [abs(off(row)) for row in of]),
            ("a node's bytes", [abs(each) for row in of for each in off_by_node(row)]),
        ):
            sums.append(
                f"- {threads} thread{'s' * (threads > 1)}, {what}: {sum(e <= AIM for e in errors)} "
                f"of {len(errors)} within {AIM:.0%}, median {median(errors):.1%}, "
                f"at most {max(errors):.0%}"
            )
    text = f"DuckDB {found['version']}:\n\n" + "\n".join(sums)
    onto_page("traffic", text + "\n\n" + "\n".join(lines))


def main() -> None:
    engine = duckdb(sys.executable)
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_200_000)
    parser.add_argument("--queries", nargs="+", choices=engine.queries, default=engine.queries)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--predict", action="store_true", help="what was counted, once more")
    parser.add_argument("--render", action="store_true", help="the table of what was written")
    words = parser.parse_args()
    if not words.render:
        found = (
            json.loads(FIGURES.read_text())["rows"]
            if words.predict
            else list(counted_rows(engine, words.rows, words.queries))
        )
        predict(engine, found)
        if words.write:
            about = {"version": engine.installed(), "rows": found}
            FIGURES.write_text(json.dumps(about, indent=1) + "\n")
    if words.render or words.write:
        render()


if __name__ == "__main__":
    main()

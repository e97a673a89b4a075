"""Queries of the native engine of tasks, and its tasks, against what a user would pick.

python benchmarks/native_tasks.py [--rows 100_000_000] [--groups 10 1_000_000]
    [--build 10_000_000] [--tasks 10_000] [--moved 1_000_000_000]

All rows of a table are grouped by a column, and another one is summed; or joined with the rows of
another one, as many as ``--build``, by its key, and their pairs are counted and summed: on two
threads, both warm, in turns; results are compared. DuckDB (package duckdb; left out where it is not
there) has the same columns as integers of 32 bits. And a query of as many tasks as ``--tasks``,
each of which scans 64 rows, against as many empty tasks of oneTBB (libtbb-dev) on two threads. Of
``--repeat`` turns the fastest. On a host of two nodes also: a part of ``--moved`` rows that moves
to and fro while a client scans it, against ``move_pages`` (numpy's memory, one call) on as many
bytes alone, and against the same scans without moves.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from numatwin import load_scenario
from numatwin.engine_native import _engine
from numatwin.engine_native.systems.tasks.setup import tasks_plan

HERE = Path(__file__).parent
THREADS, ROWS_OF_A_TASK = 2, 64


def table(rows: int, **distinct: int) -> dict[str, Any]:
    """Of columns with so many values of 4 B, at most one for each row."""
    columns = {
        name: {"distinct": min(values, rows), "value_size": "4 B"}
        for name, values in distinct.items()
    }
    return {"kind": "table", "rows": rows, "columns": columns}


def engine(
    objects: dict[str, Any], operators: dict[str, Any], tasks: int = 0, clients: int = 0
) -> Any:
    """Of these tables, and one query of so many clients."""
    settings = [
        f"system.threads={THREADS}",
        f"workload.objects={json.dumps(objects)}",
        f"workload.operations={json.dumps({'q': {'kind': 'query', 'operators': operators}})}",
        *([f"system.concurrency={tasks}"] if tasks else []),
    ]
    scenario = load_scenario("host-queries", plane="native", settings=settings)
    spec = tasks_plan(scenario, _engine.host_facts()).spec
    (query,) = spec.queries
    query.clients, spec.queries, spec.mix_clients = clients, [query], 0
    return _engine.TaskEngine(spec)


def fastest(repeat: int, *turns: Callable[[], object]) -> list[float]:
    """Seconds of each, in turns, after one round that warms up."""
    found = [float("inf")] * len(turns)
    for round_ in range(repeat + 1):
        for k, turn in enumerate(turns):
            begun = time.perf_counter()
            turn()
            if round_:
                found[k] = min(found[k], time.perf_counter() - begun)
    return found


def grouped(rows: int, groups: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Rows per second of both."""
    operators = {
        "all": {"kind": "scan", "table": "t"},
        "sum": {"kind": "aggregate", "input": "all", "group_by": "g", "sums": "v"},
    }
    objects = {"t": table(rows, g=groups, v=4096)}
    query = "select count(*) c, g - 1 as k, sum(v)::bigint s from t group by g order by k"
    name = f"native_tasks/group by, {groups:,} groups, {rows:,} rows"
    yield against_duckdb(name, rows, objects, operators, query, repeat)


def joined(rows: int, build: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Rows that probe per second of both."""
    operators = {
        "few": {"kind": "scan", "table": "d"},
        "all": {"kind": "scan", "table": "t"},
        "pairs": {
            "kind": "join", "build": "few", "probe": "all", "build_key": "k", "probe_key": "f",
        },
        "sum": {"kind": "aggregate", "input": "pairs", "sums": ["v", "w"]},
    }  # fmt: skip
    few = table(build, k=build, w=4096)
    objects = {"d": few, "t": table(rows, f=build, v=4096)}
    for one in objects.values():
        for column in one["columns"].values():
            column["encoded"] = False
    query = "select count(*) c, 0 k, sum(v)::bigint, sum(w)::bigint from t join d on t.f = d.k"
    name = f"native_tasks/join of {build:,} and {rows:,} rows"
    yield against_duckdb(name, rows, objects, operators, query, repeat)


def against_duckdb(
    name: str,
    rows: int,
    objects: dict[str, Any],
    operators: dict[str, Any],
    query: str,
    repeat: int,
) -> dict[str, Any]:
    """Rows per second; ``query`` has the columns of the engine's groups, by key."""
    ours = engine(objects, operators)
    if find_spec("duckdb") is None:
        (took_s,) = fastest(repeat, lambda: ours.answer(0))
        return {"name": name, "value": rows / took_s, "unit": "rows/s",
                "versus": None, "ratio": None}  # fmt: skip
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    for at, (of, described) in enumerate(objects.items()):
        arrays = {
            column: ours.values(at, k).astype(np.int32)
            for k, column in enumerate(described["columns"])
        }
        connection.register("arrays", arrays)
        connection.execute(f"create table {of} as from arrays")
        connection.unregister("arrays")
        del arrays

    def theirs() -> Any:
        return connection.execute(query).fetchnumpy()

    took_s, other_s = fastest(repeat, lambda: ours.answer(0), theirs)
    _, found = ours.answer(0)
    order = np.argsort(found[1])
    for column, expected in zip(found, theirs().values(), strict=True):
        assert (column[order] == expected).all()
    return {
        "name": name, "value": rows / took_s, "unit": "rows/s",
        "versus": f"DuckDB {duckdb.__version__}", "ratio": round(other_s / took_s, 3),
    }  # fmt: skip


def small(tasks: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Tasks per second, of ours and of oneTBB."""
    find = {"find": {"kind": "scan", "table": "t", "columns": "v", "selectivity": 0.5}}
    ours = engine({"t": table(tasks * ROWS_OF_A_TASK, v=4096)}, find, tasks)
    (took_s,) = fastest(repeat, lambda: ours.answer(0))
    other_s = empty_s(tasks, repeat)
    yield {
        "name": f"native_tasks/tasks of {ROWS_OF_A_TASK} rows",
        "value": tasks / took_s, "unit": "tasks/s",
        "versus": None if other_s is None else "empty tasks of oneTBB's arena",
        "ratio": None if other_s is None else round(other_s / took_s, 3),
    }  # fmt: skip


def moved(rows: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Bytes per second that move meanwhile, and scans, of those without moves; nothing on one
    node, where ``move_pages`` copies nothing."""
    nodes = [node.id for node in _engine.host_facts().nodes if node.may_allocate][:2]
    name = f"native_tasks/pages moved, {rows:,} rows"
    if len(nodes) < 2:
        print(f"{name}: left out, a host of one node", file=sys.stderr)
        return
    find = {"find": {"kind": "scan", "table": "t", "columns": "v", "selectivity": 0.5}}
    ours, numbers = engine({"t": table(rows, g=2, v=4096)}, find, clients=1), count(1)
    size = rows * (1 + 12) // 8  # of the ids of both columns
    alone = np.ones(size, dtype=np.uint8)
    ours.begin([])

    def move(*to: int) -> None:
        for node in to:
            ours.move(next(numbers), 0, 0, node)
            while not ours.arrived():
                time.sleep(1e-4)

    def scanned(turn: Callable[[], object]) -> float:
        """Per second."""
        before, begun = ours.answered()[0][0], time.perf_counter()
        turn()
        return float(ours.answered()[0][0] - before) / (time.perf_counter() - begun)

    took_s = fastest(repeat, lambda: move(nodes[0]), lambda: move(nodes[1]))
    quiet, busy = scanned(lambda: time.sleep(2)), scanned(lambda: move(*nodes * 3))
    ours.stop()
    other_s = fastest(repeat, *(partial(move_pages, alone, node) for node in nodes))
    yield {"name": name, "value": size / max(took_s), "unit": "B/s", "versus": "move_pages alone",
           "ratio": round(max(other_s) / max(took_s), 3)}  # fmt: skip
    yield {"name": f"{name}: scans meanwhile", "value": busy, "unit": "scans/s",
           "versus": "without moves", "ratio": round(busy / quiet, 3)}  # fmt: skip


def move_pages(memory: Any, node: int) -> None:
    """All of an array's pages, in one call."""
    page = os.sysconf("SC_PAGESIZE")
    pages = np.arange(memory.ctypes.data // page * page, memory.ctypes.data + memory.size, page)
    to, status = np.full(len(pages), node, dtype=np.int32), np.zeros(len(pages), dtype=np.int32)
    libnuma = ctypes.CDLL("libnuma.so.1", use_errno=True)
    libnuma.numa_move_pages(
        0,
        ctypes.c_ulong(len(pages)),
        *(ctypes.c_void_p(each.ctypes.data) for each in (pages, to, status)),
        2,
    )  # MPOL_MF_MOVE
    assert (status[1:-1] == node).mean() > 0.99


def empty_s(tasks: int, repeat: int) -> float | None:
    """Of oneTBB's, in all; None where it or a compiler is not there."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program, source = Path(folder) / "native_tasks", HERE / "native_tasks.cpp"
        command = [compiler, "-std=c++20", "-O3", str(source), "-o", str(program), "-ltbb"]
        if subprocess.run(command, capture_output=True).returncode:
            return None
        words = [str(program), str(THREADS), str(tasks), str(repeat)]
        return float(subprocess.run(words, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--groups", type=int, nargs="+", default=[10, 1_000_000])
    parser.add_argument("--build", type=int, default=10_000_000)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--moved", type=int, default=1_000_000_000)
    given = parser.parse_args()
    for groups in given.groups:
        for figure in grouped(given.rows, groups, given.repeat):
            print(json.dumps(figure), flush=True)
    for figure in joined(given.rows, min(given.build, given.rows), given.repeat):
        print(json.dumps(figure), flush=True)
    for figure in (*small(given.tasks, given.repeat), *moved(given.moved, given.repeat)):
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()

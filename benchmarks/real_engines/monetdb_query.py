"""One of the queries of real_engines.py in MonetDB, on tables in memory: times, a trace, a region.

python3.9 monetdb_query.py ROWS QUERY [--threads N] [--runs N] [--plan FILE] [--region]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time

import monetdbe
import numpy as np

QUERIES = {
    "filter": "select cast(sum(v) as bigint) as s from t where v < 100000000",
    "g6": "select cast(sum(s) as bigint) as s from "
    "(select k, cast(sum(v) as bigint) as s from t group by k) as g",
    "join": "select cast(sum(w) as bigint) as sw, cast(sum(v) as bigint) as sv "
    "from t join d on t.k = d.k",
    "sort": "select cast(sum(r * (v % 3)) as bigint) as s from "
    "(select v, row_number() over (order by v) as r from t) as o",
    "topk": "select k, v from t order by v desc limit 100",
}
WARM = 4  # queries after which the memory that they map is kept


def made(cursor: monetdbe.Cursor, rows: int) -> None:
    """Tables as for DuckDB: ``t`` has so many rows, ``d`` and the keys a tenth."""
    random, keys = np.random.default_rng(1), max(rows // 10, 1)
    columns = {
        "t": {"k": random.integers(0, keys, rows), "v": random.integers(0, 10**9, rows)},
        "d": {"k": random.permutation(keys), "w": random.integers(0, 1000, keys)},
    }
    for table, values in columns.items():
        cursor.execute(f"create table {table} ({', '.join(f'{name} bigint' for name in values)})")
        cursor.insert(table, values)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("query", choices=QUERIES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--plan")
    parser.add_argument("--region", action="store_true")
    given = parser.parse_args()
    query = QUERIES[given.query]
    connection = monetdbe.connect(nr_threads=given.threads)
    made(connection.cursor(), given.rows)
    connection.commit()
    for _ in range(WARM):
        connection._internal.query(query, make_result=True)
    if given.plan:
        connection._internal.query(f"trace {query}", make_result=True)
        trace = connection.cursor().execute("select * from sys.tracelog()").fetchall()
        with open(given.plan, "w") as plan:
            plan.writelines(f"{us},{instruction}\n" for us, instruction in trace)
    elif given.region:
        control("on")
        connection._internal.query(query, make_result=True)
        control("off")
    else:
        for _ in range(given.runs):
            used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            connection._internal.query(query, make_result=True)
            now = resource.getrusage(resource.RUSAGE_SELF)
            cpu_s = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
            print(json.dumps({"cpu_s": cpu_s, "wall_s": time.perf_counter() - began}), flush=True)
    os._exit(0)  # results are nobody's


def control(instrumentation: str) -> None:
    """Callgrind counts from now on, or no longer. Not by a fork: pages would fault after it."""
    command = ["callgrind_control", "-i", instrumentation, str(os.getpid())]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)]
    os.waitpid(os.posix_spawnp(command[0], command, os.environ, file_actions=quiet), 0)


if __name__ == "__main__":
    main()

"""One of the queries of real_engines.py in DuckDB, on tables in memory: times, a plan, or a region.

python duckdb_query.py FILE --make ROWS
python duckdb_query.py FILE QUERY [--threads N] [--runs N] [--plan FILE] [--region] [--counted N]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import time
from importlib.resources import files

import duckdb

from numatwin.emulator import counted_region

PR_SET_THP_DISABLE = 41  # of Linux's prctl.h

Q1 = """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) from lineitem
where l_shipdate <= date '1998-09-02' group by all order by all"""
Q6 = """select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01'
and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24"""
QUERIES = {
    "q1": Q1,
    "q6": Q6,
    "g6": "select count(*), sum(s) from (select k, sum(v) s from t group by k)",
    "join": "select sum(w), sum(v) from t join d using (k)",
    "sort": "select sum(r * (v % 3)) from (select v, row_number() over (order by v) r from t)",
    "topk": "select * from t order by v desc limit 100",
}
TABLES = {"q1": ["lineitem"], "q6": ["lineitem"], "join": ["t", "d"]}


def make(path: str, rows: int) -> None:
    """A file with all tables: ``t`` has so many rows, ``d`` and the keys a tenth."""
    with duckdb.connect(path) as to:
        keys = max(rows // 10, 1)
        to.execute(
            f"create table t as select (hash(i) % {keys})::bigint k, "
            f"(hash(i + 77777777) % 1000000000)::bigint v from range({rows}) r(i)"
        )
        to.execute(
            "create table d as select k, (hash(k) % 1000)::bigint w from "
            f"(select i k from range({keys}) r(i) order by hash(i))"
        )
        [extension] = files("duckdb_extension_tpch").glob("extensions/*/tpch.duckdb_extension")  # type: ignore[attr-defined]
        to.execute(f"load '{extension}'")
        to.execute(f"call dbgen(sf={rows / 1e7})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("query", nargs="?", choices=QUERIES)
    parser.add_argument("--make", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--plan")
    parser.add_argument("--region", action="store_true", help="what callgrind is to count")
    parser.add_argument("--counted", type=int, help="runs that an emulator is to count")
    given = parser.parse_args()
    if given.make:
        return make(given.file, given.make)
    query = QUERIES[given.query]
    if given.counted:  # pages of 4 KiB: a few large ones would not spread evenly
        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    connection = duckdb.connect(config={"threads": given.threads})
    connection.execute(f"attach '{given.file}' as stored (read_only)")
    for table in TABLES.get(given.query, ["t"]):
        connection.execute(f"create table {table} as from stored.{table}")
    connection.execute("detach stored")
    connection.execute(query).fetchall()
    if given.plan:
        connection.execute("pragma enable_profiling = 'json'")
        connection.execute(f"pragma profiling_output = '{given.plan}'")
        connection.execute(query).fetchall()
        return
    if given.region:
        control("on")
        connection.execute(query).fetchall()
        control("off")
        return
    if given.counted:
        with counted_region():
            for _ in range(given.counted):
                connection.execute(query).fetchall()
        return
    for _ in range(given.runs):
        used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        connection.execute(query).fetchall()
        now = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        print(json.dumps({"cpu_s": cpu_s, "wall_s": time.perf_counter() - began}))


def control(instrumentation: str) -> None:
    """Callgrind counts from now on, or no longer."""
    command = ["callgrind_control", "-i", instrumentation, str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()

"""Distributed operators between processes of this host, against DuckDB on the same tables."""

import os
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from known import known
from refusals import told_by

from numatwin.engine_native import _engine
from numatwin.engine_native.engine_process import EngineTooLong
from numatwin.engine_native.systems.joins.cluster import (
    JOINS,
    OPERATORS,
    PHASES,
    operator_streams,
    run_operator,
    tables_of,
)
from numatwin.sim.systems.joins.spec import OPERATORS as SCENARIO_OPERATORS

Words = npt.NDArray[np.uint64]
TRANSPORTS = ["threads", *(["shm", "tcp"] if _engine.HAS_UCX else [])]
JOIN = "SELECT key, i.payload, o.payload FROM i JOIN o USING (key)"
AGGREGATION = "SELECT key, count(*), sum(payload) FROM o GROUP BY key"


def settings(operator: str, nodes: int, **more: Any) -> dict[str, Any]:
    """Small tables, in more messages, buffers and runs than windows and caches hold."""
    return {
        "name": operator, "nodes": nodes, "inner": 3_000, "outer": 20_000, "groups": 5_000,
        "exponent": 0.8, "selectivity": 0.6, "partitions": 32, "buffer_bytes": 256,
        "message_bytes": 1_024, "table_bytes": 8_192, "streams": operator_streams(1, 0, nodes),
        "rounds": 2, "keep_rows": True,
    } | more  # fmt: skip


def by_duckdb(given: dict[str, Any]) -> Words:
    """All rows of the result, sorted."""
    with duckdb.connect() as connection:
        for name, table in zip("io", tables_of(given), strict=True):
            connection.register(name, pa.table({"key": table[:, 0], "payload": table[:, 1]}))
        found = connection.execute(JOIN if given["name"] in JOINS else AGGREGATION)
        rows = found.fetchnumpy()
    return ordered(np.column_stack([np.asarray(column, np.uint64) for column in rows.values()]))


def ordered(rows: Words) -> Words:
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_result_is_duckdbs(operator: str, transport: str) -> None:
    given = settings(operator, nodes=3)
    found = run_operator(given, transport)
    np.testing.assert_array_equal(ordered(known(found.rows)), by_duckdb(given))


@pytest.mark.parametrize("operator", OPERATORS)
def test_tuples_of_eight_bytes_without_skew(operator: str) -> None:
    given = settings(operator, nodes=2, tuple_bytes=8, exponent=0.0, selectivity=1.0)
    found = run_operator(given, TRANSPORTS[-1])
    np.testing.assert_array_equal(ordered(known(found.rows)), by_duckdb(given))


@pytest.mark.parametrize("operator", OPERATORS)
def test_figures_of_each_round_and_node(operator: str) -> None:
    given = settings(operator, nodes=2, rounds=3, keep_rows=False)
    found = run_operator(given, "threads")
    assert found.rows is None
    assert len(found.rounds) == len(found.round_s) == 3
    inner, outer = tables_of(given)
    keys = outer[:, 0]
    for nodes, round_s in zip(found.rounds, found.round_s, strict=True):
        assert min(node.began_s for node in nodes) == 0.0
        tuples, rows = (sum(getattr(node, name) for node in nodes) for name in ("tuples", "rows"))
        if operator in JOINS:
            assert tuples == rows == np.isin(keys, inner[:, 0]).sum()
        else:
            assert (tuples, rows) == (len(keys), len(np.unique(keys)))
        for node in nodes:
            assert len(node.phase_s) == len(PHASES[operator])
            assert 0 < sum(node.phase_s) <= node.ended_s - node.began_s + 1e-9 <= round_s + 1e-9
        # About half of what each has belongs to the other; of groups only what is left of them.
        sent = sum(node.sent_bytes for node in nodes)
        share = 0.5 * 16 * (len(keys) + (len(inner) if operator in JOINS else 0))
        if "aggregation" in operator:
            assert 0 < sent < 3 * share
        elif operator == "ghj-bloom":  # what passes, of both tables, and filters
            assert 0.4 < sent / share < 1.0
        else:
            assert 0.7 < sent / share < 1.3


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
def test_nothing_is_left_of_processes() -> None:
    def segments() -> set[str]:
        return {name for name in os.listdir("/dev/shm") if name.startswith("numatwin-")}

    before = segments()
    run_operator(settings("rrj", nodes=2), "shm")
    assert segments() <= before


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
def test_processes_are_stopped_after_their_time() -> None:
    many = settings("rdma-aggregation", nodes=2, rounds=10_000, keep_rows=False)
    with pytest.raises(EngineTooLong, match=r"the native engine took longer than 0\.5 s"):
        run_operator(many, "tcp", timeout_s=0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partitions": 48}, "partitions: expected a power of two"),
        ({"nodes": 64, "streams": operator_streams(1, 0, 64)}, "partitions: expected a power"),
        ({"name": "hash"}, "operator: hash"),
        ({"selectivity": 1.5}, "selectivity: expected 0 to 1"),
        ({"cpus": [0, 100_000]}, "the native run failed: "),
    ],
)
def test_what_cannot_be_played_is_refused(change: dict[str, Any], message: str) -> None:
    assert message in told_by(run_operator, settings("rrj", nodes=2) | change, "threads")


def test_the_engine_has_the_operators_of_the_scenarios() -> None:
    assert set(OPERATORS) == {name for kind in SCENARIO_OPERATORS.values() for name in kind}


def test_an_unknown_transport_is_refused() -> None:
    assert "unknown transport" in told_by(run_operator, settings("rrj", nodes=2), "pigeon")

"""A run of a distributed operator on this host: its nodes as processes (or threads)."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np
import numpy.typing as npt

from ....inputs import InputError
from ....sim.kernel.streams import stream_key
from ..._engine import JoinBoard, JoinRun, join_by_threads, join_tables
from ...engine_process import EngineProcess, EngineTooLong
from ...transports import THREADS, ucx_settings

Words = npt.NDArray[np.uint64]
JOINS = ("rrj", "ghj", "ghj-bloom", "rdma-ghj")
OPERATORS = (*JOINS, "aggregation", "rdma-aggregation")
# What each node's time divides into.
PHASES: Mapping[str, tuple[str, str, str]] = {
    "rrj": ("partition", "wait for others", "join"),
    "ghj": ("exchange", "partition", "join"),
    "ghj-bloom": ("filter and exchange", "partition", "join"),
    "rdma-ghj": ("exchange", "partition", "join"),
    "aggregation": ("aggregate own share", "exchange and add up", "result"),
    "rdma-aggregation": ("aggregate and send", "wait for others", "add up"),
}
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class NodeFigures:
    """What one node did in a round: its tuples joined (or aggregated), rows of the result, bytes
    to others; times in seconds since the round's first node began, and by phase (``cpu_s``: on a
    processor)."""

    began_s: float
    ended_s: float
    phase_s: tuple[float, ...]
    cpu_s: tuple[float, ...]
    tuples: int
    rows: int
    sent_bytes: int


@dataclass(frozen=True)
class JoinRounds:
    """``rounds``: by round and node; ``rows`` (k, 3) of the last one's result, where kept: key and
    both payloads of a join; key, tuples and sum of a group. ``wall_s``: with drawing the tables.
    """

    rounds: tuple[tuple[NodeFigures, ...], ...]
    rows: Words | None
    wall_s: float

    @property
    def round_s(self) -> tuple[float, ...]:
        """From the first node's beginning to the last one's end."""
        return tuple(max(node.ended_s for node in nodes) for nodes in self.rounds)


def operator_streams(seed: int, replication: int, nodes: int) -> list[int]:
    """Philox keys for both tables of each node."""
    return [
        word
        for node in range(nodes)
        for table in ("inner", "outer")
        for word in stream_key(seed, replication, f"{table} table of node {node}")
    ]


def run_operator(
    settings: Mapping[str, Any], transport: str, *, timeout_s: float = TIMEOUT_S
) -> JoinRounds:
    """Runs all rounds of an operator; ``settings``: fields of ``JoinRun``.

    With transport ``threads`` all nodes are threads of this process; else each is a process, which
    is stopped after ``timeout_s`` (EngineTooLong). Each round is checked: every tuple was joined or
    aggregated once. Raises InputError.
    """
    began_s = time.monotonic()
    fields = dict(settings) | ucx_settings(transport)
    run = make_run(fields)
    found, rows = (
        _by_threads(run) if transport == THREADS else _by_processes(run, fields, timeout_s)
    )
    rounds = tuple(_figures(nodes) for nodes in found)
    return JoinRounds(rounds, rows if run.keep_rows else None, time.monotonic() - began_s)


def tables_of(settings: Mapping[str, Any]) -> tuple[Words, Words]:
    """Both tables of all nodes, (tuples, 2) each: keys and payloads. Raises InputError."""
    run = make_run(settings)
    drawn = [join_tables(run, node) for node in range(run.nodes)]
    inner, outer = (np.concatenate([tables[k] for tables in drawn]) for k in (0, 1))
    return inner, outer


def make_run(settings: Mapping[str, Any]) -> JoinRun:
    """The engine's own form of a run. Raises InputError."""
    run = JoinRun()
    for name, value in settings.items():
        setattr(run, name, value)
    try:
        run.check()
    except ValueError as failure:
        raise InputError(str(failure)) from None
    return run


def _by_threads(run: JoinRun) -> tuple[Any, Words]:
    try:
        rounds, rows = join_by_threads(run)
    except (RuntimeError, MemoryError) as failure:
        raise InputError(f"the native run failed: {failure}") from None
    return rounds, rows


def _by_processes(run: JoinRun, fields: dict[str, Any], timeout_s: float) -> tuple[Any, Words]:
    try:
        # A file in memory without a name: it is gone with the last process that has it.
        with FileIO(os.memfd_create("numatwin-joins"), "r+") as file:
            file.truncate(run.board_bytes)
            at = file.fileno()
            board = JoinBoard(run, at)
            process = EngineProcess("join_by_processes", fields, (at,), (at,), form="JoinRun")
            try:
                rounds = process.result(timeout_s)
            except EngineTooLong:
                raise
            except InputError as failure:
                raise InputError(f"the native run failed: {failure.message}") from None
            finally:
                process.close()
            return rounds, board.rows()
    except (OSError, RuntimeError) as failure:
        raise InputError(f"a run of processes cannot begin: {failure}") from None


def _figures(nodes: Sequence[Mapping[str, Any]]) -> tuple[NodeFigures, ...]:
    first_ns = min(node["began_ns"] for node in nodes)
    return tuple(
        NodeFigures(
            began_s=(node["began_ns"] - first_ns) * 1e-9,
            ended_s=(node["ended_ns"] - first_ns) * 1e-9,
            phase_s=tuple(ns * 1e-9 for ns in node["phase_ns"]),
            cpu_s=tuple(ns * 1e-9 for ns in node["cpu_ns"]),
            tuples=node["tuples"],
            rows=node["rows"],
            sent_bytes=node["sent_bytes"],
        )
        for node in nodes
    )

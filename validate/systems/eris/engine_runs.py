"""Engines that do a single kind of work, and the time of each step of their loop."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....inputs import InputError
from ...measure.bench import Bench, Samples

BATCH = 128
LINE_BYTES = 64
FOUND_PART = 0.1
RANKED_EXPONENT = 0.99
ROUNDS = 3
WINDOW_S, SETTLE_S = 0.003, 0.01
WINDOWS_S = 20.0


@dataclass(frozen=True)
class Loop:
    """How an engine is made for a figure. ``batches``: made by each worker in a round for each of
    all workers. ``buffer``: commands of one, by default as many as that makes. ``kinds``: how many
    operations that do the same are drawn, evenly. ``handed``: all keys are the first worker's, who
    gets a long queue and makes next to nothing.
    """

    operation: str
    amount: int
    batch: int = BATCH
    result: str = "sum"
    ranked: bool = False
    scattered: bool = True
    workers: int = 1
    batches: int = 1
    buffer: int | None = None
    kinds: int = 1
    handed: bool = False
    found: float = FOUND_PART

    @property
    def name(self) -> str:
        """As measurements call it."""
        if self.handed:
            return f"{self.operation}-handed"
        if self.kinds > 1:
            return f"{self.operation}-split"
        if self.workers > 1:
            return f"{self.operation}-together"
        if self.batches > 1:
            return f"{self.operation}-rounds"
        if self.buffer is not None:
            return f"{self.operation}-parts"
        if not self.ranked:
            return self.operation
        return f"{self.operation}-{'ranked' if self.scattered else 'placed'}"


def steps_of(bench: Bench, loop: Loop) -> dict[str, Samples]:
    """Nanoseconds a command of each step, of all of it (``all``), and of a flush (``flushes``)."""
    from ....engine_native._engine import STEPS

    found = np.concatenate([_round(bench, loop) for _ in range(ROUNDS)])
    names = [*STEPS, "all", "flushes"]
    return {name: Samples(found[:, k]) for k, name in enumerate(names)}


def _round(bench: Bench, loop: Loop) -> Any:
    """Windows of an engine of its own."""
    from ....engine_native._engine import Engine

    engine = Engine(_setup(bench, loop))
    engine.load()
    engine.start()
    try:
        time.sleep(SETTLE_S)
        return _windows(engine, max(bench.effort.wanted // 3, 3), loop.workers)
    finally:
        engine.cancel()


def _setup(bench: Bench, loop: Loop) -> Any:
    from ....engine_native._engine import EngineSetup, KeyDraws

    start, home = bench.layout.first
    workers = loop.workers
    setup = EngineSetup([0] * workers, list(start.cores[:workers]), [bench.layout.binding(home)])
    if loop.operation == "scan":
        setup.add_column("column", loop.amount * workers)
        setup.add_operation("scan", "scan", 0, loop.found, loop.result)
        keys = None
    else:
        setup.add_index("index", loop.amount * workers)
        mix = ("lookup", "upsert") if loop.operation == "mixed" else (loop.operation,) * loop.kinds
        for index, operation in enumerate(mix):
            setup.add_operation(f"{operation} {index}", operation, 0)
        if loop.ranked:
            keys = KeyDraws.zipf(loop.amount, RANKED_EXPONENT, loop.scattered)
        else:
            keys = KeyDraws([0, loop.amount * (1 if loop.handed else workers)], [1.0])
    commands = loop.batches * loop.batch
    setup.buffer_commands = loop.buffer or commands
    setup.batch = loop.batch if workers == 1 else BATCH
    setup.round_commands = workers * commands
    setup.incoming_commands = 4 * workers * commands
    setup.command_bytes, setup.scans_max, setup.seed = 16, 1, 1
    operations = 2 if loop.operation == "mixed" else loop.kinds
    setup.set_phase([1.0 / operations] * operations, [keys] * operations)
    return setup


def _windows(engine: Any, wanted: int, workers: int) -> Any:
    """(windows, steps + 2) nanoseconds: of each step and of all for a command, of a flush."""
    from ....engine_native.systems.eris.setup import totals_of

    found: list[list[float]] = []
    before, until = totals_of(engine), time.monotonic() + WINDOWS_S
    while len(found) < wanted:
        if time.monotonic() > until:
            raise InputError(
                f"the engine did almost nothing in {WINDOWS_S:g} s: this host is too busy"
            )
        time.sleep(WINDOW_S)
        engine.check()
        now = totals_of(engine)
        done = float(now["executed"].sum() - before["executed"].sum())
        flushes = float(now["flushes"].sum() - before["flushes"].sum())
        if done > 0:
            steps = (now["step_ns"] - before["step_ns"]).sum(axis=1)
            flush = steps[1] / max(flushes, 1.0)
            passed_ns = (now["time_s"] - before["time_s"]) * 1e9
            found.append([*(steps / done), workers * passed_ns / done, flush])
        before = now
    return np.array(found)

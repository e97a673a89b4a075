"""What the engine's own loop takes: one worker, data in its first caches, by step.

From these figures come the ``engine`` costs of a machine file: what does not depend on how many
commands stand in a batch, and what each command adds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

from ...sim.eris.routing import extra_headers, flushes_per_command, scatter_steps
from ...topologies.engine_costs import EngineCosts, WalkPoint
from ...topologies.measurements import Measurement
from .bench import Bench
from .engine_runs import BATCH, LINE_BYTES, ROUNDS, Loop, steps_of
from .engine_scans import measure_scans, scan_costs
from .samples import Samples

LOOP = "a worker of the engine alone, its data in the first caches: time of a step for each command"
DRAW = "keys drawn evenly in a row, in pieces of 16,384; one thread"
DENSE = "random keys of a prefix tree of all keys from 0 on, in batches; one thread"

# One batch a round: the smaller, the more of it is what a batch itself costs.
BATCHES = (1, 16, BATCH)
# Commands in a buffer of two workers that send each other half of what they make.
TOGETHER = (1, 16, 128, 1024)
COMMANDS_PER_LINE = 4.0
# Commands under a header, where buffers are smaller than a batch.
PART = 16
# A tree of one array of values, and one of a node above arrays: both in the first cache.
ARRAY_KEYS, NODE_KEYS = 256, 2_048
# Ranks are scattered over the next power of 4, here this one: so many keys take a step each, others
# up to four on average.
RANKED_KEYS = 1 << 20
SCATTERED_KEYS = (RANKED_KEYS, RANKED_KEYS // 2, RANKED_KEYS // 3, RANKED_KEYS // 4 + 1)
DRAWN = 1 << 14
# Sizes of the index, in powers of two: from the first cache to far beyond the last.
WALK_BITS, QUICK_WALK_BITS = range(8, 27), range(8, 25, 2)
WALK_BYTES_PER_KEY = 9
TREE_LEVELS_NODE = 2
LEAST_S = 1e-12


def measure(bench: Bench) -> Iterator[float]:
    """Steps by operation and size of the batch, drawing of keys, lines of scans."""
    loops = [
        Loop(kind, keys)
        for kind, keys in (("lookup", ARRAY_KEYS), ("upsert", ARRAY_KEYS), ("upsert", NODE_KEYS))
    ]
    loops += [Loop("lookup", NODE_KEYS, batch) for batch in BATCHES]
    if len(bench.layout.starts[0].cores) > 1:
        loops += [Loop("lookup", NODE_KEYS, batch, workers=2) for batch in TOGETHER]
    loops += [Loop("mixed", NODE_KEYS)]
    loops += [Loop("route", RANKED_KEYS)]
    loops += [Loop("route", RANKED_KEYS, ranked=True, scattered=False)]
    loops += [Loop("route", keys, ranked=True) for keys in SCATTERED_KEYS]
    for at, loop in enumerate(loops):
        for step, samples in steps_of(bench, loop).items():
            bench.add(
                "loop", samples, "time", LOOP, operation=loop.name, keys=loop.amount,
                batch=loop.batch, step=step,
            )  # fmt: skip
        yield 0.5 * (at + 1) / len(loops)
    bench.add("draw", _draws(bench), "time", DRAW)
    yield 0.6
    yield from (0.6 + 0.4 * part for part in measure_scans(bench))


def measure_walk(bench: Bench) -> Iterator[float]:
    """A key looked up and upserted by size of a dense index."""
    from ...engine_native._engine import MeasuredIndex

    cpu = bench.layout.starts[0].cores[0]
    sizes = [1 << bits for bits in (QUICK_WALK_BITS if bench.effort.quick else WALK_BITS)]
    free = max(home.memory_bytes for home in bench.layout.homes)
    for at, keys in enumerate(sizes):
        if keys * WALK_BYTES_PER_KEY > free // 2:
            bench.warn(f"walk: not enough free memory for {keys:,} keys: not measured")
            break
        index = MeasuredIndex(keys, True)
        for name, maker in (("walk-lookup", index.lookups), ("walk-upsert", index.upserts)):
            rounds = [
                bench.run([(cpu, maker(BATCH))], limit_s=0.05).ns_each() for _ in range(ROUNDS)
            ]
            best = min(rounds, key=lambda samples: (samples.noisy, samples.median))
            bench.add(name, best, "time", DENSE, keys=keys, batch=BATCH, place="dense")
        yield (at + 1) / len(sizes)


def _draws(bench: Bench) -> Samples:
    """Nanoseconds of drawing a key."""
    from ...engine_native._engine import KeyDraws

    draws, times = KeyDraws([0, RANKED_KEYS], [1.0]), []
    for _ in range(ROUNDS * bench.effort.wanted):
        begun = time.perf_counter_ns()
        draws.draw(1, 0, DRAWN)
        times.append((time.perf_counter_ns() - begun) / DRAWN)
    # What disturbs makes it longer only.
    return Samples(np.sort(np.array(times))[: bench.effort.wanted])


# -- from measurements to costs -------------------------------------------------------------------


def engine_costs(measurements: Sequence[Measurement]) -> EngineCosts | None:
    """The engine's costs that these figures tell; None where its loop was not measured."""
    found = _Figures(measurements)
    if found.loop("lookup", NODE_KEYS, BATCH, "all") is None:
        return None
    costs: dict[str, Any] = {}
    array = found.loop("lookup", ARRAY_KEYS, BATCH, "walk")
    parts = {step: found.fixed_and_each(step) for step in ("issue", "receive", "walk", "all")}
    flush = found.loop("lookup", NODE_KEYS, BATCH, "flush") or 0.0
    fixed_all, each_all = parts["all"]
    single_flush = found.loop("lookup", NODE_KEYS, 1, "flushes") or 0.0
    full_flush = found.loop("lookup", NODE_KEYS, BATCH, "flushes") or 0.0
    lines = BATCH * 16 / LINE_BYTES
    costs["flush_line"] = max(full_flush - single_flush, 0.0) / (lines - 1)
    costs["flush_fixed"] = max(single_flush - costs["flush_line"], 0.0)
    each = {step: parts[step][1] for step in ("issue", "receive", "walk")}
    costs["batch"] = max(fixed_all - single_flush, 0.0)
    # What the loop does between its steps goes with receiving.
    between = max(each_all - sum(each.values()) - flush, 0.0)
    costs["receive"] = each["receive"] + between
    costs["generate"] = found.value("draw") or 0.0
    evenly = found.loop("route", RANKED_KEYS, BATCH, "issue")
    placed = found.loop("route-placed", RANKED_KEYS, BATCH, "issue")
    if evenly is not None and placed is not None:
        costs["generate_ranked"] = costs["generate"] + max(placed - evenly, 0.0)
    alone = max(each["issue"] - costs["generate"], 0.0)
    # Upserts carry a value, of a mix half of the commands.
    apart = [found.loop(name, NODE_KEYS, BATCH, "issue") for name in ("lookup", "upsert")]
    mixed = found.loop("mixed", NODE_KEYS, BATCH, "issue")
    if apart[0] is not None and apart[1] is not None:
        costs["generate_value"] = max(apart[1] - apart[0], 0.0)
        if mixed is not None:
            costs["choose"] = max(mixed - (apart[0] + apart[1]) / 2, 0.0)
    costs.update(found.parts())
    walk = found.loop("lookup", NODE_KEYS, BATCH, "walk") or 0.0
    costs["tree_level"] = max(walk - (array or walk), 0.0)
    costs["tree_entry"] = each["walk"] - TREE_LEVELS_NODE * costs["tree_level"]
    upsert = found.loop("upsert", NODE_KEYS, BATCH, "walk")
    upsert_array = found.loop("upsert", ARRAY_KEYS, BATCH, "walk")
    if upsert is not None:
        whole = costs["tree_entry"] + TREE_LEVELS_NODE * costs["tree_level"] + upsert - walk
        costs["upsert_level"] = max(upsert - (upsert_array or upsert), 0.0)
        costs["upsert_entry"] = whole - TREE_LEVELS_NODE * costs["upsert_level"]
    costs.update(scan_costs(measurements))
    message_s = found.value("message.latency")
    if message_s is not None:
        costs["message"] = message_s
    costs.update(found.together(costs, alone))
    return EngineCosts.model_validate(
        {
            **{name: _time(value) for name, value in costs.items()},
            "walk": found.walk(),
            "scatter": found.scatters(),
            "route": [
                {"targets": int(point["targets"]), "time": _time(point["seconds"])}
                for point in found.routes(alone)
            ],
        }
    )


def _time(seconds: float) -> str:
    # A difference that is lost in the noise is still a time.
    return f"{max(seconds, LEAST_S) * 1e9:.4g} ns"


def _bytes(measurement: Measurement) -> float:
    """Of its buffers."""
    buffer = measurement.parameters.buffer
    return buffer.value if buffer is not None else 0.0


class _Figures:
    """Values by name and parameters, in SI units."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._measurements = measurements

    def value(self, name: str, **parameters: object) -> float | None:
        """The last figure of that name with these parameters."""
        found = [
            m.value.value
            for m in self._measurements
            if m.name == name
            and all(getattr(m.parameters, key) == value for key, value in parameters.items())
        ]
        return found[-1] if found else None

    def loop(self, operation: str, keys: int, batch: int, step: str) -> float | None:
        """Of a step, for each command."""
        return self.value("loop", operation=operation, keys=keys, batch=batch, step=step)

    def fixed_and_each(self, step: str) -> tuple[float, float]:
        """What a batch costs, and what a command adds: least squares in relative terms."""
        known = [(batch, self.loop("lookup", NODE_KEYS, batch, step)) for batch in BATCHES]
        points = [(batch, value) for batch, value in known if value]
        if len(points) < 2:
            return 0.0, points[0][1] if points else 0.0
        values = np.array([value for _, value in points])
        rows = np.array([[1.0 / batch, 1.0] for batch, _ in points]) / values[:, None]
        fixed, each = np.linalg.lstsq(rows, np.ones(len(points)), rcond=None)[0]
        return max(float(fixed), 0.0), max(float(each), 0.0)

    def routes(self, alone_s: float) -> list[dict[str, float]]:
        """By number of targets: of one, in the loop; of more, with the largest buffers, less what
        their flushes take.
        """
        found = {1: alone_s}
        largest = max((_bytes(m) for m in self._measurements if m.name == "routing"), default=0.0)
        for m in self._measurements:
            if m.name == "routing" and _bytes(m) == largest and m.parameters.targets:
                found[m.parameters.targets] = max(m.value.value, alone_s)
        return [{"targets": n, "seconds": time_s} for n, time_s in sorted(found.items())]

    def parts(self) -> dict[str, float]:
        """What one more header of a batch costs who executes it, and one more operation in it."""

        def executing(name: str) -> float:
            steps = (self.loop(name, NODE_KEYS, BATCH, step) for step in ("receive", "walk"))
            return BATCH * sum(step or 0.0 for step in steps)

        if self.loop("lookup-parts", NODE_KEYS, BATCH, "walk") is None:
            return {}
        whole = executing("lookup")
        part = max(executing("lookup-parts") - whole, 0.0) / (BATCH / PART - 1)
        both = executing("mixed") - (whole + executing("upsert")) / 2
        return {"part": part, "group": max(both - part, 0.0)}

    def together(self, costs: Mapping[str, float], alone_s: float) -> dict[str, float]:
        """What a flush to another core costs more, and each line of it.

        Two workers send each other half of what they make. What their commands take beyond what the
        other costs say is put down to flushes, in which a core waits twice for the other's lines,
        and to the lines of commands.
        """
        routed = {int(point["targets"]): point["seconds"] for point in self.routes(alone_s)}
        own_s = costs["generate"] + routed.get(2, alone_s) + costs["receive"]
        own_s += costs["tree_entry"] + TREE_LEVELS_NODE * costs["tree_level"]
        rows, more = [], []
        for size in TOGETHER:
            both_s = self.loop("lookup-together", NODE_KEYS, size, "all")
            if both_s is None:
                return {}
            flushes = flushes_per_command(2 * size, size, np.array([0.5, 0.5]))
            line_s = costs["flush_line"] / COMMANDS_PER_LINE
            made = min(BATCH, 2 * size)
            batch_s = costs["batch"] / made
            batch_s += costs.get("part", 0.0) * extra_headers(made, 2, np.ones(1))
            beyond_s = both_s - own_s - batch_s - flushes * costs["flush_fixed"] - line_s
            rows.append([flushes / both_s, 0.5 / COMMANDS_PER_LINE / both_s])
            more.append(max(beyond_s, 0.0) / both_s)
        (message_s, line_s), _ = nnls(np.array(rows), np.array(more))
        return {"message": float(message_s), "handed_line": float(line_s)}

    def scatters(self) -> list[dict[str, Any]]:
        """By steps: what drawing scattered keys takes more than drawing them by place."""
        placed = self.loop("route-placed", RANKED_KEYS, BATCH, "issue")
        points = []
        for keys in SCATTERED_KEYS if placed is not None else ():
            ranked = self.loop("route-ranked", keys, BATCH, "issue")
            if ranked is not None:
                more = _time(ranked - (placed or 0.0))
                points.append({"steps": scatter_steps(keys), "time": more})
        return points

    def walk(self) -> tuple[WalkPoint, ...]:
        """By size of the index."""
        sizes = sorted(
            {m.parameters.keys or 0 for m in self._measurements if m.name == "walk-lookup"}
        )
        points = []
        for keys in sizes:
            lookup = self.value("walk-lookup", keys=keys)
            upsert = self.value("walk-upsert", keys=keys)
            if lookup and upsert:
                points.append({"keys": keys, "lookup": _time(lookup), "upsert": _time(upsert)})
        return tuple(WalkPoint.model_validate(point) for point in points)

"""Times of the engine's loop: one worker, data in its first caches, by step.

From these figures come the ``engines.eris`` facts of a machine file: what does not depend on how
many commands stand in a batch, and what each command adds.

What scans take in the engine: each, by line and result, and where two workers share one.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from ....sim.systems.eris.facts import ENGINE, ErisFacts, WalkPoint
from ....sim.systems.eris.partitioned import FLUSH_WAITS
from ....sim.systems.eris.routing import (
    batches_per_command,
    flushes_per_command,
    part_headers,
    scatter_steps,
)
from ....topologies.measurements import Measurement, figures
from ....topologies.schema import MachineDescription
from ...measure.bench import Bench, Samples, methods_of
from .engine_runs import BATCH, FOUND_PART, LINE_BYTES, ROUNDS, Loop, steps_of
from .engine_steps import COMMAND_BYTES, HEADER_BYTES

METHODS = methods_of("loop")

# One batch a round: the smaller, the more of it is what a batch itself costs.
BATCHES = (1, 16, BATCH)
# Commands in a buffer of two workers that send each other half of what they make.
TOGETHER = (1, 16, 128, 1024)
LINE_COMMANDS = 4.0
# Commands of a batch of which a round has some, with room for their headers.
SMALL = 16
BATCHES_A_ROUND, ROUND_ROOM = 8, 256
# Batches in a round of two operations that do the same: many, as each operation ends in one of its
# own.
SPLIT_BATCHES, KINDS = 16, 2
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
        loops += [Loop("route", ARRAY_KEYS, batch, workers=2) for batch in TOGETHER]
        loops += [Loop("lookup", ARRAY_KEYS, workers=2, batches=SPLIT_BATCHES, handed=True)]
    loops += [Loop("mixed", NODE_KEYS)]
    loops += [Loop("route", ARRAY_KEYS, batches=SPLIT_BATCHES, kinds=kinds) for kinds in (1, KINDS)]
    loops += [Loop("lookup", NODE_KEYS, SMALL, batches=BATCHES_A_ROUND, buffer=ROUND_ROOM)]
    loops += [Loop("route", RANKED_KEYS)]
    loops += [Loop("route", RANKED_KEYS, ranked=True, scattered=False)]
    loops += [Loop("route", keys, ranked=True) for keys in SCATTERED_KEYS]
    for index, loop in enumerate(loops):
        for step, samples in steps_of(bench, loop).items():
            bench.add(
                "loop", samples, "time", METHODS["loop"], operation=loop.name, keys=loop.amount,
                batch=loop.batch, step=step,
            )  # fmt: skip
        yield 0.5 * (index + 1) / len(loops)
    bench.add("draw", _draws(bench), "time", METHODS["draw"])
    yield 0.6
    yield from (0.6 + 0.4 * part for part in measure_scans(bench))


def measure_walk(bench: Bench) -> Iterator[float]:
    """A key looked up and upserted by size of a dense index."""
    from ....engine_native._engine import MeasuredIndex

    cpu = bench.layout.starts[0].cores[0]
    sizes = [1 << bits for bits in (QUICK_WALK_BITS if bench.effort.quick else WALK_BITS)]
    free = max(home.memory_bytes for home in bench.layout.homes)
    for size_index, keys in enumerate(sizes):
        if keys * WALK_BYTES_PER_KEY > free // 2:
            bench.warn(f"walk: not enough free memory for {keys:,} keys: not measured")
            break
        index = MeasuredIndex(keys, True)
        for name, maker in (("walk-lookup", index.lookups), ("walk-upsert", index.upserts)):
            rounds = [
                bench.run([(cpu, maker(BATCH))], limit_s=0.05).ns_each() for _ in range(ROUNDS)
            ]
            best = min(rounds, key=lambda samples: (samples.noisy, samples.median))
            bench.add(name, best, "time", METHODS["walk"], keys=keys, batch=BATCH, place="dense")
        yield (size_index + 1) / len(sizes)


def _draws(bench: Bench) -> Samples:
    """Nanoseconds of drawing a key."""
    from ....engine_native._engine import KeyDraws

    draws, times = KeyDraws([0, RANKED_KEYS], [1.0]), []
    for _ in range(ROUNDS * bench.effort.wanted):
        begun = time.perf_counter_ns()
        draws.draw(1, 0, DRAWN)
        times.append((time.perf_counter_ns() - begun) / DRAWN)
    # What disturbs makes it longer only.
    return Samples(np.sort(np.array(times))[: bench.effort.wanted])


def described(
    description: MachineDescription, measurements: Sequence[Measurement], day: str
) -> MachineDescription:
    """``description`` with what these figures tell of the engine, where its loop was measured."""
    facts = engine_facts(measurements)
    return description if facts is None else description.with_facts(ENGINE, facts)


def engine_facts(measurements: Sequence[Measurement]) -> ErisFacts | None:
    """What these figures tell of the engine; None where its loop was not measured."""
    found = _Figures(measurements)
    if found.loop("lookup", NODE_KEYS, BATCH, "all") is None:
        return None
    costs: dict[str, Any] = {}
    array = found.loop("lookup", ARRAY_KEYS, BATCH, "walk")
    fixed, each = found.fixed_and_each()
    single_flush = found.loop("lookup", NODE_KEYS, 1, "flushes") or 0.0
    full_flush = found.loop("lookup", NODE_KEYS, BATCH, "flushes") or 0.0
    lines = BATCH * 16 / LINE_BYTES
    costs["flush_line"] = max(full_flush - single_flush, 0.0) / (lines - 1)
    costs["flush_fixed"] = max(single_flush - costs["flush_line"], 0.0)
    round_s = found.round_s()
    if round_s is None:
        costs["batch"] = sum(fixed.values())
    else:
        costs["batch"], costs["round"] = fixed["issue"], round_s
        costs["batch_executed"] = max(sum(fixed.values()) - fixed["issue"] - round_s, 0.0)
    # What the loop does between its steps goes with receiving.
    costs["receive"] = each["receive"] + each["between"]
    costs["generate"] = found.value("draw") or 0.0
    evenly = found.loop("route", RANKED_KEYS, BATCH, "issue")
    placed = found.loop("route-placed", RANKED_KEYS, BATCH, "issue")
    if evenly is not None and placed is not None:
        costs["generate_ranked"] = costs["generate"] + max(placed - evenly, 0.0)
    alone = max(each["issue"] - costs["generate"], 0.0)
    # Upserts carry a value, of a mix half of the commands.
    separate = [found.loop(name, NODE_KEYS, BATCH, "issue") for name in ("lookup", "upsert")]
    mixed = found.loop("mixed", NODE_KEYS, BATCH, "issue")
    if separate[0] is not None and separate[1] is not None:
        costs["generate_value"] = max(separate[1] - separate[0], 0.0)
        if mixed is not None:
            costs["choose"] = max(mixed - (separate[0] + separate[1]) / 2, 0.0)
    costs.update(found.parts(fixed["walk"] if round_s is not None else 0.0))
    walk = found.loop("lookup", NODE_KEYS, BATCH, "walk") or 0.0
    costs["tree_level"] = max(walk - (array or walk), 0.0)
    costs["tree_entry"] = each["walk"] - TREE_LEVELS_NODE * costs["tree_level"]
    routed = found.loop("route", RANKED_KEYS, BATCH, "walk")
    if routed is not None:
        costs["gather"] = max(routed - fixed["walk"] / BATCH, 0.0)
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
    routes = found.routes(alone, costs)
    costs.update(found.together(costs, {int(p["targets"]): p["seconds"] for p in routes}, alone))
    return ErisFacts.model_validate(
        {
            **{name: _time(value) for name, value in costs.items()},
            "walk": found.walk(),
            "scatter": found.scatters(),
            "route": [
                {"targets": int(point["targets"]), "time": _time(point["seconds"])}
                for point in routes
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
        found = figures(self._measurements, name, **parameters)
        return found[-1].value.value if found else None

    def loop(self, operation: str, keys: int, batch: int, step: str) -> float | None:
        """Of a step, for each command."""
        return self.value("loop", operation=operation, keys=keys, batch=batch, step=step)

    def steps(self, operation: str, keys: int, batch: int) -> dict[str, float]:
        """Of all but flushes, for each command; what lies between steps as ``between``."""
        names = ("issue", "flush", "receive", "walk", "all")
        found = {step: self.loop(operation, keys, batch, step) or 0.0 for step in names}
        between = found.pop("all") - sum(found.values())
        del found["flush"]
        return {**found, "between": max(between, 0.0)}

    def fixed_and_each(self) -> tuple[dict[str, float], dict[str, float]]:
        """By step, what a batch costs that has a round for itself, and what a command adds: least
        squares in relative terms.
        """
        points = {batch: self.steps("lookup", NODE_KEYS, batch) for batch in BATCHES}
        fixed, each = {}, {}
        for step in points[BATCH]:
            values = np.array([max(points[batch][step], LEAST_S) for batch in BATCHES])
            rows = np.array([[1.0 / batch, 1.0] for batch in BATCHES]) / values[:, None]
            (fixed[step], each[step]), _ = nnls(rows, np.ones(len(BATCHES)))
        return fixed, each

    def round_s(self) -> float | None:
        """Of a round, however many batches it has: from one and from several of one size."""
        if self.loop("lookup-rounds", NODE_KEYS, SMALL, "all") is None:
            return None
        single, many = (
            sum(self.steps(name, NODE_KEYS, SMALL).values()) for name in ("lookup", "lookup-rounds")
        )
        return max(single - many, 0.0) * SMALL / (1.0 - 1.0 / BATCHES_A_ROUND)

    def routes(self, alone_s: float, costs: Mapping[str, float]) -> list[dict[str, float]]:
        """By number of targets: of one, in the loop; of more, with the largest buffers, less what
        their flushes take.
        """
        found = {1: alone_s}
        largest = max((_bytes(m) for m in self._measurements if m.name == "routing"), default=0.0)
        for m in self._measurements:
            if m.name == "routing" and _bytes(m) == largest and m.parameters.targets:
                flush_s = costs["flush_fixed"] + costs["flush_line"] * largest / LINE_BYTES
                flushed_s = flush_s * COMMAND_BYTES / (largest - HEADER_BYTES)
                found[m.parameters.targets] = max(m.value.value - flushed_s, alone_s)
        return [{"targets": n, "seconds": time_s} for n, time_s in sorted(found.items())]

    def taking(self, name: str, keys: int) -> float | None:
        """What receiving and executing take, for each command."""
        steps = [self.loop(name, keys, BATCH, step) for step in ("receive", "walk")]
        return None if None in steps else sum(step or 0.0 for step in steps)

    def parts(self, walked_s: float) -> dict[str, float]:
        """What a header of a part of a batch costs who executes it, and one more operation in a
        round.

        The latter is one more batch, too, of which ``walked_s``, what it costs a walk, is not
        counted.
        """
        rounds, split = (self.taking(f"route-{name}", ARRAY_KEYS) for name in ("rounds", "split"))
        separate = [self.taking(name, NODE_KEYS) for name in ("mixed", "lookup", "upsert")]
        if rounds is None or split is None:
            return {}
        commands, shares = SPLIT_BATCHES * BATCH, np.full(KINDS, 1.0 / KINDS)
        more = batches_per_command(commands, BATCH, 1, shares) - 1.0 / BATCH
        headers = float(part_headers(BATCH, commands, shares).sum())
        part = max(split - rounds - more * walked_s, 0.0) / headers
        found = {"part": part}
        if None not in separate:
            mixed, lookup, upsert = (BATCH * (time or 0.0) for time in separate)
            group = mixed - (lookup + upsert) / 2 - BATCH * headers * part - walked_s
            found["group"] = max(group, 0.0)
        return found

    def handed_line_s(self) -> float | None:
        """Of reading a line of another core's where batches came whole, and many of them: then
        nothing is waited for but lines that do not come in time by themselves.
        """
        handed = self.taking("lookup-handed", ARRAY_KEYS)
        own = self.taking("lookup", ARRAY_KEYS)
        return None if handed is None or own is None else max(handed - own, 0.0) * LINE_COMMANDS

    def together(
        self, costs: Mapping[str, float], routed: Mapping[int, float], alone_s: float
    ) -> dict[str, float]:
        """What a flush to another core costs more on either side, each line of it, and each header.

        Two workers send each other half of what they make. What making and flushing take beyond
        what the other costs say is put to who flushes, which waits for the other's lines, and to
        the lines of commands; what all the rest takes, to who receives them: each time that it
        takes some, and for each header of a part of a batch.
        """
        makes_s = costs["generate"] + routed.get(2, alone_s) + costs["flush_line"] / LINE_COMMANDS
        read_line_s = self.handed_line_s()
        alone = self.steps("route-rounds", ARRAY_KEYS, BATCH)
        if "round" not in costs or read_line_s is None or not alone["walk"]:
            return {}
        # A command's, where batches are whole and rounds are long.
        takes_s = alone["receive"] + alone["walk"] + alone["between"]
        takes_s -= costs["batch_executed"] / BATCH + costs["round"] / (SPLIT_BATCHES * BATCH)
        takes_s += 0.5 / LINE_COMMANDS * read_line_s
        half = np.array([0.5])
        writes, wrote, reads, read = [], [], [], []
        for size in TOGETHER:
            all_s, *steps = (
                self.loop("route-together", ARRAY_KEYS, size, step)
                for step in ("all", "issue", "flush")
            )
            if all_s is None:
                return {}
            wrote_s = sum(step or 0.0 for step in steps)
            commands = 2 * size
            made = min(BATCH, commands)
            flushes = flushes_per_command(commands, size, np.array([0.5, 0.5]))
            writes.append(np.array([0.5 * flushes, 0.5 / LINE_COMMANDS]) / all_s)
            own_s = makes_s + costs["batch"] / made + flushes * costs["flush_fixed"]
            wrote.append((wrote_s - own_s) / all_s)
            # To either worker, from either one.
            parts = float(part_headers(made, size, half)[0])
            rounds = (1.0 - 0.5**commands) / commands
            reads.append(np.array([rounds, parts]) / all_s)
            own_s = takes_s + costs["round"] / commands + 2.0 * parts * costs.get("part", 0.0)
            own_s += costs["batch_executed"] * batches_per_command(commands, BATCH, 2, np.ones(1))
            read.append((all_s - wrote_s - own_s) / all_s)
        (write_s, write_line_s), _ = nnls(np.array(writes), np.array(wrote))
        (read_s, part_s), _ = nnls(np.array(reads), np.array(read))
        return {
            "message": write_s / FLUSH_WAITS,
            "message_read": read_s,
            "part_read": part_s,
            "handed_line": write_line_s + read_line_s,
            "handed_line_read": read_line_s,
        }

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


ENTRY_BYTES = 8
SCANNED, SCANNED_FEW = 1 << 14, 1 << 9
FOUND_MOST = 0.9
TOGETHER_SUM = "sum-together"


def measure_scans(bench: Bench) -> Iterator[float]:
    """Scans by result and size, of one worker and of two."""
    cached = _cached_entries(bench)
    cases = [(result, Loop("scan", SCANNED, result=result)) for result in ("sum", "bitmap")]
    cases += [("sum", Loop("scan", some)) for some in (SCANNED_FEW, cached)]
    # Of positions, a column in the first caches tells twice as little as another, by where in
    # memory they are put.
    positions = Loop("scan", cached, result="positions")
    cases += [("positions", positions), ("positions-most", replace(positions, found=FOUND_MOST))]
    if len(bench.layout.starts[0].cores) > 1:
        cases += [(TOGETHER_SUM, Loop("scan", n, workers=2)) for n in (SCANNED_FEW, cached)]
    for index, (name, scan) in enumerate(cases):
        steps, how = steps_of(bench, scan), "scan" if scan.workers == 1 else "scan-together"
        for step in ("scan", "all"):
            bench.add("scan", steps[step], "time", METHODS[how], operation=name,
                      keys=scan.amount * scan.workers, step=step)  # fmt: skip
        yield (index + 1) / len(cases)


def _cached_entries(bench: Bench) -> int:
    """Entries of a column that lies in the last cache, and in none before: four times the one
    before it, or the geometric mean of both."""
    sizes = [cache.size_bytes for cache in bench.layout.caches][-2:]
    if len(sizes) < 2:
        return 4 * SCANNED
    return int(min(4 * sizes[0], math.sqrt(sizes[0] * sizes[1]))) // ENTRY_BYTES


def scan_costs(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Seconds of each scan, and of its lines, by their names in a machine file; none where scans
    were not measured."""
    times = {
        (m.parameters.operation, m.parameters.keys, m.parameters.step): m.value.value
        for m in measurements
        if m.name == "scan"
    }
    sizes = sorted({keys or 0 for result, keys, _ in times if result == "sum"})
    if len(sizes) < 3 or ("positions-most", sizes[2], "scan") not in times:
        return {}
    few, some, many = sizes
    both = sorted({keys or 0 for result, keys, _ in times if result == TOGETHER_SUM})

    def line(result: str, more: int, less: int) -> float:
        """Of a line: what the larger column takes more."""
        difference = times[result, more, "scan"] - times["sum", less, "scan"]
        return max(difference, 0.0) / ((more - less) * ENTRY_BYTES / LINE_BYTES)

    found = {
        "scan_line_sum": line("sum", some, few),
        "scan_line_bitmap": line("bitmap", some, few),
        "scan_line_cached": line("sum", many, some),
    }
    found["scan"] = (
        times["sum", few, "all"] - few * ENTRY_BYTES / LINE_BYTES * (found["scan_line_sum"])
    )
    # What such a line takes longer than one of a sum, wherever both come from.
    least, most = (line(case, many, few) for case in ("positions", "positions-most"))
    entries = LINE_BYTES / ENTRY_BYTES
    found["scan_position"] = max(most - least, 0.0) / (entries * (FOUND_MOST - FOUND_PART))
    none = least - found["scan_position"] * entries * FOUND_PART - found["scan_line_cached"]
    found["scan_line_positions"] = found["scan_line_sum"] + max(none, 0.0)
    if len(both) == len((few, many)):
        # Half of it each, as large as what a worker alone scans.
        alone_s, together_s = times["sum", few, "all"], times[TOGETHER_SUM, both[0], "all"]
        found["scan_handed"] = max(together_s - alone_s, 0.0)
        separate_s = times[TOGETHER_SUM, both[1], "scan"] - times["sum", few, "scan"]
        lines = (both[1] / 2 - few) * ENTRY_BYTES / LINE_BYTES
        found["scan_line_cached_together"] = max(separate_s, 0.0) / lines
    return found

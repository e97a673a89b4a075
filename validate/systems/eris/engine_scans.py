"""What scans take in the engine: each, by line and result, and where two workers share one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....topologies.measurements import Measurement
from ...measure.bench import Bench
from .engine_runs import FOUND_PART, LINE_BYTES, Loop, steps_of

SCAN = "a worker of the engine alone, one scan of a column at a time; keys: its entries"
SCANS = "workers on two cores, one scan at a time of a column that both have half of; keys: entries"

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
        steps, how = steps_of(bench, scan), SCAN if scan.workers == 1 else SCANS
        for step in ("scan", "all"):
            bench.add("scan", steps[step], "time", how, operation=name,
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

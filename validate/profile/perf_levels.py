"""Where sampled loads found their data: ``perf mem report -F mem,sample`` and ``perf c2c report``.

Of loads whose level is known, those beyond the last-level cache each fetch a line. Loads that hit a
line fill buffer wait for a line that another one has asked for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...inputs import InputError
from .counts import Totals, count

# Of perf c2c's statistics, all loads that are at some level; those of one may be parts of another.
C2C = re.compile(r"\s*Load (Fill Buffer Hit|L1D hit|L2D hit|LLC hit|LLC Misses|.* HITM)\s*: +(\d+)")
C2C_HEAD = "Trace Event Information"
MEM_HEAD = re.compile(r"#?.*\bMemory access\b")
LEVEL = re.compile(r"((?:L\d|LFB|RAM|Local|Remote|Uncached|I/O|N/A)\b.*?)(?:\s{2,}|$)")
SAMPLES = re.compile(r"(?:^|\s)(\d+)(?=\s|$)")
BEYOND = re.compile(r"LLC Misses|(?:(?:Local|Remote) )?(?:RAM|Cache)|L3 miss|I/O")
SLOW = re.compile(r"mem-loads[\w-]*,ldlat=(\d+)")
FAST_CYCLES = 4  # a hit in the first cache takes no fewer
LOADS = ("L1-dcache-loads", "mem_inst_retired.all_loads", "mem-loads", "all_loads")


@dataclass(frozen=True)
class Levels:
    """``beyond``: part of the loads that found no line in the caches of their own node."""

    source: str
    beyond: float


def is_perf_levels(head: str) -> bool:
    """Whether a file that begins so is one."""
    return C2C_HEAD in head or any(MEM_HEAD.match(line) for line in head.splitlines())


def read_perf_levels(path: Path, text: str) -> Levels:
    """The part of the loads that went to memory; raises InputError."""
    slow = SLOW.search(text)
    if slow is not None and int(slow[1]) > FAST_CYCLES:
        expected = f"perf mem record --ldlat {FAST_CYCLES}"
        raise InputError("slow loads alone were sampled", str(path), None, None, slow[0], expected)
    levels = _c2c(text) if C2C_HEAD in text else _mem(text)
    found = [(level, count(loads, str(path))) for level, loads in levels]
    loads = sum(n for _, n in found)
    if not loads:
        expected = "perf mem report -F mem,sample, or perf c2c report --stats, as text"
        raise InputError("no sampled loads whose level is known", str(path), expected=expected)
    return Levels(str(path), sum(n for level, n in found if BEYOND.match(level)) / loads)


def _c2c(text: str) -> Iterator[tuple[str, str]]:
    # Remote hits in modified lines are among the misses.
    found = filter(None, map(C2C.match, text.splitlines()))
    return ((one[1], one[2]) for one in found if one[1] != "Remote HITM")


def _mem(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if (level := LEVEL.search(line)) is None or level[1] == "N/A":
            continue
        samples = SAMPLES.search(line[: level.start()]) or SAMPLES.search(line[level.end() :])
        if samples is not None:
            yield level[1], samples[1]


def with_misses(totals: Totals, levels: Levels) -> Totals:
    """Totals with the lines that loads fetched. Raises InputError where no loads were counted."""
    loads = next((totals.counts[name] for name in LOADS if name in totals.counts), None)
    if loads is None:
        expected = f"perf stat -x, -e {LOADS[0]}"
        raise InputError("loads were not counted", totals.source, expected=expected)
    return replace(totals, counts={**totals.counts, "cache-misses": loads * levels.beyond})

"""Samples that ``perf script`` prints: shares by function, with calls where it recorded them.

Fields may be those of its default output, or any of ``-F`` that have ``period,event,ip,sym``. The
period of a sample is how much of its event it stands for: of instructions, their number.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...inputs import InputError
from .counts import CallGraph, Floats, Totals, count

EVENTS = {
    **{"instructions": "Ir", "branch-misses": "Bcm", "cycles": "cycles", "cpu-cycles": "cycles"},
    **{"cache-misses": "lines", "LLC-load-misses": "lines"},
    **{"cpu-clock": "time", "task-clock": "time"},
}
SHARED = ("Ir", "cycles", "time")  # the first that was sampled tells who called whom
SAMPLE = re.compile(r"(?:^|\s)(\d+)\s+([A-Za-z][\w./:=,-]*?):(?:\s+(\S.*))?\s*$")
FRAME = re.compile(r"\s*[0-9a-f]+ (.+?)(?:\+0x[0-9a-f]+)?(?: \((\S[^()]*)\))?$")
ALIKE = (
    "instructions and misses of a function: its share of the samples of time, as if all executed "
    "and missed alike"
)


def is_perf_script(head: str) -> bool:
    """Whether a file that begins so is one."""
    first = next((line for line in head.splitlines() if line and line[0] != "#"), "")
    return SAMPLE.search(first) is not None


def read_perf_script(path: Path, text: str) -> CallGraph:
    """Sums of the samples' periods; raises InputError."""
    own: dict[tuple[str, str], float] = defaultdict(float)  # by event and function
    called: dict[tuple[str, str, str], float] = defaultdict(float)  # with the caller, last
    for event, period, frames in _samples(str(path), text):
        own[event, frames[0]] += period
        for callee, caller in dict.fromkeys(pairwise(frames)):
            called[event, callee, caller] += period
    events = tuple(dict.fromkeys(event for event, _ in own))
    shared = next((event for event in SHARED if event in events), None)
    if shared is None:
        expected = "perf record -e instructions, cycles or cpu-clock"
        raise InputError("no samples of instructions or time", str(path), expected=expected)
    pairs = {key[1:]: value for key, value in called.items() if key[0] == shared}
    names = dict.fromkeys([name for _, name in own] + [name for pair in pairs for name in pair])
    at = {name: k for k, name in enumerate(names)}
    counts = np.zeros((len(at), len(events)))
    for (event, name), period in own.items():
        counts[at[name], events.index(event)] = period
    return CallGraph(
        str(path),
        events,
        tuple(at),
        counts,
        np.array([at[caller] for _, caller in pairs], dtype=np.int64),
        np.array([at[callee] for callee, _ in pairs], dtype=np.int64),
        np.array(list(pairs.values())),
    )


def _samples(source: str, text: str) -> Iterator[tuple[str, float, Sequence[str]]]:
    """Event, period and functions of each sample of a known event, the innermost first."""
    event, period, frames = None, 0.0, list[str]()
    for at, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        found = SAMPLE.search(line)
        if found or not line.strip():
            if event is not None and frames and period:
                yield event, period, frames
            event, frames = None, []
        if found:
            name = re.sub(r"^\w+/(.+?)/.*$", r"\1", found[2]).partition(":")[0]
            event, period, line = EVENTS.get(name), count(found[1], source, at), found[3] or ""
        if line.strip():
            frame = FRAME.match(line)
            if frame is None:
                expected = "a sample of perf script -F period,event,ip,sym, or a frame of its calls"
                raise InputError("not a line of perf script", source, at, None, line, expected)
            name = frame[1]
            if name == "[unknown]":
                name = f"{Path(frame[2] or '').name}:{name}"
            frames.append(name)


def with_instructions(graph: CallGraph, totals: Totals | None) -> CallGraph:
    """Counts by function of samples of time: shares of the totals. As they are where instructions
    were counted. Raises InputError without totals."""
    if "Ir" in graph.events:
        return graph
    if totals is None:
        expected = "what 'perf stat -x,' printed of the same run, too"
        raise InputError("samples of time, not of instructions", graph.source, expected=expected)
    time = graph.of(next(event for event in SHARED if event in graph.events))
    share = time / time.sum()
    found: dict[str, Floats] = {}
    for name, event in EVENTS.items():
        if name in totals.counts and event not in (*found, "time"):
            found[event] = share * totals.counts[name]
    own = np.array(list(found.values())).T
    notes = (*graph.notes, ALIKE)
    return replace(graph, events=tuple(found), own=own, notes=notes)

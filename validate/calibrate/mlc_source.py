"""What Intel MLC printed, as observations.

Fitted to: idle latencies, read bandwidths between nodes, every other point of the loaded-latency
curve. The other points, and the mixes of reads and writes, are held out.
"""

import re

from ...topologies.importers import mlc
from ...topologies.importers.source import Source
from .observation import IDLE, LOADED, MIX, NO_PARAMETER, READ, Measured, Observation, Origin

# MLC's name of a mix -> the part of the lines that are written. A store reads its line first, which
# MLC counts in its ratios. Triad: two reads and one write.
_RATIO = re.compile(r"(\d+):(\d+) Reads-Writes", re.ASCII)
TRIAD, ALL_READS = "Stream-triad like", "ALL Reads"


def written_share(name: str) -> float | None:
    """The part of a mix's lines that are written; None for a name that does not tell."""
    if name == ALL_READS:
        return 0.0
    if name == TRIAD:
        return 1.0 / 3.0
    found = _RATIO.match(name)
    if found is None:
        return None
    reads, writes = int(found[1]), int(found[2])
    return writes / (reads + writes) if reads + writes else None


def read_mlc(source: Source) -> Measured:
    """All that the text tells; raises InputError, also where it is cut off."""
    printed = mlc.printed(source)
    homes = frozenset(home for table in printed.tables.values() for _, home in table.values)
    origin = Origin.of(source.name, source.label())
    tables = (
        (IDLE, "idle latency", "s", printed.tables.get("latency", mlc.Table())),
        (READ, "read bandwidth", "B/s", printed.tables.get("bandwidth", mlc.Table())),
    )
    found = [
        Observation(
            kind, f"{what}, {i} from {j}", value.value, unit, origin,
            at={"node": i, "home": j}, line=table.lines[i, j],
        )
        for kind, what, unit, table in tables
        for (i, j), value in table.values.items()
    ]  # fmt: skip
    held_out = set()
    for index, (point, line) in enumerate(printed.loaded):
        if index % 2:
            held_out.add(len(found))
        load, label = point.bandwidth.value, f"loaded latency at {point.bandwidth.value / 1e9:.4g}"
        found.append(
            Observation(
                LOADED, f"{label} GB/s", point.latency.value, "s", origin, at={"load": load},
                line=line, load_spread=0.005,
            )
        )  # fmt: skip
    unknown = 0
    for mix, line in printed.mixes.values():
        written = written_share(mix.name)
        if written is None:
            unknown += 1
            continue
        held_out.add(len(found))
        at = {"written": written, "name": mix.name}
        value = mix.bandwidth.value
        found.append(Observation(MIX, mix.name, value, "B/s", origin, at=at, line=line))
    unused = {
        "mixes whose name does not distinguish reads from writes": unknown,
        "0: not measured": printed.zeros,
        f"latency from cache to cache: {NO_PARAMETER}": printed.between_caches,
    }
    reasons = {reason: count for reason, count in unused.items() if count}
    return Measured(origin, tuple(found), reasons, frozenset(held_out), homes)

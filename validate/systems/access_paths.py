"""Published results of scans on an SGI UV 300H, and how those by CPU are predicted.

Study of access paths (CPU, or the hub's Global Reference Unit), 2018. Its machine's file holds the
processor's data sheet and the study's own table of bandwidth and latency by distance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from ..results import Prediction, Published, Runs
from .descriptor import Validation

SCENARIO = "gru-fig4-cpu"
OWN, BLADE, OFF_BLADE = 0, 1, 4  # nodes that hold the column; the thread runs on node 0


def _scan(home: int, note: str) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        record = runs(SCENARIO, f"system.home={home}")
        text = note
        if home == OWN:
            summed = runs(SCENARIO, "workload.operations.scan.result=sum")
            rate = (summed.bandwidth_Bps["memory"] or 0.0) / 1e9
            text += f" A scan that adds up what it reads would take {rate:.1f} GB/s."
        return Prediction(record.bandwidth_Bps["memory"] or 0.0, note=text)

    return predict


OWN_NOTE = (
    "Held by what one core can have under way, at a latency of 100 ns; missing: what the ends of "
    "pages cost the prefetcher. The source does not say what its scan does with what it finds; "
    "here it writes positions, and finds next to none."
)
BLADE_NOTE = "The source says 'up to': the neighbour on the ring, one link away, is taken."
OFF_NOTE = (
    "Held by latency, and this one is doubtful: the source says 'hundreds of ns', the machine's "
    "file 500 ns; 3 GB/s would be 340 ns."
)
PLANES = ("flow", "event")

# Part of the entries that the scan finds: hardly any, and so on to all of them.
SELECTIVITIES = (0.0, 0.01, 0.1, 0.5, 1.0)
DOMINATES = 0.5


def _grows(runs: Runs) -> Prediction:
    """What writing results takes of a scan's time, by how many there are; off the blade, where the
    unit would help most.
    """
    times = [
        1.0
        / runs.rate(
            SCENARIO,
            f"system.home={OFF_BLADE}",
            f"workload.operations.scan.selectivity={selectivity:g}",
        )
        for selectivity in SELECTIVITIES
    ]
    shares = [1.0 - times[0] / time for time in times]
    words = ", ".join(
        f"{share:.0%} where {selectivity:.0%} are found"
        for share, selectivity in zip(shares[1:], SELECTIVITIES[1:], strict=True)
    )
    rises = all(a <= b + 1e-9 for a, b in pairwise(shares))
    note = (
        "The path by CPU alone; no model of the hub's unit says how its advantage goes. Writing "
        "overlaps with the reading of far lines here, and takes next to no time of its own. "
        "Missing: fresh pages for results, and that a core waits where its stores find no place. "
        "Blind: the criterion (rising, more than half of the time in the end) stood before the run."
    )
    return Prediction(f"{words} of the scan's time", rises and shares[-1] > DOMINATES, note)


PUBLISHED: Mapping[str, Published] = {
    "gru-fig4-cpu-node": Published(
        8e9, "B/s", _scan(OWN, OWN_NOTE), planes=PLANES, about="one thread scans its node"
    ),
    "gru-fig4-cpu-blade": Published(
        5e9,
        "B/s",
        _scan(BLADE, BLADE_NOTE),
        planes=PLANES,
        about="one thread scans its blade",
    ),
    "gru-fig4-cpu-off-blade": Published(
        3e9,
        "B/s",
        _scan(OFF_BLADE, OFF_NOTE),
        planes=PLANES,
        about="one thread scans off its blade",
    ),
    "gru-fig5-cpu": Published(
        "as the result grows, writing it comes to dominate",
        "share",
        _grows,
        planes=PLANES,
        about="one thread scans off its blade, by the size of the result",
    ),
}

BLINDNESS = """\
**Scans on the UV 300H (GRU).** Nothing of the model or of the machine was changed for these rows.
What a scan does with what it finds is open: it writes positions here, as the source's do, though
adding up was tried first; the note says what that gives. `gru-fig5-cpu` is blind: scenario and
criterion were written before the first run, and stand as they were.
"""

_UNIT = "no model of the hub's Global Reference Unit"
_CHOOSER = "no access-path chooser, which would be trained on runs of both paths"

VALIDATION = Validation(
    published=PUBLISHED,
    blindness=BLINDNESS,
    unanswered={
        "gru-fig3": f"{_UNIT}; planes tell a steady state, not what a scan costs to begin",
        "gru-fig4, by the unit": _UNIT,
        "gru-fig5, by the unit": _UNIT,
        "gru-fig6": _UNIT,
        "gru-tab2": _CHOOSER,
        "gru-opt": _CHOOSER,
    },
)

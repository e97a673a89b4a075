"""Machines with known parameters, and what would be measured of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from numatwin.inputs.yaml_file import parse_yaml
from numatwin.topologies import Machine, load_machine
from numatwin.topologies.catalogue import machine_from_document
from numatwin.validate.calibrate.observation import (
    IDLE,
    LOADED,
    MIX,
    READ,
    Kind,
    Measured,
    Observation,
    Origin,
)
from numatwin.validate.calibrate.parameters import Key, pair_classes
from numatwin.validate.calibrate.predictions import Candidate, predict
from numatwin.validate.systems.eris.calibration import ROUTING

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ORIGIN = Origin("synthetic.txt", "synthetic.txt", "2026-01-01")
LOCAL, REMOTE = "local", "1 hop, as 0 and 1"

# Far from what server-2s.yaml has, so that only measurements can tell them.
TRUTH: dict[Key, float] = {
    ("latency", LOCAL): 95e-9,
    ("latency", REMOTE): 171e-9,
    ("bandwidth", LOCAL): 93e9,
    ("bandwidth", REMOTE): 27e9,
    ("curve", "base"): 99e-9,
    ("curve", "rise"): 0.45,
    ("curve", "queue"): 0.08,
    ("curve", "cap"): 0.93,
}
LOADS = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)


def server() -> Machine:
    """Two sockets, of which the data sheet alone tells."""
    return load_machine(EXAMPLES / "server-2s.yaml")


def asked(repeats: int = 2) -> list[Observation]:
    """What is asked of a machine; values are put in by ``measured``."""
    found = []
    for at in range(repeats):
        for i in (0, 1):
            for j in (0, 1):
                ends = {"node": i, "home": j}
                found.append(_one(IDLE, f"idle {i} {j} #{at}", "s", ends))
                found.append(_one(READ, f"read {i} {j} #{at}", "B/s", ends))
    peak = 2 * TRUTH["bandwidth", LOCAL]
    found += [_one(LOADED, f"loaded {load}", "s", {"load": load * peak}) for load in LOADS]
    return found


def mixes() -> list[Observation]:
    """Peak bandwidths with writes among the reads."""
    return [
        _one(MIX, f"mix {written}", "B/s", {"written": written, "name": str(written)})
        for written in (0.0, 0.25, 1 / 3, 0.5)
    ]


def routings() -> list[Observation]:
    """Core time of routing, by targets and sizes of buffers."""
    return [
        _one(ROUTING, f"routing {targets} {buffer}", "s", {"targets": targets, "buffer": buffer})
        for targets in (2, 8, 64)
        for buffer in (272.0, 528.0, 1040.0, 2064.0, 4112.0)
    ]


def _one(kind: Kind, label: str, unit: str, at: Mapping[str, object]) -> Observation:
    return Observation(kind, label, 1.0, unit, ORIGIN, at=at)


def measured(
    ones: Sequence[Observation],
    truth: Mapping[Key, float],
    machine: Machine,
    spread: float = 0.01,
    seed: int = 0,
    told_spread: float | None = None,
) -> Measured:
    """The figures of a machine with the parameters ``truth``, with that relative noise."""
    rng = np.random.default_rng(seed)
    real = Candidate(machine, pair_classes(machine), truth)
    found = []
    for one in ones:
        value = predict(real, one) * float(np.exp(spread * rng.normal()))
        found.append(
            Observation(
                one.kind,
                one.label,
                value,
                one.unit,
                ORIGIN,
                spread if told_spread is None else told_spread,
                one.at,
            )
        )
    return Measured(ORIGIN, tuple(found))


def machine_of(text: str) -> Machine:
    """The machine of a YAML text."""
    return machine_from_document(parse_yaml(text, "mine.yaml"))

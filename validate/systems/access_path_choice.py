"""Published results of the choice of a scan's access path by models (table 2 of the study in
``access_paths.py``), by the trainer that users have.

What scans the source observed is not known in detail: each row says what other draws of their sizes
give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ...sim.systems.registry import trainer_of
from ...topologies import load_machine
from ..results import Condition, Prediction, Runs

MIB = 1024 * 1024
OBSERVATIONS, SEED = 20_000, 1


DRAWS = {  # sizes of scans: how, and from which one on
    "for log-uniform sizes from 1 MiB on": ("log-even", float(MIB)),
    "for uniform sizes from 64 KiB on": ("even", MIB / 16),
}

SIZES = Condition("sizes of the scans that were observed", dict.fromkeys(("as here", *DRAWS), ()))


@cache
def _scores(plane: str, sizes: str = "log-even", bytes_min: float = MIB / 16) -> dict[str, Any]:
    machine = load_machine("sgi-uv300h-8s")
    model = trainer_of("access-path")(
        machine, OBSERVATIONS, SEED, plane, None, sizes=sizes, bytes_min=bytes_min
    )
    scores: dict[str, Any] = model.scores
    return scores


def _score(name: str, published: float = 0.0) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        runs.machine("sgi-uv300h-8s")
        choice = DRAWS.get(runs.chosen(SIZES.name, ""), ())
        value, low, high = _scores(runs.plane, *choice)[name]
        drawn = {how: _scores("flow", *draw)[name][0] for how, draw in DRAWS.items()}
        within = min(value, *drawn.values()) <= published <= max(value, *drawn.values())
        facts = {
            "low": low,
            "high": high,
            "listed": ", ".join(f"{found:.3f} {how}" for how, found in drawn.items()),
            "where": "within" if within else "outside",
        }
        return Prediction(value, facts=facts)

    return predict


def _loss(runs: Runs) -> Prediction:
    lost = _score("regression_loss")(runs)
    assert isinstance(lost.value, float)
    best = _scores(runs.plane)["engine_is_best"][0]
    facts = {**lost.facts, "observations": OBSERVATIONS, "best": best}
    return Prediction(f"{lost.value:.1%} longer", bool(lost.value <= 0.02), facts)


CHOICE: Mapping[str, Callable[[Runs], Prediction]] = {
    "gru-tab2-r2-cpu": _score("r2_cpu", 0.9347),
    "gru-tab2-r2-unit": _score("r2_engine", 0.9671),
    "gru-tab2-precision": _score("regression_precision", 0.90),
    "gru-tab2-recall": _score("regression_recall", 0.77),
    "gru-tab2-f1": _score("regression_f1"),
    "gru-tab2-tree-precision": _score("tree_precision"),
    "gru-tab2-tree-recall": _score("tree_recall"),
    "gru-tab2-tree-f1": _score("tree_f1"),
    "gru-opt": _loss,
}

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
from ..results import Prediction, Published, Runs

MIB = 1024 * 1024
OBSERVATIONS, SEED = 20_000, 1


DRAWS = {  # sizes of scans: how, and from which one on
    "for log-uniform sizes from 1 MiB on": ("log-even", float(MIB)),
    "for uniform sizes from 64 KiB on": ("even", MIB / 16),
}


@cache
def _scores(plane: str, sizes: str = "log-even", bytes_min: float = MIB / 16) -> dict[str, Any]:
    machine = load_machine("sgi-uv300h-8s")
    model = trainer_of("access-path")(
        machine, OBSERVATIONS, SEED, plane, None, sizes=sizes, bytes_min=bytes_min
    )
    scores: dict[str, Any] = model.scores
    return scores


def _score(
    name: str, more: str = "", published: float | None = None
) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        runs.machine("sgi-uv300h-8s")
        value, low, high = _scores(runs.plane)[name]
        drawn = {how: _scores("flow", *draw)[name][0] for how, draw in DRAWS.items()}
        listed = ", ".join(f"{found:.3f} {how}" for how, found in drawn.items())
        note = f"{low:.3f} to {high:.3f} by resampling the held-out scans; it would be {listed}. "
        if published is not None:
            within = min(value, *drawn.values()) <= published <= max(value, *drawn.values())
            note += f"The published figure lies {'within' if within else 'outside'}. "
        return Prediction(value, note=(note + more).strip())

    return predict


def _loss(runs: Runs) -> Prediction:
    lost = _score("regression_loss")(runs)
    assert isinstance(lost.value, float)
    best = _scores(runs.plane)["engine_is_best"][0]
    drawn = f"Of the held-out fifth of {OBSERVATIONS:,} scans {best:.0%} are best by the unit. "
    return Prediction(f"{lost.value:.1%} longer", bool(lost.value <= 0.02), drawn + lost.note)


LINEAR = (
    "Times here are products (bytes times a time per byte that depends on distance and load), "
    "which a sum of features fits badly; sizes from 64 KiB to 256 MiB."
)

SMALL = (
    "With sizes down to 64 KiB, regressions of the time choose the unit for small scans, whose "
    "times hardly count in a sum of squares: this is why the distribution matters."
)
RECALL = (
    "In the source the CPU gets every fourth scan that is best by the unit. Noisy times were "
    "tried by hand: log-normal noise of 20% gives 0.90 (0.87 with uniform sizes), but R² of "
    "0.80 to 0.82, less than the source's; so noise alone is not the cause, which is unknown."
)


CHOICE: Mapping[str, Published] = {
    "gru-tab2-r2-cpu": Published(
        0.9347, "R²", _score("r2_cpu", LINEAR, 0.9347), about="a regression of the time by CPU"
    ),
    "gru-tab2-r2-unit": Published(
        0.9671,
        "R²",
        _score("r2_engine", LINEAR, 0.9671),
        about="a regression of the time by the unit",
    ),
    "gru-tab2-precision": Published(
        0.90,
        "precision",
        _score("regression_precision", SMALL, 0.90),
        about="choosing by both regressions",
    ),
    "gru-tab2-recall": Published(
        0.77,
        "recall",
        _score("regression_recall", RECALL, 0.77),
        about="choosing by both regressions",
    ),
    "gru-tab2-f1": Published(
        0.83, "F1", _score("regression_f1"), about="choosing by both regressions"
    ),
    "gru-tab2-tree-precision": Published(
        0.87, "precision", _score("tree_precision"), about="choosing by a decision tree"
    ),
    "gru-tab2-tree-recall": Published(
        0.95, "recall", _score("tree_recall"), about="choosing by a decision tree"
    ),
    "gru-tab2-tree-f1": Published(
        0.91, "F1", _score("tree_f1"), about="choosing by a decision tree"
    ),
    "gru-opt": Published(
        "within 2% of always choosing best",
        "",
        _loss,
        about="total time of the paths that both regressions choose",
    ),
}

"""Published results against predictions, a row each; the figures are those of the papers.

A published figure is only compared, never an input of a prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..inputs import InputError
from ..inputs.fields import near
from ..sim.run.real_planes import SIMULATED
from .results import Published, Runs
from .systems.registry import validations

PUBLISHED: Mapping[str, Published] = {
    id_: result for validation in validations() for id_, result in validation.published.items()
}


def published_rows(plane: str | None = None, id_: str | None = None) -> list[dict[str, Any]]:
    """A row per published result, or only the one of that id; raises InputError.

    Each on the first plane that can predict it; with ``plane``, on that one, and results that it
    cannot predict have no row. Keys: ``id``, ``about``, ``published`` (None: not published),
    ``predicted``, ``unit``, ``relative_error`` (None for a result in words), ``holds`` (None for a
    number), ``plane``, ``calibrated_on`` (ids of results), ``machines`` [{``name``, ``source``,
    ``calibrated_on``}], ``note``. What a machine was calibrated on its row is calibrated on, too.
    """
    if plane is not None and plane not in SIMULATED:
        raise InputError(
            f"plane {plane} predicts nothing: it measures this host",
            expected=" or ".join(SIMULATED),
        )
    chosen = PUBLISHED
    if id_ is not None:
        if id_ not in PUBLISHED:
            expected = near(id_, PUBLISHED) or f"one of {', '.join(PUBLISHED)}"
            raise InputError("unknown published result", token=id_, expected=expected)
        chosen = {id_: PUBLISHED[id_]}
        if plane is not None and plane not in chosen[id_].planes:
            raise InputError(
                f"plane {plane} does not predict {id_}", expected=" or ".join(chosen[id_].planes)
            )
    runs = {name: Runs(name) for name in ([plane] if plane is not None else SIMULATED)}
    return [
        _row(key, result, runs[plane or result.planes[0]])
        for key, result in chosen.items()
        if plane is None or plane in result.planes
    ]


def left_out(plane: str) -> list[str]:
    """Ids of the results that this plane cannot predict."""
    return [key for key, result in PUBLISHED.items() if plane not in result.planes]


def _row(key: str, result: Published, runs: Runs) -> dict[str, Any]:
    runs.machines.clear()
    prediction = result.predict(runs)
    error = None
    if isinstance(result.value, float) and isinstance(prediction.value, float):
        error = prediction.value / result.value - 1.0
    machines = [dict(machine) for machine in runs.machines.values()]
    of_machines = (on for machine in machines for on in machine["calibrated_on"])
    return {
        "id": key,
        "about": result.about,
        "published": result.value,
        "predicted": prediction.value,
        "unit": result.unit,
        "relative_error": error,
        "holds": prediction.holds,
        "plane": runs.plane,
        "calibrated_on": list(dict.fromkeys((*result.calibrated_on, *of_machines))),
        "machines": machines,
        "note": result.note.format(**prediction.facts),
    }

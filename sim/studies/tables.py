"""Several scenarios run one after another, and their figures in one table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..run.runner import run_scenario
from ..run.scenario import Scenario, load_scenario

if TYPE_CHECKING:
    import pyarrow as pa


def run_scenarios(
    scenarios: Iterable[str | Path | Scenario], *, workers: int | None = None, **options: Any
) -> pa.Table:
    """Runs each of ``scenarios`` (names, files, or loaded ones) and returns a row each as a table
    of pyarrow (``.to_pandas()`` makes a data frame of it): what ``Record.to_frame`` has, null where
    a run has no such figure.

    ``options`` are those of ``load_scenario``, for all that are not loaded yet; ``workers``: see
    ``run_scenario``. Raises InputError. For designs of many runs see ``study``.
    """
    import pyarrow as pa

    loaded = [
        scenario if isinstance(scenario, Scenario) else load_scenario(scenario, **options)
        for scenario in scenarios
    ]
    rows = [run_scenario(scenario, workers=workers).figures() for scenario in loaded]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})

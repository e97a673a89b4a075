"""Several runs from Python, as one table: of scenarios, of a study's file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..run.runner import run_scenario
from ..run.scenario import Scenario, load_scenario
from .results import load_results
from .run_study import run_study
from .study import load_study

if TYPE_CHECKING:
    import pyarrow as pa


def study(
    file: str | Path,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    limit: int | None = None,
) -> pa.Table:
    """Runs what is left of the study in ``file``, and returns its rows, a row a run, as a table of
    pyarrow (``.to_pandas()`` makes a data frame of it).

    ``out``: the folder that keeps the rows; without it they are kept nowhere. ``jobs``,
    ``scheduler``, ``limit``: as ``numatwin study run`` has them. Raises InputError.
    """
    described = load_study(file)
    with tempfile.TemporaryDirectory(prefix="numatwin-study-") as nowhere:
        folder = Path(nowhere if out is None else out)
        run_study(described, folder, jobs=jobs, scheduler=scheduler, limit=limit)
        return load_results(described, folder).table


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

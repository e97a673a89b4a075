"""Several runs from Python, as one table: of scenarios, of a study's file."""

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
) -> "pa.Table":
    """Run what is left of a study.

    Parameters
    ----------
    file : str or Path
        The study's file.
    out : str or Path, optional
        The folder that keeps the rows; without it they are kept nowhere.
    jobs, scheduler, limit : optional
        As ``numatwin study run`` has them: processes, a dask scheduler, runs at most.

    Returns
    -------
    pyarrow.Table
        A row a run; ``.to_pandas()`` makes a data frame of it.

    Raises
    ------
    InputError
        If the study's file or an option is wrong.
    """
    described = load_study(file)
    with tempfile.TemporaryDirectory(prefix="numatwin-study-") as nowhere:
        folder = Path(nowhere if out is None else out)
        run_study(described, folder, jobs=jobs, scheduler=scheduler, limit=limit)
        return load_results(described, folder).table


def run_scenarios(
    scenarios: Iterable[str | Path | Scenario], *, workers: int | None = None, **options: Any
) -> "pa.Table":
    """Run several scenarios; for designs of many runs see `study`.

    Parameters
    ----------
    scenarios : iterable of str, Path or Scenario
        Names, files, or loaded scenarios.
    workers : int, optional
        As in `run_scenario`.
    **options
        Those of `load_scenario`, for all that are not loaded yet.

    Returns
    -------
    pyarrow.Table
        A row a scenario with what ``Record.to_frame`` has, null where a run has no such figure.

    Raises
    ------
    InputError
        If a scenario cannot be loaded or run.
    """
    import pyarrow as pa

    loaded = [
        scenario if isinstance(scenario, Scenario) else load_scenario(scenario, **options)
        for scenario in scenarios
    ]
    rows = [run_scenario(scenario, workers=workers).figures() for scenario in loaded]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})

"""Studies from Python: a file in, a table out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

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

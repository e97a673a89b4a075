"""Runs what is left of a study, into its folder."""

import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...inputs import InputError
from ...inputs.progress import Progress, silent
from .engine import run_points
from .evaluate import ERROR
from .store import MANIFEST, Store
from .study import Study, changes, check_size

# Factors by which runs have different figures.
OTHER_FIGURES = {"machine", "workload", "system.kind", "plane", "on"}
COLLECT_S = 0.5  # rows of so long a time share a part


@dataclass(frozen=True)
class Progressed:
    """How far a study is: its ``points``, those ``done`` (failed ones among them) and ``new``."""

    points: int
    done: int
    failed: int
    new: int = 0
    wall_s: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing is left to run."""
        return self.done >= self.points


def run_study(
    study: Study,
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    limit: int | None = None,
    restart: bool = False,
    retry: bool = False,
    progress: Progress = silent,
) -> Progressed:
    """Runs the points that have no row in ``folder`` yet, ``limit`` at most; says how far it is.

    ``restart``: the first new row replaces all rows there, also another study's; ``retry``: points
    that failed are run again. Raises InputError where the folder belongs to another study, DiskFull
    where there is no more room; finished runs are kept, also where Ctrl-C comes.
    """
    check_size(study, limit)
    store = Store(folder)
    before = store.identity()
    if before is not None and restart:
        store.restart()
        before = None
    if before is not None:
        check_same(study, before, folder)
    done, failed = store.done()
    skipped = done - failed if retry else done
    count = study.design.count
    # A point of an earlier row may lie beyond a table that was cut, but then the identity differs.
    expected = count - len(skipped)
    expected = expected if limit is None else min(expected, limit)
    began = time.perf_counter()
    new = 0
    waiting: list[dict[str, object]] = []
    last_s = began
    pending = islice((point for point in range(count) if point not in skipped), expected)
    rows_of_points = run_points(
        study.runs,
        ((point, study.design.of(point)) for point in pending),
        expected=expected,
        jobs=jobs,
        scheduler=scheduler,
    )
    try:
        for rows in rows_of_points:
            if before is None:
                if not OTHER_FIGURES & set(study.runs.paths):  # all runs have the same figures
                    worked = [row for row in rows if ERROR not in row]
                    study.runs.metrics.check_found(worked, study.file)
                store.begin(study.identity)
                before = dict(study.identity)
            waiting += rows
            new += len(rows)
            failed.difference_update(row["point"] for row in rows)
            failed.update(row["point"] for row in rows if ERROR in row)
            done.update(row["point"] for row in rows)
            progress(new / max(expected, 1))
            if time.perf_counter() - last_s >= COLLECT_S:
                store.add(waiting, len(done) - len(waiting))
                waiting, last_s = [], time.perf_counter()
    finally:
        store.add(waiting, len(done) - len(waiting))
    if new:
        store.compact()
    return Progressed(count, len(done), len(failed), new, time.perf_counter() - began)


def check_same(study: Study, before: dict[str, object], folder: Path) -> None:
    """Raises InputError where rows are of another study, of other fields or another version."""
    different = changes(study.identity, before)
    if not different:
        return
    if "study" in different:
        what = f"rows of another study, '{before.get('study')}'"
    elif ("search" in study.identity) != ("search" in before):
        what = f"rows of {'a search' if 'search' in before else 'a run'} of this study"
    else:
        what = f"the study has changed since: {', '.join(different)}"
        if different == ["format"]:
            what = "rows of an earlier form"
        elif "version" in different:
            what += f" (rows of version {before.get('version')})"
    raise InputError(
        what, str(folder / MANIFEST), expected="another --out, or --restart to run all again"
    )


def progressed(study: Study, folder: Path) -> Progressed:
    """How far the study in ``folder`` is; raises InputError where it is another one's."""
    store = Store(folder)
    before = store.identity()
    if before is None:
        return Progressed(study.design.count, 0, 0)
    check_same(study, before, folder)
    done, failed = store.done()
    return Progressed(study.design.count, len(done), len(failed))

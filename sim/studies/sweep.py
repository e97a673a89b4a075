"""Factors from a command line: ``path=v1,v2,v3`` and ``path=from:to:n[log]``, a grid of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...inputs import InputError
from ...inputs.progress import Progress, silent
from ...inputs.settings import SHOWN_MAX
from .base import POLICY, Base, is_whole
from .designs import Design, Factor, grid
from .engine import run_points
from .evaluate import DEFAULTS, ERROR, LIKELY, POINT, Metrics, Row, Runs
from .levels import is_single, read_levels
from .store import table_of

if TYPE_CHECKING:
    import pyarrow as pa

SWEEP_MAX = 1_000_000
LISTED = ("machine", "workload", POLICY)


@dataclass(frozen=True)
class Sweep:
    """A grid of runs over a few fields."""

    runs: Runs
    design: Design

    def run(self, jobs: int | None = None, progress: Progress = silent) -> tuple[list[Row], bool]:
        """Rows by point, and whether Ctrl-C ended them early: as KeyboardInterrupt before any."""
        rows: list[Row] = []
        stopped, count = False, self.design.count
        try:
            for some in run_points(self.runs, self.design.points(), expected=count, jobs=jobs):
                rows += some
                progress(len(rows) / count)
        except KeyboardInterrupt:
            if not rows:
                raise
            stopped = True
        return sorted(rows, key=lambda row: int(row[POINT])), stopped

    def add_intervals(self, rows: Sequence[Row], metric: str) -> None:
        """Add 90% intervals of a figure to some of the rows, evenly chosen."""
        from ..run.uncertainty import LEVEL
        from .regret import doubted, evenly

        by_point = {row[POINT]: row for row in rows}
        for one in doubted(self.runs, evenly(rows), metric):
            likely = {f"{LIKELY}level": LEVEL, LIKELY + metric: one.interval}
            by_point[one.point].update(likely)

    def failures(self, rows: Sequence[Row]) -> str | None:
        """How many rows failed, in words; raises InputError where all did, or lack a metric."""
        failed = [row for row in rows if ERROR in row]
        if len(failed) == len(rows):
            raise InputError(str(rows[0][ERROR]))
        self.runs.metrics.check_found([row for row in rows if ERROR not in row], "--metric")
        if not failed:
            return None
        return f"{len(failed)} of {len(rows)} runs failed, such as: {failed[0][ERROR]}"


def sweep(
    scenario: str,
    settings: Sequence[str],
    *,
    metrics: Sequence[str] = (),
    jobs: int | None = None,
    **options: Any,
) -> "pa.Table":
    """Run a scenario for a grid of values.

    Parameters
    ----------
    scenario : str
        Name or path of a scenario.
    settings : sequence of str
        ``path=v1,v2`` or ``path=from:to:n[log]`` each, as ``numatwin sweep --set`` takes them.
    metrics : sequence of str
        Further figures to keep.
    jobs : int, optional
        Processes; one a processor by default.
    **options
        Those of `load_scenario`; ``machine``, ``workload`` and ``policy`` may list several.

    Returns
    -------
    pyarrow.Table
        A row a run; one that failed has its ``error``.

    Raises
    ------
    InputError
        If a setting is wrong, or all runs fail.
    """
    made = planned_sweep(scenario, options, settings, metrics)
    rows, stopped = made.run(jobs)
    if stopped:
        raise KeyboardInterrupt
    made.failures(rows)
    return table_of(rows)


def planned_sweep(
    scenario: str, options: Mapping[str, Any], texts: Sequence[str], metrics: Sequence[str]
) -> Sweep:
    """The sweep, not run yet; see ``sweep``. Raises InputError."""
    base, design = sweep_design(scenario, options, texts)
    paths = tuple(factor.path for factor in design.factors)
    kept = Metrics((*DEFAULTS, *metrics))
    several = any(path.startswith("workload") for path in paths)
    kept.check(None if several else list(base.load().workload.operations))
    return Sweep(Runs(base, paths, tuple(factor.unit for factor in design.factors), kept), design)


def sweep_design(
    scenario: str, options: Mapping[str, Any], texts: Sequence[str]
) -> tuple[Base, Design]:
    """The base and the grid of a sweep; raises InputError.

    ``options``: of ``load_scenario``; a machine, workload or policy that lists several (``a,b``) is
    a factor too. A setting with one value is set in all runs.
    """
    kept = {name: value for name, value in options.items() if value is not None}
    lists = {}
    for name in LISTED:
        choice = kept.get(name)
        level = choice[0] if isinstance(choice, (list, tuple)) and len(choice) == 1 else choice
        if isinstance(level, str) and "," in level:
            lists[name] = level
            del kept[name]
    base = Base(scenario, kept)
    base.load()  # what is wrong without any setting is told as it is
    factors = [_factor(base, name, text, f"--{name} {text}") for name, text in lists.items()]
    fixed = [text for text in texts if is_single(text.partition("=")[2])]
    base = replace(base, settings=tuple(fixed))
    for text in texts:
        factor = _set(base, text)
        if text in fixed:
            continue
        if factor.path in (other.path for other in factors):
            raise InputError("set twice", _source(text), token=factor.path)
        factors.append(factor)
    design = grid(factors)
    if design.count > SWEEP_MAX:
        raise InputError(
            "too many runs for a sweep",
            token=f"{design.count:,}",
            expected=f"at most {SWEEP_MAX:,}; a study samples such a space",
        )
    return base, design


def _set(base: Base, text: str) -> Factor:
    source = _source(text)
    path, equals, written = text.partition("=")
    path = ".".join(part.strip() for part in path.split("."))
    if not equals or not all(path.split(".")):
        raise InputError(
            "not a factor", source, expected="path=v1,v2,v3 or path=from:to:n, such as seed=1,2"
        )
    return _factor(base, path, written, source)


def _factor(base: Base, path: str, written: str, source: str) -> Factor:
    whole = is_whole(base.check_path(path, source))
    levels = read_levels(written, source, whole)
    try:
        base.check_values(path, levels.checked, levels.unit)
    except InputError as failure:
        if failure.file is None:
            failure.file = source
        raise
    return Factor(path, levels, whole=whole)


def _source(text: str) -> str:
    return f"--set {text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + '…'}"

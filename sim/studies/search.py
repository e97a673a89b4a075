"""Search: the point of a study that is best under its constraints, in fewer runs than the grid.

Optuna's tree-structured Parzen estimator proposes points in rounds of ``ROUND``: numbers, names and
whole numbers together, constraints by how far they are broken (Watanabe and Hutter, c-TPE, IJCAI
2023). Chosen over Ax, which needs PyTorch (gigabytes), and over scikit-optimize, which knows no
constraints. It begins at corners of the space, lowest and highest values together: most figures are
monotonic in most factors, and what constraints leave of a corner may be too little to be met by
chance. What a round proposes depends on the seed and on the rows before it alone: a search
that was stopped goes on as if it had not been, on any number of workers.
"""

import hashlib
import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs import InputError, parse_setting
from ...inputs.progress import Progress, silent
from ...inputs.shared_work import SharedWork
from ..kernel.streams import stream_key
from .designs import Factor
from .engine import run_points
from .evaluate import ERROR, POINT, WALL, Row, rows_of
from .results import Results, results_of
from .run_study import COLLECT_S, check_same
from .store import Store, rows_in, table_of
from .study import Study

ROUND = 8
CORNERS_MAX = 2 * ROUND
RUNS_MAX = 200  # by default
WITHOUT_GAIN_MAX = 64  # runs, after which a search has found what it will
VERIFIED, VERIFIED_MAX = "verified", 3
EXACT = "event"
PLANES = (EXACT, "reference", "native")
SAMPLED = ("latin_hypercube", "sobol")

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Found:
    """``results``: all runs, in the order in which they were proposed; ``best``: positions of
    those that hold all constraints, the best first; ``new``: runs that were made now; ``stopped``:
    why no more were made. ``grid``: how many points a grid has.
    """

    results: Results
    best: tuple[int, ...]
    new: int
    stopped: str
    grid: int


def search(
    study: Study,
    folder: Path,
    *,
    runs_max: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    restart: bool = False,
    progress: Progress = silent,
) -> Found:
    """Searches until ``runs_max`` runs were made (by default 200, or half of the grid), none of the
    last 64 was better, or nothing is left to run. Rows go to ``folder``, and those that it has are
    taken from there. Raises InputError.
    """
    if study.objective is None:
        raise InputError("no objective", study.file, expected="'objective: minimise cost' or such")
    optuna = _optuna()
    space = [_Axis(factor, study.design.kind in SAMPLED) for factor in study.factors]
    points = math.prod(axis.count for axis in space)
    most = min(RUNS_MAX, max(ROUND, int(points // 2))) if runs_max is None else runs_max
    corners = _corners(space, seed)
    store = _opened(study, folder, seed, restart)
    known = {row[POINT]: row for row in rows_in(store.read())} if store.identity() else {}
    memory = optuna.create_study(direction="minimize")
    rows: list[Row] = []
    seen: set[Values] = set()
    best, best_at, new, stopped = (math.inf, math.inf), 0, 0, ""
    work = SharedWork()
    while not stopped:
        rng = np.random.default_rng(stream_key(seed, len(rows), "search"))
        startup = max(2 * len(space), ROUND, len(corners))
        memory.sampler = optuna.samplers.TPESampler(
            n_startup_trials=startup, seed=int(rng.integers(2**31)), multivariate=True
        )
        first = corners[len(rows) :]
        count = min(ROUND, most - len(rows), points)
        trials = _proposed(memory, space, first, seen, count, rng, optuna)
        if not trials:
            stopped = "every point was run"
            break
        wanted = [(len(rows) + k, values) for k, (_, values) in enumerate(trials)]
        left = [point for point in wanted if point[0] not in known]
        each_s = sum(row[WALL] for row in rows) / len(rows) if rows else None
        made = run_points(
            study.runs, iter(left), expected=len(left), jobs=jobs, work=work, each_s=each_s
        )
        for some in _stored(made, store, _identity(study, seed), len(rows)):
            known |= {row[POINT]: row for row in some}
            new += len(some)
        fresh = [known[number] for number, _ in wanted]
        rows += fresh
        for (trial, _), rank in zip(trials, _ranks(study, fresh), strict=True):
            broken, figure = rank
            trial.set_constraint("broken", broken)
            memory.tell(trial, figure)
            if rank < best:
                best, best_at = rank, len(rows)
        progress(len(rows) / most)
        if len(rows) >= most:
            stopped = f"{most:,} runs were made"
        elif len(rows) - best_at >= WITHOUT_GAIN_MAX:
            stopped = f"none of the last {len(rows) - best_at} runs was better"
    store.compact()
    results = results_of(study, table_of(rows))
    return Found(results, tuple(results.best(len(rows))), new, stopped, study_grid(study))


def _stored(
    made: Iterator[list[Row]], store: Store, identity: Mapping[str, Any], kept: int
) -> Iterator[list[Row]]:
    """Rows that come, once they are on the disk: those of ``COLLECT_S`` together."""
    waiting: list[Row] = []
    last_s = time.perf_counter()
    try:
        for rows in made:
            waiting += rows
            if time.perf_counter() - last_s >= COLLECT_S:
                yield _added(store, identity, waiting, kept)
                waiting, last_s = [], time.perf_counter()
    finally:
        _added(store, identity, waiting, kept)
    yield waiting


def verify(
    study: Study, found: Found, folder: Path, jobs: int | None = None, progress: Progress = silent
) -> Iterator[tuple[int, Results]]:
    """The best points on the event plane, each with its one row, until one holds all constraints
    there too, three at most. Nothing where the study itself is on a plane that runs operations.
    """
    if study.runs.base.load().plane in PLANES or {"on", "plane"} & set(study.runs.paths):
        return
    base = study.runs.base
    kept = tuple(s for s in base.settings if parse_setting(s).path != ("plane",))
    options = {name: value for name, value in base.options.items() if name != "plane"}
    exact = replace(base, options=options, settings=(*kept, f"plane={EXACT}"))
    runs = replace(study.runs, base=exact)
    store = Store(folder / VERIFIED)
    known = {row[POINT]: row for row in rows_in(store.read())}
    store.rows.mkdir(parents=True, exist_ok=True)
    for best in found.best[:VERIFIED_MAX]:
        point = int(found.results.points[best])
        if point not in known:
            values = tuple(found.results.rows[best].get(path) for path in study.runs.paths)
            made = rows_of(runs, [(point, values)], SharedWork(), progress, workers=jobs)
            store.add(made, len(known))
            known |= {row[POINT]: row for row in made}
        results = results_of(replace(study, runs=runs), table_of([known[point]]))
        yield best, results
        if results.feasible[0]:
            return


def _added(store: Store, identity: Mapping[str, Any], rows: list[Row], kept: int) -> list[Row]:
    if rows and store.identity() is None:
        store.begin(identity)
    store.add(rows, kept)
    return rows


def study_grid(study: Study) -> int:
    """How many points a grid over the study's factors has."""
    return math.prod(len(factor.levels.values) for factor in study.factors)


class _Axis:
    """A factor as Optuna's: a place among its levels, or where ``continuous`` and it is a range or
    has a distribution, a part of its probability.
    """

    def __init__(self, factor: Factor, continuous: bool) -> None:
        self.factor = factor
        self.continuous = continuous and factor.distribution is not None
        levels = factor.levels
        self.levels = sorted(levels.values) if levels.numeric else list(levels.values)

    @property
    def count(self) -> float:
        return math.inf if self.continuous else len(self.levels)

    def distribution(self, optuna: Any) -> Any:
        if self.continuous:
            return optuna.distributions.FloatDistribution(0.0, 1.0)
        if self.factor.levels.numeric:
            return optuna.distributions.IntDistribution(0, len(self.levels) - 1)
        return optuna.distributions.CategoricalDistribution(range(len(self.levels)))

    def value(self, part: float) -> Any:
        if self.continuous:
            return self.factor.drawn(np.array([part]))[0]
        return self.levels[int(part)]

    @property
    def ends(self) -> Sequence[int]:
        """The lowest and the highest level; all of what has no order."""
        last = len(self.levels) - 1
        return (0, last) if self.factor.levels.numeric and last else range(last + 1)

    def drawn(self, rng: np.random.Generator) -> float | int:
        return float(rng.random()) if self.continuous else int(rng.integers(len(self.levels)))


def _corners(space: Sequence[_Axis], seed: int) -> list[dict[str, int]]:
    """Where a search begins: corners in random order, at most ``CORNERS_MAX`` of them. None where a
    factor has a distribution: its ends are as improbable as can be.
    """
    if any(axis.continuous for axis in space):
        return []
    count = math.prod(len(axis.ends) for axis in space)
    rng = np.random.default_rng(stream_key(seed, 0, "corners"))
    chosen = rng.permutation(count) if count < 2**20 else rng.integers(count, size=CORNERS_MAX)
    corners: list[dict[str, int]] = []
    for number in chosen[:CORNERS_MAX].tolist():
        corner = {}
        for axis in space:
            number, end = divmod(number, len(axis.ends))
            corner[axis.factor.path] = axis.ends[end]
        corners.append(corner)
    return corners


def _proposed(
    memory: Any,
    space: Sequence[_Axis],
    first: Sequence[Mapping[str, int]],
    seen: set[Values],
    count: float,
    rng: np.random.Generator,
    optuna: Any,
) -> list[tuple[Any, Values]]:
    """``count`` trials of values that no earlier one has, those in ``first`` first; fewer where no
    more are left.

    What was seen already is replaced by a point drawn at random.
    """
    axes = {axis.factor.path: axis.distribution(optuna) for axis in space}
    points = math.prod(axis.count for axis in space)
    made: list[tuple[Any, Values]] = []
    while len(made) < count and len(seen) < points:
        if len(made) < len(first):
            memory.enqueue_trial(first[len(made)])
        trial = memory.ask(axes)
        values = _values(space, trial.params)
        while _key(values) in seen:
            memory.tell(trial, state=optuna.trial.TrialState.FAIL)
            memory.enqueue_trial({axis.factor.path: axis.drawn(rng) for axis in space})
            trial = memory.ask(axes)
            values = _values(space, trial.params)
        seen.add(_key(values))
        made.append((trial, values))
    return made


def _values(space: Sequence[_Axis], params: Mapping[str, Any]) -> Values:
    return tuple(axis.value(params[axis.factor.path]) for axis in space)


def _key(values: Values) -> Values:
    return tuple(map(repr, values))


def _ranks(study: Study, rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Of each row: how far it breaks constraints (0: it holds them), and its figure, least best."""
    results = results_of(study, table_of(rows))
    assert study.objective is not None
    assert results.objective is not None
    sign = 1.0 if study.objective.least else -1.0
    broken = np.zeros(len(rows))
    for slack in results.slacks.values():
        # A bound that is met exactly is held or not as 'feasible' says; unknown is broken.
        broken += np.where(np.isfinite(slack), np.maximum(-slack, 0.0), 1.0)
    failed = np.array([ERROR in row for row in rows]) | ~np.isfinite(results.objective)
    figures = np.where(failed, math.inf, sign * results.objective)
    broken = np.where(failed, 1.0 + len(results.slacks), broken)
    return list(zip(broken.tolist(), figures.tolist(), strict=True))


def _identity(study: Study, seed: int) -> dict[str, Any]:
    asked = {
        "objective": study.objective.text if study.objective else None,
        "constraints": [constraint.text for constraint in study.constraints],
        "prices": study.prices.model_dump(mode="json") if study.prices else None,
        "seed": seed,
        "round": ROUND,
        "corners": CORNERS_MAX,
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    return {**study.identity, "search": digest}


def _opened(study: Study, folder: Path, seed: int, restart: bool) -> Store:
    """The store of a search's rows; raises InputError where it is of another one."""
    store = Store(folder)
    before = store.identity()
    if before is not None and restart:
        shutil.rmtree(folder / VERIFIED, ignore_errors=True)
        store.restart()
        store.begin(_identity(study, seed))
    elif before is not None:
        check_same(replace(study, identity=_identity(study, seed)), before, folder)
    return store


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError("search needs Optuna", expected="pip install 'numatwin[search]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


__all__ = ["Found", "search", "study_grid", "verify"]

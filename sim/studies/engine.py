"""Runs the points of a study on workers, and hands rows over as they come.

Points travel in batches that take about ``BATCH_S``, so that workers do not wait for each other and
a killed study loses no more than that. A row depends on its point alone, neither on who ran it nor
on what was run before.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from ..._version import __version__
from ...inputs import InputError
from ...inputs.shared_work import SharedWork
from ..run.workers import GRACE_S, local_workers, stop_without, without_interrupts
from .evaluate import WALL, Row, Runs, rows_of

Point = tuple[int, Sequence[Any]]
Submit = Callable[[Runs, list[Point]], "Future[list[Row]]"]

BATCH_S, FIRST_BATCH, BATCH_MAX = 0.5, 4, 2_000
WORKERS_MIN_S = 3.0  # of work left
QUEUED = 2  # batches for each worker: one to run, one to begin with at once
RESUME_HINT = "the same command again, which goes on: finished runs are kept"
ANSWER_S = 10.0  # how long a scheduler may take to answer


def run_points(
    runs: Runs,
    points: Iterator[Point],
    *,
    expected: int,
    jobs: int | None = None,
    scheduler: str | None = None,
    work: SharedWork | None = None,
    each_s: float | None = None,
) -> Iterator[list[Row]]:
    """The rows of ``points``, some at a time, in the order in which they are done.

    ``expected``: how many points there are. ``jobs``: processes, by default one a processor, where
    that is quicker; ``scheduler``: the address of a dask scheduler whose workers run them instead.
    ``work``: what runs in this process share with earlier ones; ``each_s``: how long one takes,
    found out where nobody knows yet. Where Ctrl-C comes, what workers have done by then is still
    handed over, and KeyboardInterrupt raised after it.
    """
    work = work or SharedWork()
    if scheduler is not None:
        with _cluster(scheduler) as (submit, count):
            yield from _in_batches(runs, points, submit, count)
        return
    count = jobs or joblib.effective_n_jobs(-1)
    if count == 1:
        yield from _here(runs, points, work)
        return
    if jobs is None:
        # Starting workers takes longer than a few quick runs.
        if each_s is None:
            first, expected = list(islice(points, FIRST_BATCH)), expected - FIRST_BATCH
            began = time.perf_counter()
            yield from _here(runs, iter(first), work)
            each_s = (time.perf_counter() - began) / max(len(first), 1)
        if each_s * expected < WORKERS_MIN_S:
            yield from _here(runs, points, work)
            return
    with local_workers(count) as workers:

        def submit(runs: Runs, batch: list[Point]) -> Future[list[Row]]:
            with without_interrupts():
                return workers.submit(_batch, runs, batch, workers.marker)

        yield from _in_batches(runs, points, submit, count, workers.stop)


def _here(runs: Runs, points: Iterator[Point], work: SharedWork) -> Iterator[list[Row]]:
    """In this process."""
    size = FIRST_BATCH
    while batch := list(islice(points, size)):
        done: list[Row] = []
        began = time.perf_counter()
        try:
            for point in batch:
                done += rows_of(runs, [point], work)
        except KeyboardInterrupt:
            yield done
            raise
        yield done
        size = _size(len(batch), time.perf_counter() - began)


def _in_batches(
    runs: Runs,
    points: Iterator[Point],
    submit: Submit,
    count: int,
    stop: Callable[[], None] = lambda: None,
) -> Iterator[list[Row]]:
    """On ``count`` workers; ``stop`` makes them return what they have."""
    size = FIRST_BATCH
    pending: set[Future[list[Row]]] = set()
    try:
        while True:
            while len(pending) < QUEUED * count and (batch := list(islice(points, size))):
                pending.add(submit(runs, batch))
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    rows = future.result()
                except BrokenProcessPool:
                    raise InputError(
                        "a worker process was ended from outside: killed, or out of memory",
                        expected=RESUME_HINT,
                    ) from None
                if rows:
                    size = _size(len(rows), sum(row[WALL] for row in rows))
                yield rows
    except KeyboardInterrupt:
        stop()
        for future in pending:
            future.cancel()
        late = wait(pending, timeout=GRACE_S).done
        for future in late:
            if not future.cancelled() and future.exception() is None:
                yield future.result()
        raise


def _size(points: int, took_s: float) -> int:
    """How many points take about ``BATCH_S``."""
    return max(1, min(int(BATCH_S * points / max(took_s, 1e-6)), BATCH_MAX, 4 * points))


_kept: dict[int, SharedWork] = {}


def _batch(runs: Runs, points: list[Point], marker: str | None) -> list[Row]:
    """What a worker keeps of one study serves its next batches."""
    key = hash((repr(runs.base), runs.paths))
    if key not in _kept:
        _kept.clear()
        _kept[key] = SharedWork()
    go_on = stop_without(marker) if marker is not None else lambda part: None
    return rows_of(runs, points, _kept[key], go_on)


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Submit, int]]:
    """What submits to the workers of the dask scheduler there, and how many threads they have."""
    try:
        from distributed import Client
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError(
            "--scheduler needs dask.distributed", expected="pip install 'numatwin[cluster]'"
        ) from None
    try:
        asyncio.run(_asked(address))  # a client that gets no answer would go on trying
        client = Client(address, timeout=ANSWER_S, set_as_default=False)
    except (OSError, ValueError, TypeError, LookupError, MemoryError) as failure:
        why = str(failure).partition("\n")[0]
        if isinstance(failure, TimeoutError):
            why = f"nothing came within {ANSWER_S:g} s"
        elif isinstance(failure, (TypeError, LookupError, MemoryError)):
            why = "what is there is another program (a dashboard has a port of its own)"
        raise InputError(
            f"no scheduler answers: {why}",
            token=address,
            expected="the address of a dask scheduler, such as tcp://10.0.0.1:8786",
        ) from None
    with client:
        count = sum(client.nthreads().values())
        if not count:
            raise InputError("the scheduler has no workers", token=address)
        for worker, version in client.run(_installed_version).items():
            if version != __version__:
                raise InputError(
                    f"worker {worker} has another version of numatwin",
                    token=str(version),
                    expected=__version__,
                )
        executor = client.get_executor(pure=False)
        try:
            yield lambda runs, batch: executor.submit(_batch, runs, batch, None), count
        except (KilledWorker, CancelledError, CommClosedError) as failure:
            why = str(failure).partition("\n")[0] or "its scheduler has gone"
            raise InputError(
                f"the cluster was lost: {why}", token=address, expected=RESUME_HINT
            ) from None


async def _asked(address: str) -> None:
    """Raises OSError, or ValueError for no address, where no scheduler says within ``ANSWER_S``
    that it is one."""
    from distributed import rpc
    from distributed.comm import resolve_address

    remote = rpc(resolve_address(address), timeout=ANSWER_S)
    try:
        identity = await asyncio.wait_for(remote.identity(), ANSWER_S)
    finally:
        await remote.close_rpc()
    if identity.get("type") != "Scheduler":
        raise ValueError(f"it is a dask {identity.get('type')}")


def _installed_version() -> str:
    return __version__

"""Running models of the kernel from Python: stop and continue, threads.

Failures and Ctrl-C: ``test_eris_event_failures.py``.
"""

import threading
import time

import pytest
from commit_clusters import US, cluster

from numatwin.sim.systems.commits.plane import KernelCommitModel

pytestmark = pytest.mark.kernel

END = 300_000 * US


def test_it_stands_where_it_was_stopped_and_goes_on() -> None:
    one, other = (KernelCommitModel(cluster(), seed=1, traced=True) for _ in range(2))
    one.run(5000 * US)
    for until in (0, 1, 17 * US, 17 * US, 4000 * US, 5000 * US):
        other.run(until)
        assert other.now_ps == until
    assert one.commits > 10
    assert (one.events, one.trace()) == (other.events, other.trace())
    with pytest.raises(ValueError, match="until: expected a time from 5000000000 ps on"):
        one.run(10)
    one.run(5000 * US)
    assert (one.events, one.trace()) == (other.events, other.trace())


def test_other_threads_go_on_and_are_kept_out() -> None:
    # With the GIL held, this thread would get one turn or two. Others may use this computer: at the
    # best of five times.
    for _ in range(5):
        model, refused = refused_meanwhile()
        assert set(refused) <= {"the model is being run by another thread"}
        if len(refused) > 5:
            break
    assert len(refused) > 5
    alone = KernelCommitModel(cluster(), seed=1)
    alone.run(END)
    assert model.events == alone.events


def refused_meanwhile() -> tuple[KernelCommitModel, list[str]]:
    """A model that another thread has run, and what this thread was told until it was done."""
    model = KernelCommitModel(cluster(), seed=1)
    failure: list[BaseException] = []

    def run() -> None:
        try:
            model.run(END)
        except BaseException as raised:  # pragma: no cover
            failure.append(raised)

    thread = threading.Thread(target=run)
    refused: list[str] = []
    thread.start()
    while thread.is_alive():
        try:
            assert model.commits >= 0
        except RuntimeError as error:
            refused.append(str(error))
        time.sleep(0.001)
    thread.join()
    assert not failure
    return model, refused

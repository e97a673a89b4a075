"""Servers of a scenario of the catalogue to explore."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from numatwin.reports.explore import ExploreServer
from numatwin.reports.explore.explorer import Explorer
from numatwin.sim.studies.base import Base


@contextmanager
def serving() -> Iterator[ExploreServer]:
    """One that answers, in a thread of its own."""
    server = ExploreServer(Explorer(Base("eris-fig12-scan")))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()

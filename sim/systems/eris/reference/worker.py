"""The state of a worker of ERIS in the reference: buffers with their descriptors; counters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import simpy

from ...._kernel import Stream
from ....kernel.histogram import Buckets
from ....machine.reference.core import ThreadTime
from ....machine.reference.servers import rounded

STEPS = ("issue", "flush", "receive", "walk")


class Batch(NamedTuple):
    """What one flush brought, or a part of it: commands by operation, when the first and the last
    were handed over."""

    source: int
    counts: Sequence[int]
    first: int
    last: int


class Incoming:
    """One of a worker's two incoming buffers, with its descriptor."""

    def __init__(self, active: bool) -> None:
        self.active, self.offset, self.writers = active, 0, 0
        self.waits = 0  # of its reader, for lines of those who wrote into it
        self.batches: list[Batch] = []

    @property
    def word(self) -> tuple[bool, int, int]:
        """What one exchange compares."""
        return self.active, self.offset, self.writers


class Counts:
    """All since counting began; ``steps_ps``: time of each worker in each step of its loop."""

    made = flushes = flushed = retries = full = rounds = 0

    def __init__(self, operations: int, workers: int) -> None:
        self.executed = np.zeros((operations, workers), dtype=np.int64)
        self.latency = [Buckets() for _ in range(operations)]
        self.steps_ps = {step: [0] * workers for step in STEPS}


class Worker:
    """What belongs to one worker."""

    def __init__(self, index: int, workers: int, operations: int, stream: Stream) -> None:
        self.index, self.stream = index, stream
        self.incoming = [Incoming(True), Incoming(False)]
        self.writable = 0
        self.out = [[0] * operations for _ in range(workers)]  # of each outgoing buffer
        self.first = [0] * workers
        # Of each buffer, commands by when they were handed over, and their operation.
        self.parts: list[dict[tuple[int, int], int]] = [{} for _ in range(workers)]
        self.pending: int | None = None  # a cell drawn, for which there is no room yet
        self.first_round = True
        self.wakes: simpy.Event | None = None  # asleep until this
        self.stops, self.pace = False, 1.0  # takes so many times as long
        self.goes_on: simpy.Event | None = None  # stopped until this
        self.writers_done: simpy.Event | None = None
        self.waiters: list[int] = []
        self.full_targets: list[int] = []
        self.stuck = False
        self.asleep = self.asleep_since = 0
        self.time = ThreadTime()
        self.last_made = 0  # when the last command was put into a buffer
        self.taken: Incoming | None = None  # of whose commands `to_do` are left
        self.to_do = 0

    def paced(self, time_ps: int) -> int:
        """What takes it so long on a core of its own."""
        return rounded(time_ps * self.pace)

    def asleep_until(self, now: int) -> int:
        """For how long it has been asleep, or stopped, up to now."""
        rests = self.wakes is not None or self.goes_on is not None
        return self.asleep + (now - self.asleep_since if rests else 0)

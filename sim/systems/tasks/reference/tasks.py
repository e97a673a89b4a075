"""What is scheduled: parts of tables, queries that were asked, tasks; and what they used."""

from dataclasses import dataclass, field

from ..parameters import NOTHING


@dataclass
class Use:
    """Threads that work on something, and what they read and write, added up over time.

    A running task counts with the memory throughput that its class has on average.
    """

    threads: int = 0
    bytes_per_ps: float = 0.0
    cpu_ps: int = 0
    bytes: float = 0.0
    since: int = 0

    def until(self, now: int) -> None:
        """Brings the sums up to date."""
        self.cpu_ps += self.threads * (now - self.since)
        self.bytes += self.bytes_per_ps * (now - self.since)
        self.since = now

    def change(self, now: int, threads: int, bytes_per_ps: float) -> None:
        """So many threads more (or less), which use so much."""
        self.until(now)
        self.threads += threads
        self.bytes_per_ps = self.bytes_per_ps + bytes_per_ps if self.threads else 0.0


@dataclass(eq=False)
class Part:
    """Rows of a table. ``waiting``: tasks that came since it began to move."""

    number: int
    rows: int
    node: int
    blocked: bool = False
    waiting: "list[Task]" = field(default_factory=list)
    use: Use = field(default_factory=Use)


@dataclass(eq=False)
class Query:
    """A query that was asked. ``parts``: of each table, as they were then.

    By stage of the query: ``inputs_left`` and ``tasks_left`` that have not ended, ``made`` tasks,
    and the nodes on which they ``ran``.
    """

    number: int
    kind: int
    client: int
    asked_ps: int
    parts: list[list[Part]]
    stages_left: int
    inputs_left: dict[int, int]
    tasks_left: dict[int, int] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)
    ran: dict[int, list[int]] = field(default_factory=dict)


@dataclass(eq=False)
class Task:
    """``index`` among its stage's tasks, of whose entries it has the ``fraction``.

    ``home``: the node that its part lies on; ``node``: in whose queue it waits, or its worker's
    found it. ``owner``: the worker that it was dealt to, where each has a queue. ``touched``: the
    node of the thread that began it, where its own memory lies. ``copied``: a copy engine copies
    its data ahead.
    """

    number: int
    query: Query
    stage: int
    index: int
    part: Part | None
    fraction: float
    entries: float
    home: int
    node: int
    owner: int = NOTHING
    bytes_per_ps: float = 0.0
    copied: bool = False
    touched: int = NOTHING


@dataclass
class ClassCounts:
    """Of the tasks of a class. ``bytes_per_ps``: of a task, an exponential average; below 0 before
    the first has ended."""

    made: int = 0
    done: int = 0
    waiting: int = 0
    running: int = 0
    stolen: int = 0
    bytes_per_ps: float = -1.0

"""A scenario of tasks worked out for its planes: tables in parts, queries as stages, costs.

Every plane runs the same ``Program``: the event plane and the reference plane task by task, the
flow plane as rates. What changes while it is simulated (where parts lie, who may steal, which cores
are in use) is not here.
"""

from dataclasses import astuple, dataclass, replace
from math import inf
from typing import Literal

from ...kernel.arrays import Floats, Ints

Path = Literal["cpu", "copy-engine", "copy-engine-noncoherent"]

Place = Literal["part", "local", "interleaved"]
"""Where the memory is that a task uses: on the node or nodes of the table part that it works on; on
the node of the thread that runs it; on all nodes with memory in turn."""


@dataclass(frozen=True)
class MemoryUse:
    """Cache lines that miss all caches, per entry: read, and written back."""

    place: Place
    read: float
    written: float = 0.0


@dataclass(frozen=True)
class LoopCost:
    """What one entry of one of a stage's loops demands, see ``EntryCost``; without written lines,
    for which no loop waits."""

    instructions_s: Floats
    misses_at_once: Floats
    memory: tuple[MemoryUse, ...]


@dataclass(frozen=True)
class EntryCost:
    """What one entry of a stage demands; arrays are (n,), by the node of the thread that runs it.

    ``instructions_s``: core time of its instructions, which overlaps with its misses;
    ``separate_s``: time that overlaps with nothing (hits in shared caches that are waited for);
    ``misses_at_once``: cache lines that it has under way, prefetches included. ``warm_lines``: what
    the stage keeps in its core's own cache and has to read again on another core (None: nothing);
    ``warm_s``: from the last-level cache. ``loops``: of a stage with several, which its entries go
    through one after the other: instructions and misses of one overlap, those of two do not.
    """

    instructions_s: Floats
    separate_s: Floats
    misses_at_once: Floats
    memory: tuple[MemoryUse, ...]
    warm_lines: Floats | None = None
    warm_s: Floats | None = None
    loops: tuple[LoopCost, ...] = ()


@dataclass(frozen=True)
class Entries:
    """How many entries a stage works on: the sum of these, ``most`` at most, one per task at least.

    ``per_row`` of its table, ``per_part`` of its table, ``per_input_task`` of the stages before it.
    ``most``: tables of groups that are merged have no more entries than have gone into them.
    """

    per_row: float = 0.0
    per_part: float = 0.0
    per_input_task: float = 0.0
    constant: float = 0.0
    most: float = inf

    def count(self, rows: float, parts: int, input_tasks: int) -> float:
        """Of a stage on a table of so many rows and parts, after so many tasks."""
        each = self.per_row * rows + self.per_part * parts + self.per_input_task * input_tasks
        return min(each + self.constant, self.most)


@dataclass(frozen=True)
class Held:
    """A lock that an entry holds for ``held_s``, in which it does nothing else; and for as much as
    ``interrupt_s`` more for each other processor of the process, from which that takes as much.
    """

    name: str
    held_s: float
    interrupt_s: float = 0.0


@dataclass(frozen=True)
class Stage:
    """An operator, or a step of one (an aggregation is a local one and a merge), as tasks.

    ``task_class``: a name; tasks of one class are alike, and stealing is decided by class.
    ``table``: position of the table whose parts its tasks work on, in proportion to their rows;
    None: tasks run where those of its first input ran, or on any node.
    ``inputs``: positions of earlier stages. It starts when all tasks of all of them are done; or,
    where it is ``pipelined``, each of its tasks follows the task of its one input that has made its
    entries, on the same thread's node. ``parts_min``: it is left out where its table has fewer
    parts. ``concurrency``: tasks at most, as the system says where it is None. ``chunk_entries``:
    that a copy engine copies at a time, 0 where it cannot copy for it; ``path``: whether it does;
    None: as a policy says, by CPU without one. ``task_s``: of a task of this stage, beyond its
    entries and what every task takes. ``locks``: that an entry holds; ``cost.separate_s`` has the
    time that it holds them on a single processor, too.
    """

    name: str
    task_class: str
    cost: EntryCost
    entries: Entries
    table: int | None
    inputs: tuple[int, ...] = ()
    pipelined: bool = False
    parts_min: int = 1
    concurrency: int | None = None
    chunk_entries: float = 0.0
    path: Path | None = None
    task_s: float = 0.0
    locks: tuple[Held, ...] = ()

    @property
    def interrupt_s(self) -> float:
        """That an entry takes longer for each other processor, with all locks."""
        return sum(lock.interrupt_s for lock in self.locks)


@dataclass(frozen=True)
class Query:
    """One kind of query. ``clients``: how many ask for nothing else; 0: those of the mix do.

    ``share``: its part of the mix, at the start; shares of all queries of the mix sum to 1.
    """

    name: str
    stages: tuple[Stage, ...]
    clients: int
    share: float


@dataclass(frozen=True)
class Part:
    """Rows of a table that lie on one node (a position), or on those of a spread in turn."""

    rows: int
    node: int | None
    spread: int = 0


@dataclass(frozen=True)
class Table:
    """A table as it is at the start. ``bytes_per_row`` of index vectors; ``fixed_bytes`` of
    dictionaries, which each part has of its own.
    """

    name: str
    parts: tuple[Part, ...]
    bytes_per_row: float
    fixed_bytes: float
    group: str | None = None


@dataclass(frozen=True)
class Scheduling:
    """How tasks get to threads; times in seconds.

    ``workers`` (n,): threads of each node's pool. ``concurrency``: tasks of a stage at most; None:
    as many as workers are free when it starts, at least one. ``task_s``: core time of taking a task
    from a queue and of ending it. ``look_s``: how long a worker without work looks for more before
    it sleeps; infinite: it never sleeps. ``wake_s``: how long a woken one takes to run.
    ``queue``: one a ``node``, one a ``worker``, of which others of its node may take, or one of the
    whole ``machine``. ``affinity``: each thread has a ``core`` of its own, or the operating system
    moves it within its ``node``, or anywhere (``none``). ``switch_s``: of a thread that takes
    over a processor from another one in the middle of a task.
    """

    workers: Ints
    concurrency: int | None
    task_s: float
    look_s: float
    wake_s: float
    queue: Literal["node", "worker", "machine"] = "node"
    affinity: Literal["core", "node", "none"] = "core"
    switch_s: float = 0.0


@dataclass(frozen=True)
class Background:
    """Workers besides the queries' that never end, on node ``node`` (positions), with data at
    ``home``. ``interconnect``: each copies these to its node and scans them; ``copy-engine``: has
    its node's engine copy them there and back.
    """

    kind: Literal["interconnect", "copy-engine"]
    node: int
    home: int
    workers: int


@dataclass(frozen=True)
class Program:
    """All that a plane runs. ``mix_clients``: closed clients that draw each query from the mix;
    ``think_s``: their, and all closed clients', mean pause. ``arrivals_per_s``: of open clients, by
    which queries come instead; 0 where there are none.

    ``spreads``: (n,) each, the part of what lies on several nodes that is on each of them; the
    first one holds for what is no part of a table. None: all nodes with memory, alike.

    ``classes``: the names of the classes of tasks, in the order in which planes number them.
    """

    tables: tuple[Table, ...]
    queries: tuple[Query, ...]
    scheduling: Scheduling
    mix_clients: int
    think_s: float
    arrivals_per_s: float
    background: tuple[Background, ...] = ()
    spreads: tuple[tuple[float, ...], ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of all classes of tasks, each once, in order of queries and stages."""
        return tuple(dict.fromkeys(s.task_class for q in self.queries for s in q.stages))

    @property
    def locks(self) -> tuple[str, ...]:
        """Names of all locks, likewise."""
        stages = (s for q in self.queries for s in q.stages)
        return tuple(dict.fromkeys(lock.name for s in stages for lock in s.locks))

    def with_lock_times(self, name: str, times: float) -> "Program":
        """The program whose sections under a lock take ``times`` as long."""

        def changed(stage: Stage) -> Stage:
            locks, separate_s = list(stage.locks), stage.cost.separate_s
            for k, (lock, held_s, interrupt_s) in enumerate(map(astuple, locks)):
                if lock == name:
                    locks[k] = Held(name, held_s * times, interrupt_s * times)
                    separate_s = separate_s - held_s * (1.0 - times)
            cost = replace(stage.cost, separate_s=separate_s)
            return replace(stage, cost=cost, locks=tuple(locks))

        queries = (replace(q, stages=tuple(map(changed, q.stages))) for q in self.queries)
        return replace(self, queries=tuple(queries))

"""What a unit of work demands of a machine, in the form that every plane plays out.

Cores are the C cores in use, nodes the n nodes of the machine; a core's demand is for the part of
the unit that falls to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

# The steps of a worker's loop that routing adds.
ISSUE, RECEIVE = "making and routing commands", "receiving commands"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reads:
    """Cache lines that miss every cache: a core on node v reads ``weight`` (C,) times row v of
    ``lines`` (n, n), a number for each home node, per unit of work.

    ``stream``: one after the other, so that prefetchers help; else at random, in a batch.
    """

    weight: Floats
    lines: Floats
    stream: bool = False


@dataclass(frozen=True)
class Step:
    """A step of a worker's loop. Within a step, instructions and misses overlap; steps do not.

    ``core_s`` (C,): time that the core executes instructions; ``hit_s`` (C,): time that its miss
    slots are taken by what its caches deliver; ``reads``: what memory delivers. ``pace`` (C,): how
    much longer the core's slots are taken by a random read than by its latency alone.
    """

    name: str
    core_s: Floats
    hit_s: Floats
    reads: tuple[Reads, ...]
    pace: Floats | float = 1.0


@dataclass(frozen=True)
class Routing:
    """Commands that one worker issues and another executes, per unit of work.

    Who issues is not given: any worker that has time does.
    """

    executed: Floats
    """(C,) share of the commands that each core executes; the sum is 1."""
    issue_s: Floats
    """(n,) core time of making and routing all commands of a unit on one node."""
    flush_s: Floats
    """(n,) core time of flushing them."""
    receive_s: Floats
    """(n,) core time of receiving all commands of a unit on one node."""
    lines: float
    """Cache lines that go from issuer to executor, in the executor's memory."""
    answer_lines: float
    """Cache lines that go back, in the issuer's memory."""
    atomics: float
    """Atomic operations that an issuer does on the executor's memory, one after the other."""
    parts: Floats
    """(C,) headers of parts of batches under which commands come to each core."""
    part_s: Floats
    """(n,) core time of each on one node."""
    part_waits: float
    """Waits of an executor for lines of an issuer's, for each of them that another core sent."""
    read_waits: float
    """The same each time that it takes what others have sent, however much that is."""
    made: float
    """Units of work that a worker issues in a round of its loop, at most."""
    taken: float
    """Units that it takes in a round, at most."""
    others_make: float
    """Commands that all other workers issue in a round."""

    def rounds(self, issued: Floats, threads: Floats) -> Floats:
        """(C,) rounds of each core's workers, per unit, in which they take something of others'.

        ``issued`` (C,): shares of the cores in issuing; ``threads`` (C,): their workers. Who has
        time issues as many commands as it may in each round; who has none left takes what fits into
        its buffer.
        """
        all_rounds = np.maximum(issued / self.made, self.executed / self.taken)
        return all_rounds * (1.0 - (1.0 - self.executed / threads) ** self.others_make)


@dataclass(frozen=True)
class Demand:
    """F flows that do the same work in different places: one of all workers, or one per node.

    ``flow_of`` (n,): the flow that the cores of each node work for; what a step says of a core is
    per unit of that flow. With ``routing`` (of a single flow) workers have two more steps in their
    loop: issuing and receiving commands.
    """

    flow_of: Ints
    steps: tuple[Step, ...]
    writes: tuple[Reads, ...]
    """Lines written back, likewise: of ``lines`` (n, n) to each home; nobody waits for these."""
    batch: float
    """Commands of a group, whose misses can overlap."""
    miss_instructions: float
    """From a random read to the next one that does not wait for it."""
    contended: float = 0.0
    """Atomic writes to one and the same cache line, which goes from core to core for these."""
    routing: Routing | None = None
    asked_per_s: float = float("inf")
    """Units per second that clients ask for, all flows together."""

    @property
    def flows(self) -> int:
        """F."""
        return int(self.flow_of.max()) + 1


@dataclass(frozen=True)
class TransferDemand:
    """T copies between nodes; every array is (T,), and per unit (key or entry) that moves.

    ``source``, ``target``: positions of cores; ``source_home``, ``target_home``: of the nodes that
    have their data; ``source_s``, ``target_s``: what they execute.
    The source reads ``source_lines`` of its own memory, the target reads ``lines`` from the source
    and has ``written_lines`` to fetch for ownership and to write back.
    """

    source: Ints
    target: Ints
    source_home: Ints
    target_home: Ints
    source_s: Floats
    target_s: Floats
    source_lines: Floats
    lines: Floats
    written_lines: Floats

    @staticmethod
    def joined(parts: Sequence[TransferDemand]) -> TransferDemand:
        """All of ``parts``, in their order."""
        return TransferDemand(
            *(
                np.concatenate([getattr(part, f.name) for part in parts])
                for f in fields(TransferDemand)
            )
        )

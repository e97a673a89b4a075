"""Measured costs of the commits engine on a host: blocks of records, messages, draws.

The part ``engines: {commits: …}`` of a machine file. These are facts about single steps
(``numatwin machine measure``, part ``processes``); how a transaction is made of them is the cost
model's affair.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ....inputs.names import Name
from ....inputs.quantities import Duration, DurationOrZero, Size
from ....inputs.yaml_file import Strict
from ....topologies.processes import ProcessFacts
from ....topologies.schema import MachineDescription

ENGINE = "commits"

EndOperation = Literal["get", "put", "compare-and-swap", "add", "message"]


class BlockCost(Strict):
    """Steps on a block of ``size`` at a random place among ``region`` bytes of shared memory.

    ``get``: it is read, and its first word again. ``update``: the same, and it is locked by CAS,
    copied twice and written back. ``insert``: a new one is made and written, one place after the
    other. Per block, three at a time, as processors overlap what they miss, each time after 32 KiB
    of other data have been gone through. ``…_together``: while another processor updates and
    inserts blocks of the same memory.
    """

    size: Size
    region: Size
    get: Duration
    update: Duration
    insert: Duration
    get_together: Duration | None = None
    update_together: Duration | None = None
    insert_together: Duration | None = None


class EndCost(Strict):
    """What the two ends of a transport do for each of ``count`` requests posted at once.

    ``post``: until they are handed over. ``serve``: the other end, with its answers. ``complete``:
    the first end, until it knows. A put is a block and then its first word, and all are flushed.
    """

    operation: EndOperation
    size: Size
    count: Annotated[int, Field(strict=True, ge=1, le=1_000)]
    post: Duration
    serve: DurationOrZero
    complete: DurationOrZero


class TransportCosts(Strict):
    """A transport between processes.

    ``look``: at the network with nothing there. ``arm``: going to sleep, but for the sleep.
    ``sleeper_same``, ``sleeper_other``: a message of ``sleeper_size`` to a process that sleeps, on
    the same processor and on another one, until it is received. ``post_sleeper``: handing it over
    to the one on another processor. ``post_across``, ``serve_across``: handing over a message of
    that size to a process on another processor, and receiving it, where both look all the time.
    ``interrupted``: what a message to a sleeper on another processor, and its answer, take of the
    time of a process there that never stops.
    """

    look: Duration
    arm: Duration
    sleeper_size: Size
    sleeper_same: Duration
    sleeper_other: Duration | None = None
    post_sleeper: Duration | None = None
    post_across: Duration | None = None
    serve_across: Duration | None = None
    interrupted: Duration | None = None
    ends: Annotated[tuple[EndCost, ...], Field(min_length=1)]


class CommitFacts(Strict):
    """Of an engine on a host.

    ``key_draw``: drawing a record of a transaction, and where it lies. ``timestamp``: the end of a
    run of timestamps' bits in words at hand, and the place of a bit. ``note``: counting what a
    transaction did.
    """

    key_draw: Duration
    timestamp: Duration
    note: Duration | None = None
    blocks: Annotated[tuple[BlockCost, ...], Field(min_length=1)]
    transports: dict[Name, TransportCosts] = Field(default_factory=dict)


@dataclass(frozen=True)
class HostFacts:
    """All that a run on one host is made of: what its processes take, and what the engine takes."""

    processes: ProcessFacts
    engine: CommitFacts


def host_facts(description: MachineDescription) -> HostFacts | None:
    """What a machine file says of both; None where one is missing."""
    processes, engine = description.processes, description.facts_of(ENGINE, CommitFacts)
    return None if processes is None or engine is None else HostFacts(processes, engine)

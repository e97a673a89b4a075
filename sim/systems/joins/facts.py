"""Measured costs of the joins engine on a host: single passes over tuples, and exchanges.

The part ``engines: {joins: …}`` of a machine file. These are facts about single steps
(``numatwin machine measure``, part ``operators``); how an operator is made of them is the cost
model's affair (``host.py``).
"""

from typing import Annotated, Literal

from pydantic import Field

from ....inputs.names import Name
from ....inputs.quantities import Duration, Size
from ....inputs.yaml_file import Strict

ENGINE = "joins"
TUPLE_BYTES, GROUP_BYTES = 16.0, 24.0
"""Of the tuples that the passes were measured with, and of a group as the engine has it."""

Step = Literal[
    "count",
    "partition",
    "gather",
    "take",
    "build",
    "join",
    "new-group",
    "same-group",
    "send-group",
    "result-group",
    "new-cached",
    "same-cached",
    "filter-add",
    "filter-hit",
    "filter-miss",
]
Amount = Annotated[int, Field(strict=True, ge=1, le=2**40)]


class PassCost(Strict):
    """What one tuple (or group) takes in a pass of a thread, while each other thread does the same.

    ``step``: ``count`` by partition; ``partition``: into buffers, which are written past the
    caches; ``gather`` into messages; ``take`` from messages; ``build`` the hash table of a
    partition; ``join``: build and look up as many; ``…-group`` and ``…-cached``: added to a table
    of groups (a cached one: read and emptied when it is full) as a new one or one that is there,
    sent, or counted as a result; ``filter-…``: added to a Bloom filter, found there, or not.
    ``at``: how many partitions, inner tuples of a partition, or groups; bytes of a cached table or
    a filter; bytes of a message. ``buffer``: of a partition.
    """

    step: Step
    at: Amount
    buffer: Size | None = None
    time: Duration


class ExchangeCost(Strict):
    """What each of two ends takes for a message (or put) of ``size`` that it sends and one that it
    receives, where many are under way both ways."""

    operation: Literal["message", "put"]
    size: Size
    time: Duration


class JoinFacts(Strict):
    """Of an engine on a host; ``exchanges``: by transport."""

    passes: Annotated[tuple[PassCost, ...], Field(min_length=1)]
    exchanges: dict[Name, tuple[ExchangeCost, ...]] = Field(default_factory=dict)

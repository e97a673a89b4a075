"""Who takes part in an exchange: workers, nodes, and the messages between them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

# Rows of the trace, as the kernel numbers them.
ASK_QUERY, DUE, ENDED, POSTED, LEFT, REACHED, ARRIVED, COMPLETED, RECEIVED, BEGUN, ANSWERED = range(
    11
)
ROWS, ASK, ANSWER, READ, DATA = range(5)  # kinds of messages
NOTHING, UNDER_WAY, READY, OVER = range(4)  # states of fetching a piece from the queue
NONE = -1


@dataclass
class Message:
    """``part``: of the costs of rows; ``number``: of the request, or of the central step."""

    kind: int
    worker: int
    source: int
    target: int
    partition: int = NONE
    rows: int = 0
    lines: float = 0.0
    part: int = 0
    number: int = 0
    signaled: bool = False
    last_bits: int = 0


@dataclass
class Worker:
    """A thread with a core of its own.

    ``full``: (partition, rows) of buffers to be sent. ``spent_at``: its work on messages is over.
    """

    number: int
    node: int
    core: int
    idle: bool = True
    piece: int = NONE
    taking: int = 0
    taking_lines: float = 0.0
    flushed: int = NONE
    flushing: bool = False
    blocked: bool = False
    left_at: int = 0
    waits_since: int = 0
    spent_at: int = 0
    fetch: int = NOTHING
    fetched: int = NONE
    fill: list[int] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    unknown: list[deque[tuple[int, int]]] = field(default_factory=list)
    full: deque[tuple[int, int]] = field(default_factory=deque)


@dataclass
class Node:
    """``inbox``: (rows, lines, CPU time of receiving) of messages."""

    step: int = 0
    open: bool = False
    waits: bool = False
    cursor: int = 0
    pieces_left: int = 0
    unflushed: int = 0
    here: int = 0
    workers: list[Worker] = field(default_factory=list)
    inbox: deque[tuple[int, float, int]] = field(default_factory=deque)

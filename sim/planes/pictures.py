"""Pictures of a run that a system adds to the common ones, as plain data.

A system makes them of a Record (``System.pictures``); who draws them knows no system. All names in
them may come from other people's files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..kernel.arrays import Floats
from .outcome import Series


class PicturedRecord(Protocol):
    """What a system reads of a Record."""

    @property
    def machine(self) -> Mapping[str, Any]:
        """The machine as plain values."""

    @property
    def model(self) -> Mapping[str, Any]:
        """What the system's model said of itself."""

    @property
    def series(self) -> Series:
        """Columns over time."""

    @property
    def horizon_s(self) -> float:
        """The end."""


@dataclass(frozen=True)
class Strips:
    """Heat strips: ``values`` (R, P) of ``rows`` in pieces of time between ``edges_s`` (P + 1,).

    ``share``: values are parts of a whole, 0 to 1; else counts from 0 on, in ``unit``.
    """

    caption: str
    rows: tuple[str, ...]
    edges_s: Floats
    values: Floats
    unit: str = ""
    share: bool = False


@dataclass(frozen=True)
class Span:
    """A time in which one row of a timeline is in one state. ``state``: distinguished by colour;
    None: in all of them alike. ``changing``: shown paler. ``words`` tell more.
    """

    start_s: float
    end_s: float
    state: str | None
    words: str
    changing: bool = False


@dataclass(frozen=True)
class Timeline:
    """Rows of spans, by name; ``states`` in the order of their colours, ``spread`` names None."""

    caption: str
    rows: Mapping[str, tuple[Span, ...]]
    states: tuple[str, ...]
    spread: str = ""


@dataclass(frozen=True)
class Steps:
    """Lines that are constant between ``edges_s`` (P + 1,): ``lines`` (P,) by name, from 0 on.

    ``stacked``: on top of each other.
    """

    caption: str
    edges_s: Floats
    lines: Mapping[str, Floats]
    unit: str
    stacked: bool = False


@dataclass(frozen=True)
class Square:
    """A matrix of ``names`` by ``names``: ``values`` (n, n), rows ``of`` them ``to`` columns."""

    caption: str
    names: tuple[str, ...]
    values: Floats
    of: str
    to: str
    unit: str


Picture = Strips | Timeline | Steps | Square

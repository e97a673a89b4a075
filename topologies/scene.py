"""A machine's picture as lines, areas and labels, for any painter (Plotly, SVG) to paint.

Positions are in units of about one node, y upwards; widths and letters in pixels at the picture's
natural size. Texts are plain: the painter escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from .routes import Floats

INK, PALE_INK, PAPER = "#1f2933", "#5b6b7b", "#ffffff"
# Use from 0 to 1: pale to dark, with a warm middle (after ColorBrewer's YlOrRd).
USE_COLOURS = ("#c3cedb", "#fed976", "#fd8d3c", "#e31a1c", "#800026")
USE_STEPS = 20


@dataclass
class Lines:
    """Paths of one look, (k, 2) each; ``key`` is the legend entry that they belong to."""

    colour: str
    width_px: float
    opacity: float
    key: str
    paths: list[Floats] = field(default_factory=list)


@dataclass
class Areas:
    """Closed outlines of one look, (k, 2) each."""

    fill: str
    edge: str
    edge_px: float
    key: str | None = None
    paths: list[Floats] = field(default_factory=list)


@dataclass(frozen=True)
class Label:
    """A text with its middle at ``x``, ``y``."""

    x: float
    y: float
    text: str
    size_px: float
    colour: str = INK
    bold: bool = False


@dataclass(frozen=True)
class Spot:
    """Where the mouse finds facts, a line of text each; ``radius`` in units."""

    x: float
    y: float
    radius: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """An entry of the legend: ``shape`` is ``line``, ``box`` or ``disc``."""

    name: str
    shape: str
    colour: str
    width_px: float = 1.0


@dataclass
class Scene:
    """All that is painted, in the order of painting: frames, lines, areas, labels."""

    name: str
    title: str
    note: str
    low: tuple[float, float]
    high: tuple[float, float]
    unit_px: float
    frames: list[Areas] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    areas: list[Areas] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    scale: str | None = None
    """What the colours of use mean, None where nothing is coloured by use."""
    measure: str = "in use"
    """What a share of a link or a node is, in words."""


def use_colour(use: float) -> str:
    """The colour of a use from 0 to 1, in ``USE_STEPS`` steps."""
    return _colour_of_step(round(min(max(use, 0.0), 1.0) * USE_STEPS))


@cache
def _colour_of_step(step: int) -> str:
    position = step / USE_STEPS * (len(USE_COLOURS) - 1)
    k = min(int(position), len(USE_COLOURS) - 2)
    low, high = (_rgb(colour) for colour in USE_COLOURS[k : k + 2])
    mixed = (round(a + (b - a) * (position - k)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return red, green, blue


def ink_on(fill: str) -> str:
    """Dark or white letters, whichever stands out (relative luminance of ITU-R BT.709)."""
    red, green, blue = _rgb(fill)
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 140 else PAPER

"""Predicate/transition nets with one token: places, guarded transitions, and their properties.

A token is a tuple of numbers. Each transition takes it from one place, where its guard holds for
it, and puts it, changed or not, into another. A net is data: it is simulated, checked and drawn.

Paints a Petri net as SVG: places as circles, transitions as bars with their guards.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from math import hypot

Token = tuple[float, ...]


@dataclass(frozen=True)
class Transition:
    """From one place to another where ``guard`` holds for the token, which ``effect`` changes.

    ``guard_text`` and ``effect_text`` say so in a picture. ``waits``: it fires only when a new
    measurement comes (``PetriNet.measured``), which replaces the first component of the token.
    ``action``: what firing it orders, by a name of the net's user; empty: nothing.
    """

    name: str
    source: str
    target: str
    guard: Callable[[Token], bool]
    guard_text: str
    effect: Callable[[Token], Token] = lambda token: token
    effect_text: str = ""
    waits: bool = False
    action: str = ""


@dataclass(frozen=True)
class PetriNet:
    """``places`` in order, ``start`` the one with the token at first. ``positions``: of each place
    and transition in a picture, in units of its grid.
    """

    name: str
    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    start: str
    positions: dict[str, tuple[float, float]]

    def enabled(self, place: str, token: Token, *, measured: bool) -> tuple[Transition, ...]:
        """Transitions that may fire; ``measured``: a new measurement has come."""
        return tuple(
            transition
            for transition in self.transitions
            if transition.source == place
            and transition.waits == measured
            and transition.guard(token)
        )

    def measured(self, place: str, token: Token) -> tuple[str, Token, tuple[Transition, ...]]:
        """A measurement has come, as the token's first component: fires until the token rests.

        Returns where it rests, the token, and what fired in that order. Raises AssertionError where
        two transitions may fire, or none can take the measurement.
        """
        fired: list[Transition] = []
        waiting = True
        while True:
            able = self.enabled(place, token, measured=waiting)
            if waiting:
                assert able, f"net '{self.name}' takes no measurement in place {place}"
            elif not able:
                break
            assert len(able) == 1, f"net '{self.name}': {len(able)} transitions may fire"
            assert len(fired) <= len(self.transitions), f"net '{self.name}' never rests"
            chosen = able[0]
            fired.append(chosen)
            place, token, waiting = chosen.target, chosen.effect(token), False
        assert any(
            transition.waits and transition.source == place for transition in self.transitions
        ), f"net '{self.name}': deadlock in place {place}"
        return place, token, tuple(fired)

    def faults(self, start: Token, measurements: Iterable[float]) -> Iterator[str]:
        """What is wrong with the net, whatever of ``measurements`` come in whatever order.

        A place where no measurement can be taken (deadlock), two transitions that may fire at once,
        a token that never rests, a transition that never fires (dead), a place never reached.
        """
        choices = tuple(measurements)
        fired: set[str] = set()
        seen = {(self.start, start)}
        queue = deque(seen)
        reached = {self.start}
        while queue:
            place, token = queue.popleft()
            for measurement in choices:
                try:
                    reached_place, became, path = self.measured(place, (measurement, *token[1:]))
                except AssertionError as failure:
                    yield str(failure)
                    return
                fired.update(transition.name for transition in path)
                reached.update(transition.target for transition in path)
                state = (reached_place, (0.0, *became[1:]))
                if state not in seen:
                    seen.add(state)
                    queue.append(state)
        for transition in self.transitions:
            if transition.name not in fired:
                yield f"transition {transition.name} is dead"
        for name in self.places:
            if name not in reached:
                yield f"place {name} is never reached"


UNIT_PX, EDGE_PX, TITLE_PX = 150.0, 90.0, 50.0
PLACE_PX, BAR_PX = 38.0, 26.0  # radius of a place, length of a bar
NOTE = "Filled transitions fire at once, hollow ones when a new measurement comes."
INK, PALE, PAPER = "#1f2933", "#5f6b7a", "#ffffff"


def net_svg(net: PetriNet, title: str) -> str:
    """The picture as an SVG file. The start place has the token; waiting transitions are hollow."""
    return "\n".join(_Painter(net, title).parts()) + "\n"


class _Painter:
    """Turns the net's grid into pixels."""

    def __init__(self, net: PetriNet, title: str) -> None:
        self.net, self.title = net, title
        xs, ys = zip(*net.positions.values(), strict=True)
        self.low = (min(xs), min(ys))
        self.width = (max(xs) - min(xs)) * UNIT_PX + 2 * EDGE_PX
        self.height = (max(ys) - min(ys)) * UNIT_PX + 2 * EDGE_PX + TITLE_PX

    def parts(self) -> Iterator[str]:
        """The file, element by element."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" '
            f'height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="13">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield (
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{PALE}"/></marker>'
            "</defs>"
        )
        yield f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        yield f'<text x="24" y="34" font-size="17" fill="{INK}">{escape(self.title)}</text>'
        yield f'<text x="24" y="54" font-size="12.5" fill="{PALE}">{escape(NOTE)}</text>'
        for transition in self.net.transitions:
            yield self._arc(transition.source, transition.name, PLACE_PX, 8.0)
            yield self._arc(transition.name, transition.target, 8.0, PLACE_PX)
        for name in self.net.places:
            yield from self._place(name)
        for transition in self.net.transitions:
            yield from self._bar(transition)
        yield "</svg>"

    def _at(self, name: str) -> tuple[float, float]:
        x, y = self.net.positions[name]
        return (
            EDGE_PX + (x - self.low[0]) * UNIT_PX,
            TITLE_PX + EDGE_PX + (y - self.low[1]) * UNIT_PX,
        )

    def _arc(self, source: str, target: str, from_px: float, to_px: float) -> str:
        (x1, y1), (x2, y2) = self._at(source), self._at(target)
        length = hypot(x2 - x1, y2 - y1)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        return (
            f'<line x1="{x1 + from_px * dx:.1f}" y1="{y1 + from_px * dy:.1f}" '
            f'x2="{x2 - to_px * dx:.1f}" y2="{y2 - to_px * dy:.1f}" stroke="{PALE}" '
            'stroke-width="1.4" marker-end="url(#tip)"/>'
        )

    def _place(self, name: str) -> Iterator[str]:
        x, y = self._at(name)
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{PLACE_PX}" fill="{PAPER}" stroke="{INK}" '
            'stroke-width="1.8"/>'
        )
        yield (
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{INK}">'
            f"{escape(name)}</text>"
        )
        if name == self.net.start:
            yield f'<circle cx="{x:.1f}" cy="{y + 19:.1f}" r="5" fill="{INK}"/>'

    def _bar(self, transition: Transition) -> Iterator[str]:
        x, y = self._at(transition.name)
        fill = PAPER if transition.waits else INK
        yield (
            f'<rect x="{x - 4:.1f}" y="{y - BAR_PX / 2:.1f}" width="8" height="{BAR_PX}" '
            f'fill="{fill}" stroke="{INK}"/>'
        )
        words = ", ".join(text for text in (transition.guard_text, transition.effect_text) if text)
        for text, below, weight in (
            (transition.name, -BAR_PX / 2 - 6, "bold"),
            (words, 30.0, "normal"),
        ):
            yield (
                f'<text x="{x:.1f}" y="{y + below:.1f}" text-anchor="middle" font-size="12" '
                f'font-weight="{weight}" fill="{INK}" paint-order="stroke" stroke="{PAPER}" '
                f'stroke-width="3">{escape(text)}</text>'
            )

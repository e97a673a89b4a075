"""Predicate/transition nets with one token: places, guarded transitions, and their properties.

A token is a tuple of numbers. Each transition takes it from one place, where its guard holds for
it, and puts it, changed or not, into another. A net is data: it is simulated, checked and drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

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

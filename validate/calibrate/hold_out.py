"""The held-out measurements: a share of each kind, drawn by a seed, not used in the fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .observation import THROUGHPUT, Measured, Observation

SHARE = 0.2
# What a figure holds for, by which parameters differ.
PLACES = ("node", "home", "level", "transport", "operation", "step")


def held_out(
    sources: Sequence[Measured], share: float | None, seed: int
) -> tuple[list[Observation], list[Observation]]:
    """The observations to fit to, and those held out.

    ``share`` None: a fifth of each kind, but where a source has a rule of its own, by that. An end
    result is held out in any case: fitted to, it would be an input of its own prediction. What is
    measured once only is never held out by chance, as nothing else would determine it: of figures
    alike, one stays. Neither values nor files' order matter, only what was measured.
    """
    fitted: list[Observation] = []
    held: list[Observation] = []
    drawn: list[Observation] = []
    for source in sources:
        for at, one in enumerate(source.observations):
            if one.kind == THROUGHPUT:
                held.append(one)
            elif share is None and source.held_out is not None:
                (held if at in source.held_out else fitted).append(one)
            else:
                drawn.append(one)
    kinds = sorted({one.kind for one in drawn})
    rng = np.random.default_rng(seed)
    for kind in kinds:
        ones = sorted(
            (one for one in drawn if one.kind == kind),
            key=lambda one: (one.origin.label, one.label, str(one.repetition_key), one.line or 0),
        )
        chosen = _chosen(ones, SHARE if share is None else share, rng)
        for at, one in enumerate(ones):
            (held if at in chosen else fitted).append(one)
    return fitted, held


def _chosen(ones: Sequence[Observation], share: float, rng: np.random.Generator) -> set[int]:
    """Positions of those to hold out, as many as the share says and as may be."""
    wanted = int(share * len(ones) + 0.5)
    left: dict[str, int] = {}
    for one in ones:
        left[_place(one)] = left.get(_place(one), 0) + 1
    found: set[int] = set()
    for at in rng.permutation(len(ones)).tolist():
        place = _place(ones[at])
        if len(found) < wanted and left[place] > 1:
            found.add(at)
            left[place] -= 1
    return found


def _place(one: Observation) -> str:
    """What determines the same parameter: a curve's points all do, pairs of nodes do not."""
    ends = [f"{name}={one.at[name]}" for name in PLACES if name in one.at]
    if one.at.get("threads") == 1:  # this alone tells what one core holds under way
        ends.append("one thread")
    return " ".join([one.kind, *ends])

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
        for index, observation in enumerate(source.observations):
            if observation.kind == THROUGHPUT:
                held.append(observation)
            elif share is None and source.held_out is not None:
                (held if index in source.held_out else fitted).append(observation)
            else:
                drawn.append(observation)
    kinds = sorted({observation.kind for observation in drawn})
    rng = np.random.default_rng(seed)
    for kind in kinds:
        ones = sorted(
            (observation for observation in drawn if observation.kind == kind),
            key=lambda observation: (
                observation.origin.label,
                observation.label,
                str(observation.repetition_key),
                observation.line or 0,
            ),
        )
        chosen = _chosen(ones, SHARE if share is None else share, rng)
        for index, observation in enumerate(ones):
            (held if index in chosen else fitted).append(observation)
    return fitted, held


def _chosen(ones: Sequence[Observation], share: float, rng: np.random.Generator) -> set[int]:
    """Positions of those to hold out, as many as the share says and as may be."""
    wanted = int(share * len(ones) + 0.5)
    left: dict[str, int] = {}
    for observation in ones:
        left[_place(observation)] = left.get(_place(observation), 0) + 1
    found: set[int] = set()
    for position in rng.permutation(len(ones)).tolist():
        place = _place(ones[position])
        if len(found) < wanted and left[place] > 1:
            found.add(position)
            left[place] -= 1
    return found


def _place(observation: Observation) -> str:
    """What determines the same parameter: a curve's points all do, pairs of nodes do not."""
    ends = [f"{name}={observation.at[name]}" for name in PLACES if name in observation.at]
    if observation.at.get("threads") == 1:  # this alone tells what one core holds under way
        ends.append("one thread")
    return " ".join([observation.kind, *ends])

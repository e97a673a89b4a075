"""Work that several descriptions have in common: done once while ``shared`` lasts.

A study loads thousands of scenarios that name the same files. Outside of ``shared`` nothing is
kept, so that a file that was changed is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Result = TypeVar("Result")
KEPT_MAX = 64  # of each kind


class SharedWork:
    """What was made so far, by kind and key; of each kind those made last."""

    def __init__(self) -> None:
        self._made: dict[str, dict[Hashable, Any]] = {}

    def once(
        self,
        kind: str,
        key: Hashable,
        make: Callable[[], Result],
        most: Callable[[Result], int] = lambda made: KEPT_MAX,
    ) -> Result:
        """What ``make`` makes, or made before for that ``key``; it must not be changed.

        ``most``: how many of its size may be kept.
        """
        made = self._made.setdefault(kind, {})
        if key not in made:
            found = make()
            while len(made) >= most(found):
                made.pop(next(iter(made)))
            made[key] = found
        return made[key]  # type: ignore[no-any-return]


_PRESENT: ContextVar[SharedWork | None] = ContextVar("shared work", default=None)


@contextmanager
def shared(work: SharedWork) -> Iterator[None]:
    """Within, ``once`` looks into ``work`` and adds to it."""
    token = _PRESENT.set(work)
    try:
        yield
    finally:
        _PRESENT.reset(token)


def sharing() -> bool:
    """Whether ``once`` keeps anything now: who makes long keys asks first."""
    return _PRESENT.get() is not None


def once(
    kind: str,
    key: Hashable,
    make: Callable[[], Result],
    most: Callable[[Result], int] = lambda made: KEPT_MAX,
) -> Result:
    """What ``make`` makes; within ``shared`` only where it has not been made for that ``key``."""
    work = _PRESENT.get()
    return make() if work is None else work.once(kind, key, make, most)

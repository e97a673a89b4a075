"""Descriptions by name: the bundled files of one folder, and any file of the user's."""

import difflib
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .errors import InputError


@dataclass(frozen=True)
class Catalogue:
    """The bundled ``*.yaml`` of ``folder``; ``noun`` is what one of them describes; ``listed``:
    whether a command lists them.
    """

    folder: Path
    noun: str
    listed: bool = True

    def names(self) -> list[str]:
        """The names of the bundled files, in alphabetical order."""
        return list(once("names", self.folder, self._names))

    def _names(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.yaml"))

    def is_bundled(self, name_or_path: str) -> bool:
        """Whether the text is meant as a name: a path has a slash, or ends as YAML files do."""
        return "/" not in name_or_path and not name_or_path.endswith((".yaml", ".yml"))

    def path(self, name_or_path: str, folder: Path = Path()) -> Path:
        """The file meant; a path is relative to ``folder``.

        Raises InputError for an unknown name; whether there is a file at a path is not looked at.
        """
        if not self.is_bundled(name_or_path):
            return folder / name_or_path
        names = self.names()
        if name_or_path not in names:
            close = difflib.get_close_matches(name_or_path, names, 1)
            others = f"a name that 'numatwin {self.noun} list' prints"
            if not self.listed:
                close = names if len(names) == 1 else close
                others = f"one of {', '.join(names)}"
            known = f"'{close[0]}'" if close else others
            raise InputError(
                f"unknown {self.noun}",
                token=name_or_path,
                expected=f"{known}, or a path to a .yaml file",
            )
        return self.folder / f"{name_or_path}.yaml"


Result = TypeVar("Result")
KEPT_MAX = 64  # of each kind


class SharedWork:
    """What was ``made`` so far, by kind and key; of each kind those made last."""

    def __init__(self) -> None:
        self.made: dict[str, dict[Hashable, Any]] = {}


_PRESENT: ContextVar[SharedWork | None] = ContextVar("shared work", default=None)


@contextmanager
def shared(work: SharedWork | None = None) -> Iterator[None]:
    """Within, ``once`` looks into ``work`` and adds to it; by default, into what is shared already,
    if anything is.
    """
    token = _PRESENT.set(work or _PRESENT.get() or SharedWork())
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
    """What ``make`` makes; within ``shared`` only where it has not been made for that ``key``, and
    then it must not be changed. ``most``: how many of its size may be kept.
    """
    work = _PRESENT.get()
    if work is None:
        return make()
    made = work.made.setdefault(kind, {})
    if key not in made:
        found = make()
        while len(made) >= most(found):
            made.pop(next(iter(made)))
        made[key] = found
    return made[key]  # type: ignore[no-any-return]

"""Descriptions by name: the bundled files of one folder, and any file of the user's."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from .errors import InputError
from .shared_work import once


@dataclass(frozen=True)
class Catalogue:
    """The bundled ``*.yaml`` of ``folder``; ``noun`` is what one of them describes."""

    folder: Path
    noun: str

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
            known = f"'{close[0]}'" if close else f"a name that 'numatwin {self.noun} list' prints"
            raise InputError(
                f"unknown {self.noun}",
                token=name_or_path,
                expected=f"{known}, or a path to a .yaml file",
            )
        return self.folder / f"{name_or_path}.yaml"

"""The exception for a user's mistake: in a file, a field, an argument."""

from dataclasses import dataclass, fields

Place = tuple[str | int, ...]
"""A part of a document: keys and positions in lists, outermost first."""


class DescriptionError(ValueError):
    """A description that reads well but makes no sense; ``place`` names the part at fault."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass
class InputError(Exception):
    """Bad input, reported in one line; the command line prints it and exits with status 2.

    ``file``, ``line`` and ``column`` (both counted from 1) say where, ``token`` what stood there,
    ``expected`` what should have. All but ``message`` may be missing. ``place``: the part of the
    document at fault; ``others``: what else was found wrong at the same time, in the order of
    lines; ``hint``: what to do next.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    token: str | None = None
    expected: str | None = None
    place: Place | None = None
    others: "tuple[InputError, ...]" = ()
    hint: str | None = None

    def __post_init__(self) -> None:
        # SimPy and pickle make an exception again from its arguments, which lack those by keyword.
        super().__init__(*(getattr(self, part.name) for part in fields(self)))

    @property
    def of_whole_file(self) -> bool:
        """Whether it is of a file as a whole: who names the file has the line to mend."""
        return self.line is None and self.file is not None and not self.file.startswith("--")

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        text = f"{where}: {self.message}" if where else self.message
        if self.token is not None:
            # Cut where it would fill the line.
            token = self.token if len(self.token) <= 60 else self.token[:59] + "…"
            text += f": found {token!r}"
        if self.expected is not None:
            text += f"{':' if self.token is None else ','} expected {self.expected}"
        if self.hint is not None:
            text += f" ({self.hint})"
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class DiskFull(InputError):
    """No room on the disk: what is finished is safe, and more room lets it go on (status 75)."""


def is_interrupt(failure: BaseException) -> bool:
    """Whether it is Ctrl-C: pydantic wraps what is raised while it writes a model out."""
    wrapped = type(failure).__name__ == "PydanticSerializationError"
    return isinstance(failure, KeyboardInterrupt) or (
        wrapped and "KeyboardInterrupt" in str(failure)
    )

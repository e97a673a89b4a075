"""How long work tells who waits for it: the part that is done, from 0 to 1."""

from collections.abc import Callable

Progress = Callable[[float], object]
StepProgress = Callable[[float, str], object]
"""And what is being done."""


def silent(*_: object) -> None:
    """Nobody waits."""


def part_of(progress: Callable[..., object], first: float, last: float) -> Callable[..., None]:
    """Tells ``progress`` of a part of the work, which goes from the one share to the other."""

    def tell(share: float, *what: str) -> None:
        progress(first + share * (last - first), *what)

    return tell

"""A query's plan with what each operator did, as engines print it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...inputs import InputError

MOST = 1e15  # rows or bytes of an operator


@dataclass(frozen=True)
class PlanOperator:
    """One operator. ``rows``: that it works on, in all; ``results``: that it passes on.

    ``inputs``: names of the operators whose results it reads. ``table``: that it reads itself,
    ``row_groups`` of it. ``row_bytes``: of a result. ``parallel``: how many threads worked on it at
    most, as the plan had it; None: not known.
    """

    name: str
    kind: str
    rows: float
    results: float
    row_bytes: float
    inputs: tuple[str, ...] = ()
    table: str | None = None
    row_groups: int | None = None
    parallel: int | None = None


@dataclass(frozen=True)
class Plan:
    """Of one query, operators after those that they need. ``engine``: a key of ``ENGINES``."""

    source: str
    engine: str
    operators: tuple[PlanOperator, ...]
    notes: tuple[str, ...] = ()


def amount(node: dict[str, Any], key: str, source: str) -> float:
    """What a plan counts of an operator, 0 where it does not; raises InputError."""
    value = node.get(key) or 0
    if not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        expected = f"a number from 0 to {MOST:g}"
        raise InputError(
            f"'{key}' of an operator", source, token=str(value)[:40], expected=expected
        )
    return float(value)


def below(node: dict[str, Any], key: str, source: str) -> list[Any]:
    """What a plan has below an operator; raises InputError."""
    found = node.get(key) or []
    if not isinstance(found, list):
        raise InputError(
            f"'{key}' of an operator", source, token=str(found)[:40], expected="a list"
        )
    return found


class Names:
    """Names that are not taken yet."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def __call__(self, kind: str) -> str:
        base = "-".join(_words(kind)) or "operator"
        self._taken[base] = count = self._taken.get(base, 0) + 1
        return base if count == 1 else f"{base}-{count}"


def _words(text: str) -> Iterator[str]:
    for word in text.replace("_", " ").split():
        yield "".join(c for c in word.lower() if c.isalnum())

"""A query's plan with what each operator did, as engines print it."""

import json
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
    value = node.get(key)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        raise wrong(key, source, value, f"a number from 0 to {MOST:g}")
    return float(value)


def wrong(
    key: str, source: str, value: object, expected: str, line: int | None = None
) -> InputError:
    """Of what stands in a plan where something else is ``expected``."""
    token = value if isinstance(value, str) else json.dumps(value)
    return InputError(f"'{key}' of an operator", source, line, None, token, expected)


def below(node: dict[str, Any], key: str, source: str) -> list[Any]:
    """What a plan has below an operator; raises InputError."""
    found = node.get(key)
    if not isinstance(found, (list, type(None))):
        raise wrong(key, source, found, "a list")
    return found or []


class Names:
    """Names that are not taken yet, as workload files may have them."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def __call__(self, kind: str) -> str:
        base = "-".join(_words(kind))[:40]
        base = base if base[:1].isalpha() else f"operator-{base}".rstrip("-")
        self._taken[base] = count = self._taken.get(base, 0) + 1
        return base if count == 1 else f"{base}-{count}"


def _words(text: str) -> Iterator[str]:
    for word in text.replace("_", " ").split():
        yield "".join(c for c in word.lower() if c.isascii() and c.isalnum())

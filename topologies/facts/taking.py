"""Values taken from the catalogue, each with where it comes from and how far it may be off."""

from __future__ import annotations

from dataclasses import dataclass

from ...inputs import Quantity
from ..schema_types import Fact

DIGITS = 4


@dataclass(frozen=True)
class Origin:
    """Whose values they are: an entry of the catalogue, or a guess for what is not in it."""

    label: str
    guessed: bool = False

    def text(self, source: str | None) -> str:
        """What stands in the source of a value."""
        head = f"{'guessed' if self.guessed else 'catalogue'} ({self.label})"
        return f"{head}: {source}" if source else head

    def quantity(
        self, value: float, low: float, high: float, source: str | None, *, sure: bool = False
    ) -> Quantity:
        """The quantity, rounded; one with a range is uncertain, as the machine's own is unknown."""
        value, low, high = _rounded(value), _rounded(low), _rounded(high)
        doubtful = self.guessed or (not sure and low < high)
        return Quantity(value, min(low, value), max(high, value), self.text(source), doubtful)

    def taken(self, known: Quantity, source: str | None = None) -> Quantity:
        """A quantity of the catalogue."""
        return self.quantity(known.value, known.low, known.high, known.source or source)

    def fact(self, known: Fact, source: str | None = None) -> Fact:
        """A number of the catalogue."""
        doubtful = self.guessed or known.range is not None
        return Fact(
            value=known.value,
            range=known.range,
            source=self.text(known.source or source),
            doubtful=doubtful,
        )


def bounds(fact: Fact) -> tuple[float, float]:
    """The range of a number, both its value where it has none."""
    return fact.range or (fact.value, fact.value)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")

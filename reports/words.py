"""Numbers and names formatted for the page and its pictures."""

import html
import math
import re
import textwrap
from collections.abc import Iterable

UNKNOWN = "–"
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def si(value: float | None, unit: str, digits: int = 3) -> str:
    """``2.31 G lookups/s``, ``123 GB/s``, ``5 M/s``; a prefix joins a symbol, as in ``GB/s``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    rounded = float(f"{value:.{digits}g}")
    scale, prefix = next((p for p in _PREFIXES if abs(rounded) >= p[0]), (1.0, ""))
    number = _digits(rounded / scale, digits) if scale == 1 else f"{rounded / scale:#.{digits}g}"
    number = number.rstrip(".")
    symbol = unit.split("/")[0]
    joint = "" if len(symbol) <= 2 else " "  # a symbol (B, W, Hz) or none (/s), not a word
    if not prefix and not symbol:
        return f"{number}{unit}"
    return f"{number} {prefix}{joint if prefix else ''}{unit}".strip()


def seconds(value_s: float | None, digits: int = 3) -> str:
    """``8.12 s``, ``350 ms``, ``129 ns``."""
    if value_s is None or not math.isfinite(value_s):
        return UNKNOWN
    rounded = float(f"{value_s:.{digits}g}")
    if rounded == 0:
        return "0 s"
    scale, unit = next((t for t in _TIMES if abs(rounded) >= t[0] * 0.9999), _TIMES[-1])
    return f"{_digits(rounded / scale, digits)} {unit}"


def nanoseconds(value_ns: float | None, digits: int = 3) -> str:
    """The same of nanoseconds."""
    return seconds(None if value_ns is None else value_ns * 1e-9, digits)


def figure_text(value: float | None, unit: str, digits: int = 0) -> str:
    """A figure in its unit: times as people read them, shares as per cent with ``digits``."""
    if unit in ("ns", "s"):
        return nanoseconds(value) if unit == "ns" else seconds(value)
    return percent(value, digits) if unit == "1" else si(value, unit.removeprefix("1"))


def percent(value: float | None, digits: int = 0) -> str:
    """``94%``; small ones keep two digits, so that little is distinguishable from nothing."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if 0 < abs(value) < 0.0995 and digits == 0:
        digits = 1
    return f"{100 * value:.{digits}f}%"


def signed_percent(value: float | None) -> str:
    """``+6.2%``, ``−31%``, with a real minus sign."""
    text = percent(value)
    if value is None or text == UNKNOWN:
        return text
    return ("−" if value < 0 else "+") + text.lstrip("-")


def _digits(value: float, digits: int) -> str:
    """So many digits, never with an exponent: ``1000``, ``0.00012``."""
    return f"{value:.12f}".rstrip("0").rstrip(".") if value else "0"


def plain(value: float, digits: int = 3) -> str:
    """``1.53``, ``1410``: never with an exponent."""
    return _digits(float(f"{value:.{digits}g}"), digits)


def rate(per_second: float | None, operation: str) -> str:
    """``2.31 G lookups/s``."""
    return si(per_second, f"{plural(operation)}/s")


def plural(operation: str) -> str:
    """``lookup`` → ``lookups``; a name that ends otherwise than in a letter, or is no noun, such as
    ``by-region``, stays as it is."""
    words = operation.lower().replace("_", "-")
    if re.search(r"([^a-rt-z]|^)$|\b(by|for|from|in|of|on|to|with)\b", words):
        return operation
    if operation[-1:] == "y" and operation[-2:-1] not in [*"aeiou"]:
        return operation[:-1] + "ies"
    return operation + ("es" if operation.endswith(("ch", "sh", "x", "z")) else "s")


def count(number: int, noun: str) -> str:
    """``1 run``, ``4 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", "\u202f")


def all_of(number: int, noun: str) -> str:
    """``Both runs``, ``All 4 runs``."""
    return f"Both {noun}s" if number == 2 else f"All {count(number, noun)}"


def listing(names: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def some(names: Iterable[str], most: int = 8) -> list[str]:
    """The names; of many, the first and how many more there are."""
    found = list(names)
    more = len(found) - most
    return found if more <= 1 else [*found[:most], f"{more} more"]


def shortened(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last an ellipsis where text was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def label(text: object, limit: int = 80) -> str:
    """Text for a Plotly picture: what Plotly would read as a tag, entity or template is none."""
    plain = "".join(c if c.isprintable() else " " for c in str(text))
    return html.escape(shortened(plain, limit), quote=False).replace("{", "&#123;")


def label_of_row(text: str, width: int) -> str:
    """The same beside a bar: in two lines of much the same length where it is wider than that."""
    if len(text) <= width:
        return label(text, width)
    half = min(len(text) // 2 + 2, width)
    lines = textwrap.wrap(text, half, max_lines=2, placeholder=" …", break_on_hyphens=False)
    return "<br>".join(label(line, half) for line in lines)

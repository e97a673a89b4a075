"""What is written as JSON: results, whose numbers may be NumPy's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .atomic import write_text_atomically


def json_text(value: Any, **layout: Any) -> str:
    """``value`` as JSON, with NumPy's scalars and arrays as numbers and lists.

    ``layout``: that of ``json.dumps``. Raises ValueError for what is not finite.
    """
    return json.dumps(value, allow_nan=False, default=_plain, **layout)


def write_json(path: str | Path, value: Any) -> None:
    """Writes it to ``path``, whole or not at all. Raises InputError."""
    write_text_atomically(path, json_text(value, indent=1) + "\n")


def _plain(value: Any) -> Any:
    """Scalars and arrays know themselves as Python's values; NumPy is slow to import here."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return value.tolist()

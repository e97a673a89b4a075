"""Paths in a suite's file, relative to that file."""

from __future__ import annotations

import re
from pathlib import Path

_BY_FAMILY = re.compile(r"[A-Za-z][\w-]*=", re.ASCII)


def seen_from(folder: Path, text: str) -> str:
    """``text`` where it is a name; where it is a path, or a policy ``FILE.py:CLASS`` (after
    ``FAMILY=`` or alone), the same path as seen from here.
    """
    if not ("/" in text or text.endswith((".yaml", ".yml")) or ".py:" in text):
        return text
    family = _BY_FAMILY.match(text) if ".py:" in text else None
    before = family[0] if family else ""
    return f"{before}{folder / text.removeprefix(before)}"

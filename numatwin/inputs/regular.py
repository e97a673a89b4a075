"""Regular files only: a pipe or a device may keep its reader waiting forever."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import InputError


def check_regular(path: str | Path) -> None:
    """Raises InputError where something stands at ``path`` that is neither file nor folder.

    Raises OSError where nothing stands there.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise InputError(f"cannot be read: {what}", str(path), expected="a file")

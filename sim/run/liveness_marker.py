"""A marker by which other processes see that this one is alive and works on a run.

It is a folder that its owner holds a lock on. The lock ends with the process, however that ends, so
that a folder without a lock is a leftover, which the next marker takes away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "numatwin-run-"


@contextmanager
def marked_alive() -> Iterator[str]:
    """The path of a folder that exists until the end of the block, or of this process."""
    _clear()
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        held = _lock(folder)
        # Before it was locked it may have looked like a leftover to others.
        if held is not None and os.path.exists(folder):
            break
        if held is not None:
            os.close(held)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        os.close(held)


def _clear() -> None:
    """Takes away what processes of this user left that ended before their time."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and (held := _lock(folder)) is not None:
                try:
                    folder.rmdir()  # an empty one, as markers are
                finally:
                    os.close(held)


def _lock(folder: str | Path) -> int | None:
    """A descriptor that holds the folder's lock; None where another process does."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held

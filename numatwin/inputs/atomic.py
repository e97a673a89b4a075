"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from .errors import InputError


def write_text_atomically(path: str | Path, text: str) -> Path:
    """Writes ``text`` (UTF-8) to ``path``, as ``write_bytes_atomically`` does."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as failure:
        raise InputError(f"cannot be written: {failure}", str(path)) from None
    return write_bytes_atomically(path, content)


def write_bytes_atomically(path: str | Path, content: bytes) -> Path:
    """Writes ``content`` to ``path`` whole or not at all; an earlier file stays until then.

    Whatever stops it midway, no half-written file is left behind. A link at ``path`` stays, and the
    file that it leads to is replaced. Raises InputError where the file cannot be written.
    """
    name: str | None = None
    try:
        target = _file_at(path)
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
        with open(handle, "wb") as stream:
            os.fchmod(stream.fileno(), _mode(target))
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)
        name = None
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = failure.strerror if isinstance(failure, OSError) else None
        raise InputError(f"cannot be written: {reason or failure}", str(path)) from None
    finally:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)
    return Path(path)


def check_writable(path: str | Path) -> None:
    """Raises InputError where ``write_bytes_atomically`` would; leaves nothing behind.

    For what is asked before long work. The disk may still become full meanwhile.
    """
    try:
        target = _file_at(path)
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
        os.close(handle)
        os.unlink(name)
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = failure.strerror if isinstance(failure, OSError) else None
        raise InputError(f"cannot be written: {reason or failure}", str(path)) from None


def check_folder(path: str | Path) -> None:
    """Raises InputError where no files could be written into the folder ``path``, made if missing.

    Leaves nothing behind, and is as sure as ``check_writable``.
    """
    try:
        target = Path(os.path.realpath(path))
        while not target.exists():
            target = target.parent
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        reason = failure.strerror if isinstance(failure, OSError) else None
        raise InputError(f"cannot be written: {reason or failure}", str(path)) from None
    if not target.is_dir():
        raise InputError("cannot be written: not a folder", str(path))
    try:
        handle, name = tempfile.mkstemp(prefix=".numatwin.", dir=target)
        os.close(handle)
        os.unlink(name)
    except OSError as failure:
        raise InputError(f"cannot be written: {failure.strerror}", str(path)) from None


def _file_at(path: str | Path) -> Path:
    """Where a link at ``path`` leads; a device, pipe or socket that is there is not replaced."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError("cannot be written: it is a folder", str(path))
    if target.exists() and not target.is_file():
        raise InputError("cannot be written: expected a file, found a device or pipe", str(path))
    return target


def _mode(target: Path) -> int:
    """The mode of the file that stands there, else that of a new file under the user's umask."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask

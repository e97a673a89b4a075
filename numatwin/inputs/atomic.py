"""Files that appear whole or not at all.

Each is written aside, brought to the disk, and made visible by one rename: if the writer is killed,
the earlier file or the new one is there. Writers of one folder take turns, so that what stands
aside when a turn begins was left by a killed writer: the next one of that name overwrites it.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import DiskFull, InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ASIDE = ".numatwin-new"


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
    try:
        target = _file_at(path)
        with writing_in(target.parent):
            replace_file(target, content)
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        raise not_written(failure, path) from None
    return Path(path)


@contextlib.contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """A turn to write in ``folder``; what was renamed there is on the disk when it ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # not all network file systems lock folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        with contextlib.suppress(OSError):  # nor do all bring them to the disk
            os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(target: Path, content: bytes) -> None:
    """Replaces one file in a folder in which it is the caller's turn to write. Raises OSError."""
    aside = target.with_name(f".{target.name[:64]}{ASIDE}")
    try:
        with aside.open("wb") as stream:
            os.fchmod(stream.fileno(), _mode(target))
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def not_written(failure: Exception, path: str | Path) -> InputError:
    """The error that says why ``path`` was not written."""
    reason = getattr(failure, "strerror", None) or failure
    kind = DiskFull if getattr(failure, "errno", None) in FULL else InputError
    return kind(f"cannot be written: {reason}", str(path))


def check_writable(path: str | Path) -> None:
    """Raises InputError where ``write_bytes_atomically`` would; leaves nothing behind.

    For what is asked before long work. The disk may still become full meanwhile.
    """
    try:
        _try_to_write(_file_at(path).parent)
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        raise not_written(failure, path) from None


def check_folder(path: str | Path) -> None:
    """Raises InputError where no files could be written into the folder ``path``, made if missing.

    Leaves nothing behind, and is as sure as ``check_writable``.
    """
    try:
        target = Path(os.path.realpath(path))
        while not target.exists():
            target = target.parent
        if not target.is_dir():
            raise InputError("cannot be written: not a folder", str(path))
        _try_to_write(target)
    except (OSError, ValueError) as failure:  # ValueError: a name with a NUL byte
        raise not_written(failure, path) from None


def _try_to_write(folder: Path) -> None:
    tried = folder / f".{os.getpid()}{ASIDE}"
    tried.touch()
    tried.unlink()


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

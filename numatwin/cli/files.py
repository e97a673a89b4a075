"""Paths of records to read, of files to write, and files to begin with."""

import errno
import hashlib
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from ..inputs import InputError, check_writable
from .options import argument

Records = Annotated[
    list[Path], argument("RECORD", "Folders that 'numatwin run' wrote, or folders of such folders.")
]


def record_folders(paths: Iterable[Path]) -> Iterator[Path]:
    """The paths; in place of a folder that has no record, those below it that have one, by name."""
    from ..sim.run.record_files import HEAD_FILE

    for path in paths:
        inner: list[Path] = []
        if path.is_dir() and not (path / HEAD_FILE).exists():
            inner = sorted(head.parent for head in path.glob(f"*/{HEAD_FILE}"))
        yield from inner or [path]


def as_start(file: Path) -> str:
    """The file without the comment that tells editors where its schema is: elsewhere it is not."""
    text = file.read_text("utf-8")
    return text.partition("\n")[2] if text.startswith("# yaml-language-server:") else text


def check_file(out: Path | None, *endings: str, option: str = "--out") -> None:
    """Raises InputError unless ``out`` has one of the ``endings``, as what is written is of that
    kind, and can be written: now, not after a long run. None is no file.
    """
    if out is None:
        return
    if endings and out.suffix.lower() not in endings:
        raise InputError(
            f"{option}: wrong kind of file",
            token=str(out),
            expected=f"the extension {' or '.join(endings)}",
        )
    check_writable(out)


@contextmanager
def alone_in(folder: Path | None) -> Iterator[None]:
    """Refuses a folder that another run of this user writes to now; None is nobody's.

    The address of a socket says so: it is gone with its process, however that ends, and leaves no
    file behind.
    """
    if folder is None:
        yield
        return
    digest = hashlib.sha256(os.path.realpath(folder).encode(errors="surrogateescape"))
    with socket.socket(socket.AF_UNIX) as held:
        try:
            held.bind(f"\0numatwin-{os.getuid()}-{digest.hexdigest()}")
        except OSError as failure:
            if failure.errno == errno.EADDRINUSE:
                raise InputError(
                    "another run writes to this folder", str(folder), expected="another --out"
                ) from None
            # Not a system that has such addresses: nothing is refused.
        yield

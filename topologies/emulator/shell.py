"""A shell in a guest, on the caller's terminal."""

import contextlib
import os
import shutil
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path

from .command_line import Share
from .guest import Qemu
from .guest_machine import GuestMachine
from .job import Job


def run_shell(guest: GuestMachine, *, shares: Sequence[Share] = ()) -> int:
    """Boots ``guest`` with the caller's shell on its terminal; returns the shell's exit status.

    Raises GuestFailure, and InputError for what cannot be emulated.
    """
    job = Job(
        name=guest.machine.name,
        command=(),
        folder=Path.cwd(),
        environment=os.environ,
        shares=shares,
        foreign=guest.platform.foreign,
        terminal=shutil.get_terminal_size(),
    )
    with Qemu(guest, shares, terminal=True) as qemu:
        qemu.boot()
        with _raw_terminal():
            return qemu.run(job, {"terminal": _write}, sys.stdin.fileno(), None)


def _write(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Each key goes to the guest, Ctrl-C too."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)

"""The command line: what a user types, what is printed, which status is returned."""

import gc
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .status import INTERRUPTED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (by default the process's own); returns its exit status.

    0: fine; 1: a check failed; 2: bad input or usage; 70: a bug; 75: the disk is full; 130:
    interrupted; 141: the reader of the output went away.
    """
    if arguments is None:
        # A short command makes fewer objects than that, and nearly all of them stay: looking for
        # garbage among them was a tenth of its time.
        gc.set_threshold(200_000, 2, 2)
    with _ended_by_an_interrupt():
        from .app import run_command_line
    return run_command_line(arguments)


@contextmanager
def _ended_by_an_interrupt() -> Iterator[None]:
    """While modules are imported nothing has begun, so Ctrl-C ends the process at once.

    As an exception it would come out of the middle of somebody's module, or get lost there.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def end(*_: object) -> None:
        os.write(2, b"numatwin: interrupted\n")
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)

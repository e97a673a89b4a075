"""The command line: what a user types, what is printed, which status is returned."""

import gc
import os
import resource
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .status import BAD_INPUT, INTERRUPTED

__all__ = ["main"]

ADDRESS_SPACE_MIN_BYTES = 256 * 2**20  # what the libraries of any command map


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (by default the process's own); returns its exit status.

    0: fine; 1: a check failed; 2: bad input or usage; 70: a bug; 75: the disk is full; 130:
    interrupted; 141: the reader of the output went away.
    """
    if arguments is None:
        # A short command makes fewer objects than that, and nearly all of them stay: looking for
        # garbage among them was a tenth of its time.
        gc.set_threshold(200_000, 2, 2)
        # Nothing here gains by BLAS's threads: on a large host they cost time and address space.
        # Where address space is short OpenBLAS waits without end, or sends SIGINT.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Nor by plugins: to look for them in the metadata of all packages takes 20 ms.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY and most < ADDRESS_SPACE_MIN_BYTES:
            least = ADDRESS_SPACE_MIN_BYTES // 2**20
            allowed = f"'ulimit -v' allows {most // 2**20} MiB"
            text = f"numatwin: error: not enough memory: {allowed}, expected at least {least} MiB\n"
            os.write(2, text.encode())
            return BAD_INPUT
    with _ended_by_an_interrupt():
        from .app import run_command_line
    status = run_command_line(arguments)
    if arguments is None:
        gc.freeze()  # or the interpreter looks for garbage among all of it once more as it ends
    return status


@contextmanager
def _ended_by_an_interrupt() -> Iterator[None]:
    """While modules are imported nothing has begun, so Ctrl-C or SIGTERM ends the process at once.

    As an exception it would come out of the middle of somebody's module, or get lost there.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def end(*_: object) -> None:
        os.write(2, b"numatwin: interrupted\n")
        os._exit(INTERRUPTED)

    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    for one, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(one, end)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

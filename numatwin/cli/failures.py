"""Errors: one line on standard error, and an exit status.

``--verbose`` and ``--log-file``: what a command reads, runs and ends with, line by line.

The file also has the traceback of each error.
"""

import errno
import logging
import os
import signal
import stat
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer

from ..inputs import InputError
from ..inputs.atomic import FULL
from ..inputs.errors import DiskFull, is_interrupt
from .status import BAD_INPUT, INTERRUPTED

BUG, NO_ROOM, READER_GONE = 70, 75, 141
DEBUG_VARIABLE = "NUMATWIN_DEBUG"

# The base of typer's usage errors; typer does not re-export it, and where it lives has moved.
_UsageError: Any = typer.BadParameter.__bases__[0]


# What pydantic calls a value that is no such number, or out of its range.
NUMBERS = {
    **dict.fromkeys(("int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_parsing", "finite_number"), "a number"),
    **dict.fromkeys(("greater_than_equal", "less_than_equal"), ""),
}


class Ended(Exception):
    """Ends a command with ``status``, and a last line where there is one to say."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


def after_interrupt(fate: str) -> Ended:
    """Ends a command after Ctrl-C; what was finished by then is ``kept``, or ``printed``."""
    return Ended(INTERRUPTED, f"interrupted; what was finished is {fate}")


@contextmanager
def keeping(kept: bool = True) -> Iterator[None]:
    """Work of which each part is kept once it is finished, if ``kept``."""
    try:
        yield
    except KeyboardInterrupt:
        if not kept:
            raise
        raise after_interrupt("kept") from None


def exit_status(command: Callable[[], object]) -> int:
    """Runs ``command`` and returns the status that the process should leave with."""
    # A stream that the shell closed (``>&-``) is None; what is opened next would take its place.
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (it stays open as the process does)
    if sys.stdout is None:
        _print_line("error: standard output is closed: expected something to print to")
        return BAD_INPUT
    try:
        with _stopped_by_sigterm():
            returned = command()
        sys.stdout.flush()
        status = returned if isinstance(returned, int) else 0  # typer returns that of typer.Exit
        if status == INTERRUPTED:  # what typer makes of Ctrl-C
            _print_line("interrupted")
        return status
    except Ended as end:
        sys.stdout.flush()
        if end.text:
            _print_line(end.text)
        return end.status
    except (KeyboardInterrupt, typer.Abort):
        _print_line("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as failure:
        # typer leaves so once a shell's completion is printed or installed; else it and rich turn
        # a broken pipe into SystemExit.
        if isinstance(failure, SystemExit) and not failure.code:
            return 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except _UsageError as failure:
        _print_line(f"error: {_usage_text(failure)}")
        return BAD_INPUT
    except Exception as failure:
        return _other(failure)


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM is Ctrl-C: workers stop, temporary files go."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _other(failure: Exception) -> int:

    if is_interrupt(failure):
        _print_line("interrupted")
        return INTERRUPTED
    LOGGER.debug("%s", type(failure).__name__, exc_info=failure)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(failure)
    if isinstance(failure, InputError):
        _print_line(f"error: {failure}")
        return NO_ROOM if isinstance(failure, DiskFull) else BAD_INPUT
    if isinstance(failure, OSError) and failure.strerror:
        where = f"{failure.filename}: " if failure.filename is not None else ""
        if not where and failure.errno == errno.ENOSPC and _output_is_full():
            where = "standard output: "
        _print_line(f"error: {where}{failure.strerror}")
        return NO_ROOM if failure.errno in FULL else BAD_INPUT
    # A library that cannot be mapped for want of address space says so in an ImportError.
    if isinstance(failure, MemoryError) or "failed to map segment" in str(failure):
        _print_line(
            "error: not enough memory (does 'ulimit -v' or a container's limit allow less?)"
        )
        return BAD_INPUT
    what = type(failure).__name__ + (f": {failure}" if str(failure) else "")
    _print_line(
        f"this is a bug: {what} (run it again with {DEBUG_VARIABLE}=1 and report the traceback)"
    )
    return BUG


def _output_is_full() -> bool:
    """Whether standard output takes no more: an error of writing there names no file."""
    try:
        sys.stdout.flush()
        state = os.fstat(sys.stdout.fileno())
        if stat.S_ISREG(state.st_mode):
            return os.fstatvfs(sys.stdout.fileno()).f_bavail == 0
        return state.st_rdev == os.stat("/dev/full").st_rdev
    except (OSError, ValueError) as failure:  # ValueError: a stream without a file
        return isinstance(failure, OSError) and failure.errno == errno.ENOSPC


def _usage_text(failure: Any) -> str:
    """The message in one line, in this project's manner, with the way to the command's help."""
    path = failure.ctx.command_path if failure.ctx is not None else "numatwin"
    message = _wrong_number(failure)
    if message is None:
        message = str(failure.format_message()).strip().rstrip(".").replace("Value error, ", "")
    return f"{message[:1].lower()}{message[1:]} ('{path} --help' tells more)"


def _wrong_number(failure: Any) -> str | None:
    """Of an option that takes a number: what was found, and what was expected; else None."""
    errors = getattr(failure.__cause__, "errors", None)  # of pydantic, by which typer reads values
    option = getattr(failure, "param", None)
    if errors is None or option is None:
        return None
    wrong = errors()[0]
    kind = NUMBERS.get(wrong["type"])
    if kind is None:
        return None
    low, high = getattr(option, "min", None), getattr(option, "max", None)
    bounds = "" if low is None else f"{low:,} or more" if high is None else f"{low:,} to {high:,}"
    expected = ", ".join(part for part in (kind, bounds) if part)
    return f"{option.opts[0]}: found '{wrong['input']}', expected {expected}"


def _print_line(text: str) -> None:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    # Where errors go may itself be full: the exit status still tells.
    with suppress(OSError):
        print(f"numatwin: {line}", file=sys.stderr, flush=True)


LOGGER = logging.getLogger("numatwin")


def with_log_options_first(words: Sequence[str]) -> list[str]:
    """The command line with ``--verbose`` and ``--log-file`` before the command, wherever they
    stand; what follows ``--`` belongs to another program.
    """
    end = words.index("--") if "--" in words else len(words)
    first: list[str] = []
    rest: list[str] = []
    own = iter(words[:end])
    for word in own:
        if word == "--verbose" or word.startswith("--log-file="):
            first.append(word)
        elif word == "--log-file":
            first += [word, *([value] if (value := next(own, None)) is not None else [])]
        else:
            rest.append(word)
    return [*first, *rest, *words[end:]]


def begin(verbose: bool, log_file: str | None) -> None:
    """Logs to standard error, to the end of a file, or both; raises InputError for a file that
    cannot be written.
    """
    end()
    if verbose:
        _add(logging.StreamHandler(sys.stderr), "numatwin: %(message)s", logging.INFO)
    if log_file is not None:
        try:
            handler = logging.FileHandler(log_file, encoding="utf-8")
        except OSError as failure:
            raise InputError(f"cannot be written: {failure.strerror}", log_file) from None
        _add(handler, "%(asctime)s %(process)d %(levelname)s %(message)s", logging.DEBUG)
    if LOGGER.handlers:
        import platform

        from .._version import __version__

        LOGGER.info(
            "numatwin %s, Python %s, %s: %s",
            __version__,
            platform.python_version(),
            platform.platform(),
            " ".join(sys.argv[1:]),
        )


def end() -> None:
    """Closes what ``begin`` opened."""
    for handler in list(LOGGER.handlers):
        LOGGER.removeHandler(handler)
        handler.close()


def _add(handler: logging.Handler, form: str, level: int) -> None:
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(form))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.propagate = False

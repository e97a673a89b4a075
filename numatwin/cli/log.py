"""``--verbose`` and ``--log-file``: what a command reads, runs and ends with, line by line.

The file also has the traceback of each error.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

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
        from ..inputs import InputError

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

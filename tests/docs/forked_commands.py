"""Runs a command line of ``numatwin`` in a process forked from this one, which has loaded it.

To load it takes longer than most commands take. Streams, folder and exit status are the process's
own, as they are where a shell starts it; the start itself is what other tests look at.
"""

import multiprocessing
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

from numatwin.cli import main

# Nothing that a shell would do something about, but for quotes; then where the output goes.
_WORDS = r"""numatwin(?: (?:[^|&;<>$*?~`(){}\[\]\\\n!#'"]|'[^']*'|"[^"$`\\!]*")*)?"""
_PLAIN = re.compile(rf"({_WORDS})(?:(?<= )([|>](?!\|).*))?")


def without_a_shell(command: str) -> tuple[str, str] | None:
    """A call of ``numatwin`` that any shell takes word by word, and what takes its output, if
    anything does; None where the command is another."""
    found = _PLAIN.fullmatch(command)
    return None if found is None else (found[1], found[2] or "")


def printed_by(
    command: str, folder: Path, timeout_s: float, *, apart: bool = False
) -> tuple[str, str]:
    """What the command prints in ``folder``: both streams as one, or the second ``apart``."""
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as errors:
        streams = (file.fileno(), (errors if apart else file).fileno())
        child = multiprocessing.get_context("fork").Process(
            target=_play, args=(shlex.split(command)[1:], folder, *streams)
        )
        with warnings.catch_warnings():
            # Other threads of this process wait for whoever distributes the tests.
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        child.join(timeout_s)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise TimeoutError(command)
        file.seek(0)
        errors.seek(0)
        return file.read().decode(), errors.read().decode()


def _play(words: list[str], folder: Path, output: int, errors: int) -> None:
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    status = main(words)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(status)

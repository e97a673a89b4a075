"""Starts the engine's own processes: Python that loads the compiled engine and nothing else.

Such a process is the parent of a run's processes or of a measurement between two. It
gets its orders as a line of JSON through a pipe, whose writing end stays open here: when this
process is gone, whatever ended it, so is that one.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from typing import IO, Any

from ..inputs import InputError
from . import _engine

# Isolated and without site packages: it starts in some ten milliseconds.
# Should its parent be gone, however it ended, the kernel ends it by SIGIO, as the pipe with its
# orders closes then; and with it its own children (PR_SET_PDEATHSIG). The launcher sees by itself
# that its parent is gone, and clears up.
BOOT = """
import fcntl, importlib.util, json, os, select, signal, sys
path, function, orders = sys.argv[1:4]
spec = importlib.util.spec_from_file_location("_engine", path)
engine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(engine)
orders = json.loads(sys.stdin.readline())
if function != "launch_commits":
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:
        os._exit(1)
run = getattr(engine, orders["form"])()
for name, value in orders["run"].items():
    setattr(run, name, value)
try:
    result = getattr(engine, function)(run, *orders["arguments"])
except (RuntimeError, ValueError, MemoryError) as failure:
    result = {"failure": str(failure) or type(failure).__name__}
sys.stdout.write(json.dumps(result))
"""

# UCX's own handlers and messages would only hide what happened.
QUIET = {"UCX_HANDLE_ERRORS": "none", "UCX_LOG_LEVEL": "fatal", "UCX_WARN_UNUSED_ENV_VARS": "n"}
TEXT_MAX = 300


class EngineTooLong(InputError):
    """A process that did not end in time."""


class EngineProcess:
    """One such process, running ``function`` of the engine on a ``form`` (of its classes) with the
    fields ``run``.

    ``arguments`` follow it; ``descriptors`` are open files that it shall inherit under the same
    numbers.
    """

    def __init__(
        self,
        function: str,
        run: dict[str, Any],
        arguments: tuple[Any, ...] = (),
        descriptors: tuple[int, ...] = (),
        form: str = "CommitRun",
    ) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, "-I", "-S", "-c", BOOT, str(_engine.__file__), function, ""]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=self._errors,
                pass_fds=descriptors,
                env=QUIET | dict(os.environ),
                start_new_session=True,  # Ctrl-C is for this process, which then ends that one
            )
        except OSError as failure:
            self._close_files()
            raise InputError(
                f"the native engine's process cannot start: {failure.strerror}"
            ) from None
        assert self._process.stdin is not None
        try:
            orders = json.dumps({"form": form, "run": run, "arguments": list(arguments)})
            self._process.stdin.write(orders.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it ended already: ended() tells why

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group too."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is there no more."""
        return self._process.poll() is not None

    def result(self, timeout_s: float) -> Any:
        """What the function returned, as JSON has it. Raises InputError, EngineTooLong of these."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise EngineTooLong(f"the native engine took longer than {timeout_s:.3g} s") from None
        self._output.seek(0)
        try:
            found = json.loads(self._output.read())
        except ValueError:
            raise InputError(f"the native engine failed: {self.last_words()}") from None
        if isinstance(found, dict) and "failure" in found:
            raise InputError(str(found["failure"]))
        return found

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, on one line; else how it ended."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][:TEXT_MAX]
        return f"exit status {self._process.poll()}"

    def close(self, patience_s: float = 0.0) -> None:
        """Ends it and its children, whatever they do; for so long it may end by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # what was not read of its orders
            self._process.stdin.close()
        self._close_files()

    def _close_files(self) -> None:
        self._errors.close()
        self._output.close()

"""A process in a guest that has the compiled engine, and does what it is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from ... import emulator
from ...inputs import InputError
from ...topologies.emulator import GuestMachine
from ...topologies.emulator.counting import CountedRun, Counting, run_counted
from .. import _engine

DRIVER = Path(__file__).with_name("driver.py")
ANSWER_LIMIT_S = 600.0
END_LIMIT_S = 60.0
ERRORS = {"MemoryError": MemoryError, "ValueError": ValueError, "OSError": OSError}


class GuestProcess:
    """Boots ``guest`` with the process in it. A context manager: at its end the guest is gone.

    ``counting``: see ``run_counted``.
    """

    def __init__(self, guest: GuestMachine, counting: Counting | None = None) -> None:
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._part = bytearray()
        self._counted: CountedRun | None = None
        self._failure: BaseException | None = None
        self._errors = bytearray()
        self._reading, self._writing = os.pipe()
        files = (str(_engine.__file__), str(emulator.__file__))
        self._command = [sys.executable, "-I", "-S", str(DRIVER), *files]
        self._guest, self._counting = guest, counting
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> GuestProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, *request: Any, limit_s: float = ANSWER_LIMIT_S) -> Any:
        """The answer to a request (``driver.py`` says which there are).

        Raises what the request raised there, and InputError where the guest is gone.
        """
        try:
            os.write(self._writing, json.dumps(request).encode() + b"\n")
            line = self._answers.get(timeout=limit_s)
        except BrokenPipeError:
            line = None
        except queue.Empty:
            raise InputError(f"the engine in the guest did not answer in {limit_s:g} s") from None
        if line is None:
            raise self._why_ended()
        answer = json.loads(line)
        if "error" in answer:
            raise ERRORS.get(answer["error"], RuntimeError)(answer["text"])
        return answer["value"]

    def counted(self) -> CountedRun:
        """Ends the guest; what was counted of the process and its region."""
        self._end()
        if self._counted is None or self._counted.run.status:
            raise self._why_ended()
        return self._counted

    def _end(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)  # at the end of its requests, the process ends
            self._writing = -1
        self._thread.join(END_LIMIT_S)

    def _run(self) -> None:
        try:
            self._counted = run_counted(
                self._guest,
                self._command,
                self._counting,
                stdin=self._reading,
                stdout=self._take,
                stderr=self._errors.extend,
            )
        except BaseException as failure:
            self._failure = failure
        finally:
            self._answers.put(None)
            with contextlib.suppress(OSError):
                os.close(self._reading)

    def _take(self, piece: bytes) -> None:
        self._part += piece
        while b"\n" in self._part:
            line, _, rest = bytes(self._part).partition(b"\n")
            self._part[:] = rest
            self._answers.put(line)

    def _why_ended(self) -> BaseException:
        if self._failure is not None:
            return self._failure
        lines = self._errors.decode(errors="replace").strip().splitlines()
        memory = self._counted.run.out_of_memory if self._counted is not None else None
        why = memory or (lines[-1] if lines else "it ended")
        return InputError(f"the engine in the guest: {why}")

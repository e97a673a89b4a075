"""Boots a guest, runs a command in it, and hands over its output and its exit status."""

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from ...inputs import InputError
from ..machine import Machine
from .command_line import Plugin, Share, machine_arguments, plugin_arguments, share_arguments
from .guest_machine import GuestMachine, guest_machine
from .image import guest_image
from .job import Job
from .platforms import find_qemu
from .snapshots import KEPT_BYTES, Monitor, incoming, opened, snapshot_file

BOOT_LIMIT_S, BOOT_LIMIT_PER_PROCESSOR_S, RESUME_LIMIT_S = 60.0, 4.0, 60.0
# So many times as long where QEMU has not had that much of the host's processors.
BUSY_HOST = 5.0
_LOOK_S = 1.0
TIMED_OUT, BROKEN, INTERRUPTED = 124, 125, 130
_END_LIMIT_S = 20.0
_DEATH_LIMIT_S = 2.0  # between QEMU's last word and its end
_TERMINAL_END_S = 0.2  # for its last words; a terminal has no end
_CONSOLE_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class GuestFailure(InputError):
    """A guest that did not run its command to the end; ``status`` is what a shell should see."""

    status = BROKEN


class GuestTimeout(GuestFailure):
    """A guest that took longer than it was given."""

    status = TIMED_OUT


@dataclass(frozen=True)
class GuestRun:
    """What a command in a guest did: its exit status, and its output where that was kept."""

    status: int
    output: bytes
    errors: bytes
    boot_s: float
    qemu_cpu_s: float
    """Processor time of QEMU in all."""
    out_of_memory: str | None = None
    """What the guest's kernel said as it ended a process for want of memory."""
    stopped: str | None = None
    """Why the guest was ended before its command did."""


def run_in_guest(
    machine: Machine | GuestMachine,
    command: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    shares: Sequence[Share] = (),
    plugins: Sequence[Plugin] = (),
    time_limit_s: float | None = None,
    stdin: int | None = None,
    stdout: "Sink | None" = None,
    stderr: "Sink | None" = None,
    booted: Callable[[], object] | None = None,
    keep_stopped: bool = False,
) -> GuestRun:
    """Boots ``machine`` as a guest, runs ``command`` there, and waits for it.

    The guest sees the host's files, and keeps in its memory what it writes. The command runs in
    ``folder`` (by default the caller's) as the caller's user, reads the file ``stdin`` (nothing by
    default); its output goes to ``stdout`` and ``stderr``, or is kept. ``time_limit_s`` is of the
    command, without the boot; ``booted`` is called after that. With ``keep_stopped`` a command that
    the time limit or an interrupt ends is no failure: plugins write what they counted until then.
    Raises GuestFailure, and InputError for what cannot be emulated.
    """
    stopped = None
    guest = machine if isinstance(machine, GuestMachine) else guest_machine(machine)
    output, errors = bytearray(), bytearray()
    job = Job(
        name=guest.machine.name,
        command=command,
        folder=Path.cwd() if folder is None else folder.absolute(),
        environment=os.environ if environment is None else environment,
        shares=shares,
        foreign=guest.platform.foreign,
    )
    with Qemu(guest, shares, plugins) as qemu:
        boot_s = qemu.boot()
        if booted is not None:
            booted()
        sinks = {"out": stdout or output.extend, "err": stderr or errors.extend}
        try:
            status = qemu.run(job, sinks, stdin, time_limit_s)
        except (GuestTimeout, KeyboardInterrupt) as failure:
            if not keep_stopped:
                raise
            timed_out = isinstance(failure, GuestTimeout)
            status = TIMED_OUT if timed_out else INTERRUPTED
            stopped = str(failure) if timed_out else "interrupted: the guest was ended"
        qemu.end()
    killed = qemu.out_of_memory()
    return GuestRun(status, bytes(output), bytes(errors), boot_s, qemu.cpu_s, killed, stopped)


class Qemu:
    """A running guest and the sockets that lead into it."""

    _PORTS = ("control", "out", "err", "in")

    def __init__(
        self,
        guest: GuestMachine,
        shares: Sequence[Share] = (),
        plugins: Sequence[Plugin] = (),
        *,
        terminal: bool = False,
    ) -> None:
        self._guest, self._shares, self._plugins = guest, shares, plugins
        self._terminal = terminal
        for share in shares:
            if not share.folder.is_dir():
                raise InputError(
                    "cannot be shared",
                    str(share.folder),
                    expected="a folder, and ':rw' behind it at most",
                )
        self._program = find_qemu(guest.platform)
        machine = machine_arguments(guest, guest_image(guest.platform))
        # Which folders are shared, and which plugins look on, is no matter before it is ready.
        self._snapshot = snapshot_file([*machine, str(len(shares)), str(terminal)], self._program)
        self.cpu_s = 0.0
        self._launch(machine)

    def _launch(self, machine: list[str]) -> None:
        """Starts QEMU: where the guest stood when it was ready, if it was kept."""
        self._machine = machine
        self._console = bytearray()
        self._lines = bytearray()  # of the port 'control', not yet whole
        self._closing = contextlib.ExitStack()
        self._selector = self._closing.enter_context(selectors.DefaultSelector())
        kept = opened(self._snapshot)
        self._restored = kept is not None
        self._ends: dict[str, socket.socket] = {}
        command = [
            self._program,
            *machine,
            *share_arguments([Share(Path("/")), *self._shares]),
            *plugin_arguments(self._plugins),
            *("-device", "virtio-serial-pci,max_ports=8"),
        ]
        if kept is not None:
            self._closing.callback(os.close, kept)
            command += incoming(kept)
        theirs = []
        others = ["terminal"] if self._terminal else []
        for name in ("monitor", "console", *self._PORTS, *others):
            own, other = socket.socketpair()
            theirs.append(self._closing.enter_context(other))
            self._ends[name] = self._closing.enter_context(own)
            command += ["-chardev", f"socket,id={name},fd={other.fileno()}"]
            if name == "monitor":
                command += ["-mon", "chardev=monitor,mode=control"]
            elif name == "console":
                command += ["-serial", "chardev:console"]
            elif name == "terminal":
                command += ["-device", "virtconsole,chardev=terminal"]
            else:
                command += ["-device", f"virtserialport,chardev={name},name={name}"]
        self._errors = self._closing.enter_context(FileIO(os.memfd_create("qemu-errors"), "r+"))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            pass_fds=[
                *(end.fileno() for end in theirs),
                *(file for plugin in self._plugins for file in plugin.descriptors),
            ],
            start_new_session=True,  # Ctrl-C is ours to handle
            preexec_fn=_die_with_parent,
        )
        for end in theirs:
            end.close()
        self.watch("console", self._console.extend)
        self.watch("control", self._lines.extend)

    def __enter__(self) -> "Qemu":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._reap(None)
        self._closing.close()

    def watch(self, name: str, sink: "Sink") -> None:
        """Hands to ``sink`` what comes from a channel."""
        self._selector.register(self._ends[name], selectors.EVENT_READ, sink)

    def boot(self) -> float:
        """Waits until the guest is ready; returns the seconds that it took."""
        began = time.monotonic()
        if self._restored:
            try:
                with contextlib.closing(Monitor(self._ends["monitor"])) as monitor:
                    monitor.resume(RESUME_LIMIT_S)
                return time.monotonic() - began
            except (OSError, RuntimeError):  # what was kept is damaged: it boots again
                self._snapshot.unlink(missing_ok=True)
                self.__exit__()
                self._launch(self._machine)
        if not self._started():
            # Now and then a guest's kernel hangs in QEMU as it boots; another one does not.
            self.__exit__()
            self._launch(self._machine)
            if not self._started():
                waited_s = time.monotonic() - began
                raise GuestFailure(
                    f"the guest did not start within {waited_s:.0f} s, nor did another one before"
                    f"{self._last_words()}"
                )
        self._keep()
        return time.monotonic() - began

    def _started(self) -> bool:
        """Whether the guest has booted, as far as it can be seen within the time limit."""
        began = time.monotonic()
        limit_s = BOOT_LIMIT_S + BOOT_LIMIT_PER_PROCESSOR_S * self._guest.processors
        while self._next_line(time.monotonic() + _LOOK_S) is None:
            waited_s = time.monotonic() - began
            if waited_s > BUSY_HOST * limit_s or min(waited_s, self._used_s()) > limit_s:
                return False
        return True

    def _used_s(self) -> float:
        """Processor time that QEMU has used so far."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _keep(self) -> None:
        """For the next guest like this one, unless it would take all of the room for them."""
        if self._guest.page_records_bytes > KEPT_BYTES:
            return
        try:
            with contextlib.closing(Monitor(self._ends["monitor"])) as monitor:
                monitor.keep(self._snapshot)
        except (OSError, RuntimeError):
            self._reap(_DEATH_LIMIT_S)
            raise GuestFailure(f"QEMU ended at the boot{self._last_words()}") from None

    def run(
        self, job: Job, sinks: "Mapping[str, Sink]", stdin: int | None, limit_s: float | None
    ) -> int:
        """Runs the job in the booted guest; returns the command's exit status.

        ``sinks``: of the streams ``out`` and ``err``, or of the ``terminal``.
        """
        script = job.script().encode()
        streams = {name: Stream(sink, job.mark.encode()) for name, sink in sinks.items()}
        for name, stream in streams.items():
            self.watch(name, stream.take)
        try:
            self._ends["control"].sendall(b"%d\n" % len(script) + script)
        except OSError:
            self._reap(_DEATH_LIMIT_S)
            raise GuestFailure(f"QEMU ended before the command did{self._last_words()}") from None
        self._pass_on(stdin, self._ends["in" if job.terminal is None else "terminal"])
        line = self._next_line(None if limit_s is None else time.monotonic() + limit_s)
        if line is None:
            assert limit_s is not None
            raise GuestTimeout(f"the command did not end within {limit_s:g} s: the guest was ended")
        word, _, rest = line.partition(" ")
        if word == "failed":
            raise GuestFailure(rest)
        until = time.monotonic() + (_END_LIMIT_S if job.terminal is None else _TERMINAL_END_S)
        while not all(stream.ended for stream in streams.values()) and self._step(until):
            pass
        return int(rest)

    def end(self) -> None:
        """Ends QEMU, whose plugins write what they counted."""
        os.kill(self._process.pid, signal.SIGTERM)
        self._reap(_END_LIMIT_S)

    def _reap(self, limit_s: float | None) -> None:
        """Waits for QEMU's end, at most so long."""
        until = None if limit_s is None else time.monotonic() + limit_s
        while True:  # not by Popen, which does not tell what the process used
            options = 0 if until is None else os.WNOHANG
            pid, status, used = os.wait4(self._process.pid, options)
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = used.ru_utime + used.ru_stime
            if pid or (until is not None and time.monotonic() > until):
                return
            time.sleep(0.005)

    def _next_line(self, until: float | None) -> str | None:
        """The next line that the guest says; None at the time limit."""
        while b"\n" not in self._lines:
            if not self._step(until):
                return None
        line, _, rest = bytes(self._lines).partition(b"\n")
        self._lines[:] = rest
        return line.decode(errors="replace")

    def _step(self, until: float | None) -> bool:
        """Handles what comes next; False at the time limit. Raises GuestFailure if QEMU ended."""
        left_s = None if until is None else until - time.monotonic()
        if left_s is not None and left_s <= 0:
            return False
        for key, _ in self._selector.select(left_s):
            handle: Sink = key.data
            try:
                piece = os.read(key.fd, _READ_BYTES)
            except OSError:
                piece = b""
            if piece:
                handle(piece)
                del self._console[:-_CONSOLE_BYTES]
            else:
                self._reap(_DEATH_LIMIT_S)
                raise GuestFailure(f"QEMU ended before the command did{self._last_words()}")
        return True

    def _pass_on(self, stdin: int | None, to: socket.socket) -> None:
        """Hands what comes in ``stdin`` to the command, in a thread of its own: it may wait."""

        def copy() -> None:
            with contextlib.suppress(OSError):
                while stdin is not None and (piece := os.read(stdin, _READ_BYTES)):
                    to.sendall(piece)
                to.shutdown(socket.SHUT_WR)

        threading.Thread(target=copy, daemon=True).start()

    def out_of_memory(self) -> str | None:
        """What the guest's kernel said as it ended a process for want of memory."""
        for line in self._console.decode(errors="replace").splitlines():
            if "Out of memory: Killed process" in line:
                return line[line.index("Killed") :].partition(",")[0].strip()
        return None

    def _last_words(self) -> str:
        """Why, as QEMU or the guest's kernel told it."""
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip().splitlines()
        console = self._console.decode(errors="replace").splitlines()
        panic = [line.partition("] ")[2] or line for line in console if "Kernel panic" in line]
        code = self._process.returncode or 0
        killed = [f"killed by {signal.Signals(-code).name}"] if code < 0 else []
        words = (
            panic[-1:] or killed or errors[-1:] or [line for line in console if line.strip()][-1:]
        )
        return f": {words[0].strip()}" if words else ""


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


Sink = Callable[[bytes], object]


class Stream:
    """Hands to ``sink`` what comes before the ``mark``; what follows it is dropped."""

    def __init__(self, sink: Sink, mark: bytes) -> None:
        self._sink, self._mark = sink, mark
        self._held = b""
        self.ended = False

    def take(self, piece: bytes) -> None:
        """Takes the next piece; holds back what may be the beginning of the mark."""
        if self.ended:
            return
        data = self._held + piece
        before, mark, _ = data.partition(self._mark)
        if mark:
            self.ended = True
        else:
            longest = min(len(data), len(self._mark) - 1)
            held = next(k for k in range(longest, -1, -1) if data.endswith(self._mark[:k]))
            before, self._held = data[: len(data) - held], data[len(data) - held :]
        if before:
            self._sink(before)

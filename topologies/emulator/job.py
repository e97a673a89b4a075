"""The script that the guest's first process runs: mounts the host's files, runs the command."""

import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from .command_line import Share

NOT_FOUND, NOT_STARTED = 127, 126
# What belongs to the host's session, or to the shell that began it.
_HOST_ONLY = re.compile(
    r"SHLVL|OLDPWD|PWD|_|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_\w*|XDG_RUNTIME_DIR|SSH_\w*"
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_SCRIPT = Path(__file__).with_name("job.sh")
_BUSYBOX = "/run/numatwin/busybox"


@dataclass(frozen=True)
class Job:
    """A command and where it runs; ``command`` empty: a shell on the terminal."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    mark: str = field(default_factory=lambda: secrets.token_hex(16))
    """What ends each stream of its output."""
    shares: Sequence[Share] = ()
    """Besides the host's files, which are the first."""
    terminal: os.terminal_size | None = None
    foreign: bool = False
    """Whether the host's programs do not run there: the shell is the guest's, its user root."""

    def script(self) -> str:
        """The whole script."""
        values = {
            "guest": self.name,
            "clock": f"{time.time():.0f}",
            "entropy": secrets.token_hex(32),
            "command": self._command(),
            "mark": self.mark if self.terminal is None else "",
            "foreign": "yes" if self.foreign else "",
        }
        lines = [f"{name}={quote(value)}" for name, value in values.items()]
        mounts = [self._mount(number, share) for number, share in enumerate(self.shares, 1)]
        lines.append("\n".join(["shares() {", ":", *mounts, "}"]))
        return "\n".join([*lines, _SCRIPT.read_text(encoding="utf-8")])

    @staticmethod
    def _mount(number: int, share: Share) -> str:
        at = quote(f"/root{share.folder}")
        access = "rw" if share.writable else "ro,cache=loose"
        problem = quote(f"{share.folder}: cannot be shared")
        return f"mkdir -p {at} && files share{number} {at} {access} || fail {problem}"

    def _command(self) -> str:
        """What the shell of the host's files does in the guest."""
        lines = [
            f"export {name}={quote(value)}"
            for name, value in self.environment.items()
            if _NAME.fullmatch(name) and not _HOST_ONLY.fullmatch(name)
        ]
        folder = quote(str(self.folder))
        if self.terminal is not None:
            stty = f"{_BUSYBOX} stty" if self.foreign else "stty"
            lines.append(f"{stty} rows {self.terminal.lines} cols {self.terminal.columns}")
        lines.append(f"cd {folder} || exit {NOT_STARTED}")
        if os.getuid() and not self.foreign:
            groups = ",".join(map(str, os.getgroups())) or str(os.getgid())
            ids = f"--reuid {os.getuid()} --regid {os.getgid()} --groups {groups}"
            prefix = f"exec setpriv {ids}"
        else:
            prefix = "exec"
        if not self.command:
            shell = f"{_BUSYBOX} sh" if self.foreign else '"${SHELL:-/bin/sh}"'
            lines.append(f"{prefix} {shell}")
            return "\n".join([*lines, ""])
        words = " ".join(map(quote, self.command))
        program = quote(self.command[0])
        lines.append(
            f"command -v {program} >/dev/null || "
            f"{{ printf '%s\\n' {quote(f'numatwin: error: no such command: {self.command[0]!r}')} "
            f">&2; exit {NOT_FOUND}; }}"
        )
        if "/" in self.command[0]:
            refusal = quote(f"numatwin: error: no program to execute: {self.command[0]!r}")
            lines.append(
                f"[ -f {program} ] && [ -x {program} ] || "
                f"{{ printf '%s\\n' {refusal} >&2; exit {NOT_STARTED}; }}"
            )
        lines.append(f"{prefix} {words}")
        return "\n".join([*lines, ""])

"""The script that the guest's first process runs: mounts the host's files, runs the command."""

from __future__ import annotations

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

_BEGIN = """\
fail() { echo "failed $1" >&3; sleep 1000; }
exec 4> "$(port out)" 5> "$(port err)" 6< "$(port in)"
ifconfig lo up
files() { mount -t 9p -o "trans=virtio,version=9p2000.L,msize=524288,$3" "$1" "$2" 2>/dev/null; }
files share0 /lower ro,cache=loose || fail "the host's files cannot be mounted"
mount -t tmpfs -o size=50% tmpfs /overlay && mkdir /overlay/files /overlay/work
mount -t overlay -o lowerdir=/lower,upperdir=/overlay/files,workdir=/overlay/work overlay /root ||
    fail "the host's files cannot be overlaid"
"""

_SYSTEM = """\
mkdir -p /root/proc /root/sys /root/dev /root/run
mount -t cgroup2 cgroup2 /groups && mkdir /groups/command
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t devtmpfs devtmpfs /root/dev
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts -o ptmxmode=666 devpts /root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs /root/dev/shm
mount -t tmpfs -o mode=755 tmpfs /root/run && mkdir /root/run/numatwin
ln -sf /proc/self/fd /root/dev/fd
"""

_BUSYBOX = "/run/numatwin/busybox"
_NATIVE = "shell=/bin/sh\n"
_FOREIGN = f"cp /bin/busybox /root{_BUSYBOX} && shell='{_BUSYBOX} sh'\n"

# What the command leaves running ends with it, so that its output has an end.
_RUN = """\
begin() { echo 0 > /groups/command/cgroup.procs; exec chroot /root $shell /run/numatwin/command; }
mkfifo /out /err
cat /out >&4 & out=$!
cat /err >&5 & err=$!
( begin ) <&6 > /out 2> /err 3<&- 4>&- 5>&-
status=$?
echo 1 > /groups/command/cgroup.kill
wait $out $err
printf %s "$mark" >&4
printf %s "$mark" >&5
"""

_SHELL = """\
setsid -c chroot /root $shell /run/numatwin/command \\
    < /dev/hvc0 > /dev/hvc0 2>&1 3<&- 4>&- 5>&- 6<&-
status=$?
"""

_END = """\
echo "exit $status" >&3
while :; do sleep 1000; done
"""


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
        # The guest may have stood still for days since it was ready, and others began there too.
        clock = f"date -s @{time.time():.0f} >/dev/null"
        entropy = f"echo {secrets.token_hex(32)} > /dev/urandom"
        parts = [_BEGIN, f"{clock}\n{entropy}\nhostname {quote(self.name)}\n"]
        for number, share in enumerate(self.shares, 1):
            at = quote(f"/root{share.folder}")
            access = "rw" if share.writable else "ro,cache=loose"
            problem = quote(f"{share.folder}: cannot be shared")
            parts.append(f"mkdir -p {at} && files share{number} {at} {access} || fail {problem}\n")
        parts.append(_SYSTEM)
        parts.append(_FOREIGN if self.foreign else _NATIVE)
        parts.append(f"printf %s {quote(self._command())} > /root/run/numatwin/command\n")
        if self.terminal is None:
            parts += [f"mark={self.mark}\n", _RUN]
        else:
            parts.append(_SHELL)
        return "".join([*parts, _END])

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

"""What of the host the emulator needs: QEMU and busybox; where its cache lies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from ...inputs import InputError


def cache_folder() -> Path:
    """The folder for what can be made again, made if need be; raises InputError."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base) / "numatwin" / "emulator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InputError(f"cannot be made: {failure.strerror}", str(folder)) from None
    return folder


def find_qemu() -> str:
    """The path of QEMU; raises InputError that says what to install."""
    return find_program("qemu-system-x86_64", "qemu-system-x86")


def find_busybox() -> Path:
    """The path of a busybox that needs no libraries; raises InputError."""
    found = Path(find_program("busybox", "busybox-static"))
    if b"/ld-linux" in found.read_bytes():
        raise InputError(
            "needs libraries", str(found), expected="that of Debian's package busybox-static"
        )
    return found


def find_program(name: str, package: str) -> str:
    """The program's path; raises InputError with the package that has it."""
    found = shutil.which(name)
    if found is None:
        raise InputError(
            f"the emulator needs '{name}', which is not here (Debian: apt-get install {package})"
        )
    return found


@cache
def qemu_version() -> tuple[int, int]:
    """Major and minor version of QEMU."""
    done = subprocess.run([find_qemu(), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"version (\d+)\.(\d+)", done.stdout)
    if match is None:
        raise InputError("QEMU tells no version", find_qemu())
    return int(match[1]), int(match[2])

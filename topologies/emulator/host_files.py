"""What of the host the emulator needs: QEMU and busybox; where its cache lies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from ...inputs import InputError
from .platforms import X86_64, Platform


def cache_folder() -> Path:
    """The folder for what can be made again, made if need be; raises InputError."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base) / "numatwin" / "emulator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InputError(f"cannot be made: {failure.strerror}", str(folder)) from None
    return folder


def find_qemu(platform: Platform = X86_64) -> str:
    """The path of QEMU; raises InputError that says what to install."""
    return find_program(platform.qemu, platform.qemu_package)


def find_busybox(platform: Platform = X86_64) -> Path:
    """The path of a busybox that needs no libraries; raises InputError."""
    if platform.foreign:
        found = unpacked_folder(platform) / "bin" / "busybox"
        if not found.exists():
            raise missing_kernel(platform)
        return found
    found = Path(find_program("busybox", "busybox-static"))
    if b"/ld-linux" in found.read_bytes():
        raise InputError(
            "needs libraries", str(found), expected="that of Debian's package busybox-static"
        )
    return found


def unpacked_folder(platform: Platform) -> Path:
    """Where Debian's kernel of the platform is unpacked, if it was; of others busybox too."""
    return cache_folder() / (f"kernel-{platform.debian}" if platform.foreign else "kernel")


def missing_kernel(platform: Platform) -> InputError:
    """What to do where there is no kernel."""
    if platform.foreign:
        return InputError(
            f"the emulator needs a kernel and a busybox for {platform.architecture} (unpacked into "
            f"the cache: python -m {__package__} {platform.architecture})"
        )
    return InputError(
        "the emulator needs a Linux kernel with its modules (Debian: apt-get install "
        f"{platform.kernel_package}; or, unpacked into the cache only: python -m {__package__})"
    )


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
        raise InputError("QEMU does not report its version", find_qemu())
    return int(match[1]), int(match[2])

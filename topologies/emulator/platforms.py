"""What differs between guests of different architectures: QEMU, its machine, kernels.

What of the host the emulator needs: QEMU and busybox; where its cache lies.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...inputs import InputError

_KERNEL_WORDS = (
    "quiet panic=-1 nokaslr mitigations=off audit=0 cryptomgr.notests random.trust_cpu=on "
    "nowatchdog lpj=4000000 numa_balancing=disable"
)


@dataclass(frozen=True)
class Platform:
    """Guests of one architecture, as ``platform.machine()`` calls it.

    ``debian``: Debian's name of it. ``processors_max``: ids of processors that can be had.
    ``attributes``: whether the guest is told latencies and bandwidths (HMAT).
    """

    architecture: str
    debian: str
    qemu: str
    qemu_package: str
    machine: str
    processor: str
    kernel_words: str
    processors_max: int
    attributes: bool

    @property
    def kernel_package(self) -> str:
        """Debian's package of a kernel."""
        return f"linux-image-{self.debian}"

    @property
    def foreign(self) -> bool:
        """Whether the programs of this host do not run in such a guest."""
        return self.architecture != host_architecture()


X86_64 = Platform(
    architecture="x86_64",
    debian="amd64",
    qemu="qemu-system-x86_64",
    qemu_package="qemu-system-x86",
    machine="q35,hmat=on,hpet=off,i8042=off,vmport=off",
    # QEMU's own shows threads of a core under Intel's name alone; five levels of page tables are
    # slow.
    processor="max,la57=off,vendor=GenuineIntel",
    kernel_words=(f"console=ttyS0 {_KERNEL_WORDS} no_timer_check tsc=reliable clocksource=tsc"),
    processors_max=255,  # QEMU's own processor knows no more ids; the last one is for all
    attributes=True,
)
# Nodes and distances by device tree: with QEMU's firmware, Linux 6.1 refuses the tables of ACPI, as
# the memory of the firmware's variables lies in no node of the SRAT.
AARCH64 = Platform(
    architecture="aarch64",
    debian="arm64",
    qemu="qemu-system-aarch64",
    qemu_package="qemu-system-arm",
    machine="virt,gic-version=3",
    processor="max,pauth-impdef=on",
    kernel_words=f"console=ttyAMA0 {_KERNEL_WORDS}",
    processors_max=256,  # of Debian's kernel; QEMU's machine holds 512
    attributes=False,
)
PLATFORMS: Mapping[str, Platform] = {each.architecture: each for each in (X86_64, AARCH64)}


def host_architecture() -> str:
    """The architecture of this host's programs."""
    return platform.machine()


def platform_of(architecture: str) -> Platform:
    """Guests of an architecture; raises InputError where none can be had."""
    found = PLATFORMS.get(architecture)
    if found is None:
        raise InputError(
            "guests of this architecture are not supported",
            token=architecture,
            expected=" or ".join(PLATFORMS),
        )
    return found


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

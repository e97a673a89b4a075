"""What differs between guests of different architectures: QEMU, its machine, kernels."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

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

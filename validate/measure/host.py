"""The state of this host on which measured figures depend."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime

from ..._version import __version__
from ...topologies.importers.number_sets import format_list
from ...topologies.measurements import HostState
from .layout import Layout, read_text

_CPU = "/sys/devices/system/cpu"


def host_state(layout: Layout) -> HostState:
    """What the kernel tells of the host before a measurement begins."""
    return HostState(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        cpu_model=_cpu_model(),
        cpus=format_list(layout.cpus),
        kernel=f"{platform.system()} {platform.release()}",
        virtualisation=_virtualisation(),
        governor=_first_line(f"{_CPU}/cpu{layout.cpus[0]}/cpufreq/scaling_governor"),
        turbo=_turbo(),
        smt=_first_line(f"{_CPU}/smt/control"),
        transparent_huge_pages=_chosen(read_text("/sys/kernel/mm/transparent_hugepage/enabled")),
        load_average=os.getloadavg()[0],
    )


def _first_line(path: str) -> str | None:
    return (read_text(path) or "").partition("\n")[0][:100] or None


def _cpu_model() -> str | None:
    found = re.search(
        r"^(?:model name|Model|cpu)\s*:\s*(.+)$", read_text("/proc/cpuinfo") or "", re.M
    )
    return found[1].strip()[:200] if found else platform.machine() or None


def _virtualisation() -> str | None:
    """The hypervisor where it says its name, ``none`` where the processor knows of none."""
    if named := _first_line("/sys/hypervisor/type"):
        return named
    info = read_text("/proc/cpuinfo") or ""
    if re.search(r"^flags\s*:.*\bhypervisor\b", info, re.M):
        vendor = _first_line("/sys/class/dmi/id/sys_vendor")
        return f"virtual machine ({vendor})" if vendor else "virtual machine"
    return "none" if re.search(r"^flags\s*:", info, re.M) else None


def _turbo() -> str | None:
    """Of Intel's driver, else of the kernel's common one."""
    if (off := read_text(f"{_CPU}/intel_pstate/no_turbo")) is not None:
        return "off" if off == "1" else "on"
    boost = read_text(f"{_CPU}/cpufreq/boost")
    return None if boost is None else ("on" if boost == "1" else "off")


def _chosen(text: str | None) -> str | None:
    """``madvise`` of ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found[1] if found else None

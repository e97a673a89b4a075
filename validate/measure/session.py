"""Passes of measurements: their parts in order, within their time, until done or interrupted.

The state of this host on which measured figures depend.
"""

import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from ..._version import __version__
from ...engine_native import require_engine
from ...inputs import InputError, Quantity
from ...inputs.number_sets import format_list
from ...inputs.progress import StepProgress, silent
from ...inputs.text_lines import kernel_text
from ...topologies.measurements import HostState, Measurement
from ..systems.registry import validations
from . import bandwidth, copying, copying_ahead, fabric, interrupting, latency, mapping, sharing
from .bench import FULL, QUICK, Bench, CannotBind
from .layout import Layout, host_layout
from .noise import Watch

OF_SYSTEMS = {name: one for of in validations() for name, one in of.measured.items()}
# Each part with its share of the time.
PARTS: dict[str, tuple[Callable[[Bench], Iterator[float]], float]] = {
    "latency": (latency.measure, 6.0),
    "bandwidth": (bandwidth.measure, 4.0),
    "loaded": (bandwidth.measure_loaded, 2.0),
    "atomics": (sharing.measure_atomics, 1.0),
    "messages": (sharing.measure_messages, 1.0),
    "copies": (copying.measure, 2.0),
    "buffering": (copying_ahead.measure, 2.0),
    "interruptions": (interrupting.measure, 1.0),
    "mapping": (mapping.measure, 1.0),
    "fabric": (fabric.measure, 3.0),
    **{name: (one.measure, one.weight) for name, one in OF_SYSTEMS.items()},
}
# Parts whose figures stand in the machine file for people only: one pass is enough of them.
ONCE = (
    *("atomics", "copies", "buffering", "fabric"),
    *(name for name, one in OF_SYSTEMS.items() if one.once),
)
_SPIN_EVERY_S = 0.1
CLOCK = "additions that wait for one another, one a cycle"


@dataclass(frozen=True)
class Result:
    """What was measured, on what, in which state. ``missing``: parts that were not finished;
    ``passes``: of which this is the sum, where there were several.
    """

    layout: Layout
    host: HostState
    measurements: tuple[Measurement, ...]
    warnings: tuple[str, ...]
    clock_Hz: Quantity | None
    missing: tuple[str, ...] = ()
    interrupted: bool = False
    passes: "tuple[Result, ...]" = ()


def measure_pass(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    passes: int = 1,
    again: bool = False,
    progress: StepProgress = silent,
) -> Result:
    """One of ``passes`` over this host, all parts or ``only`` some, in the first one and what facts
    rest on ``again``; an interrupt keeps what was finished.

    ``progress`` gets the share done and the part under way. Raises InputError for an unknown part,
    where the engine is not built, and where no CPU or memory may be used.
    """
    for name in only:
        if name not in PARTS:
            raise InputError("unknown part", token=name, expected=f"one of {', '.join(PARTS)}")
    require_engine()
    layout = host_layout()
    effort = (QUICK if quick else FULL).of_one(passes, again=again)
    bench = Bench(layout, effort, warnings=list(layout.notes))
    parts = [name for name in PARTS if not (again and name in ONCE)]
    return _Pass(bench, [name for name in parts if not only or name in only], progress).run()


@dataclass
class _Pass:
    bench: Bench
    parts: Sequence[str]
    progress: StepProgress

    def run(self) -> Result:
        host = host_state(self.bench.layout)
        self.watch = Watch(self.bench)
        finished: list[str] = []
        interrupted = False
        try:
            self.watch.spin()
            for name in self.parts:
                self._part(name, finished)
                finished.append(name)
        except KeyboardInterrupt:
            interrupted = True
        stolen, others = self.watch.shares()
        missing = tuple(name for name in self.parts if name not in finished)
        seconds = round(time.monotonic() - self.bench.begun, 3)
        host = host.model_copy(
            update={
                "parts": tuple(finished),
                "quick": self.bench.effort.quick,
                "duration": Quantity.exact(seconds),
                "steal": round(stolen, 4),
                "others": round(others, 4),
                "clock_drift": round(self.watch.drift, 4),
            }
        )
        return Result(
            self.bench.layout,
            host,
            tuple(self.bench.measurements),
            tuple(self.bench.warnings),
            self._clock(),
            missing,
            interrupted,
        )

    def _part(self, name: str, finished: Sequence[str]) -> None:
        whole = sum(PARTS[part][1] for part in self.parts)
        before = sum(PARTS[part][1] for part in finished) / whole
        spun = 0.0
        self.progress(before, name)
        try:
            for done in PARTS[name][0](self.bench):
                if time.monotonic() - spun > _SPIN_EVERY_S:
                    self.watch.spin()
                    spun = time.monotonic()
                self.progress(before + done * PARTS[name][1] / whole, name)
        except (MemoryError, CannotBind) as failure:
            reason = str(failure) or "no memory left"
            self.bench.warn(f"{name}: not measured to the end: {reason}")

    def _clock(self) -> Quantity | None:
        """Cycles per second from the loop of one addition a cycle: its median, up to its best."""
        if not self.watch.spins_ns:
            return None
        spins = (float(np.median(self.watch.spins_ns)), min(self.watch.spins_ns))
        median, best = (float(f"{1e9 / ns:.4g}") for ns in spins)
        return Quantity(median, median, best, CLOCK)


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
        transparent_huge_pages=_chosen(kernel_text("/sys/kernel/mm/transparent_hugepage/enabled")),
        load_average=os.getloadavg()[0],
    )


def _first_line(path: str) -> str | None:
    return kernel_text(path).partition("\n")[0][:100] or None


def _cpu_model() -> str | None:
    found = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", kernel_text("/proc/cpuinfo"), re.M)
    return found[1].strip()[:200] if found else platform.machine() or None


def _virtualisation() -> str | None:
    """The hypervisor where it says its name, ``none`` where the processor knows of none."""
    if named := _first_line("/sys/hypervisor/type"):
        return named
    info = kernel_text("/proc/cpuinfo")
    if re.search(r"^flags\s*:.*\bhypervisor\b", info, re.M):
        vendor = _first_line("/sys/class/dmi/id/sys_vendor")
        return f"virtual machine ({vendor})" if vendor else "virtual machine"
    return "none" if re.search(r"^flags\s*:", info, re.M) else None


def _turbo() -> str | None:
    """Of Intel's driver, else of the kernel's common one."""
    if off := kernel_text(f"{_CPU}/intel_pstate/no_turbo"):
        return "off" if off == "1" else "on"
    boost = kernel_text(f"{_CPU}/cpufreq/boost")
    return ("on" if boost == "1" else "off") if boost else None


def _chosen(text: str) -> str | None:
    """``madvise`` of ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None

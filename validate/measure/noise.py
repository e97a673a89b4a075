"""Whether the host was quiet enough: its clock, other programs, the hypervisor, the spread."""

import os
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...inputs.text_lines import kernel_text
from ...topologies.measurements import Measurement
from .bench import Bench

DRIFT_MAX = 0.05
STEAL_MAX = 0.01
OTHERS_MAX = 0.1
# What others do to programs here.
DISTURBANCES = ("interruption",)
SPREAD_MAX, SPREAD_SHOWN_MAX = 0.2, 10.0
UNSTEADY_MAX = 0.1
DISTURBED_MAX = 0.2
_SPINS, _SPIN_NS = 5, 50_000
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Ticks:
    """CPU time so far, in seconds: of all programs, of this one, stolen by the hypervisor."""

    wall: float
    busy: float
    own: float
    stolen: float


def ticks() -> Ticks:
    """From /proc/stat and this process; zeros where the kernel tells nothing."""
    fields = kernel_text("/proc/stat").partition("\n")[0].split()[1:]
    counts = [int(text) / _TICKS_PER_S for text in fields if text.isdigit()] + [0.0] * 8
    user, nice, system, _, _, irq, soft, stolen = counts[:8]
    own = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return Ticks(time.monotonic(), user + nice + system + irq + soft, own, stolen)


def taken(before: Ticks, after: Ticks) -> tuple[float, float]:
    """CPU time in between, in seconds: stolen by the hypervisor, and used by other programs."""
    others_s = (after.busy - before.busy) - (after.own - before.own)
    return max(after.stolen - before.stolen, 0.0), max(others_s, 0.0)


@dataclass
class Watch:
    """Looks at the host from its making on; ``spin`` times a loop of known cycles now and then."""

    bench: Bench
    start: Ticks = field(default_factory=ticks)
    spins_ns: list[float] = field(default_factory=list)

    def spin(self) -> None:
        """Nanoseconds of an addition, one cycle each, on the first CPU that is measured."""
        from ...engine_native._engine import additions

        cpu = self.bench.layout.starts[0].cores[0]
        done = self.bench.run([(cpu, additions())], limit_s=0.02, wanted=_SPINS, window_ns=_SPIN_NS)
        self.spins_ns += done.ns_each().values.tolist()

    @property
    def drift(self) -> float:
        """How far the loop's median is above its minimum."""
        return float(np.median(self.spins_ns) / min(self.spins_ns) - 1.0) if self.spins_ns else 0.0

    def shares(self) -> tuple[float, float]:
        """Of the time of all CPUs: stolen, and used by other programs."""
        now = ticks()
        capacity = max(now.wall - self.start.wall, 1e-3) * (os.cpu_count() or 1)
        stolen_s, others_s = taken(self.start, now)
        return stolen_s / capacity, others_s / capacity


def noise_warnings(
    drift: float, stolen: float, others: float, measurements: Sequence[Measurement]
) -> Iterator[str]:
    """A line for each reason to distrust the figures."""
    yield from taken_warnings(stolen, others)
    if drift > DRIFT_MAX:
        yield (
            f"noisy host: the clock changed: a loop of known cycles took {drift:.0%} longer in the "
            "median than at its best"
        )
    yield from _spread_warnings(measurements)


def taken_warnings(stolen: float, others: float, when: str = "") -> Iterator[str]:
    """A line each where the hypervisor, or other programs, took much of the CPUs' time."""
    if stolen > STEAL_MAX:
        yield f"noisy host: the hypervisor took {stolen:.0%} of the CPUs' time{when}"
    if others > OTHERS_MAX:
        yield f"noisy host: other programs used {others:.0%} of the CPUs' time{when}"


def _spread_warnings(measurements: Sequence[Measurement]) -> Iterator[str]:
    repeated = sum(m.repetitions + m.disturbed for m in measurements)
    disturbed = sum(m.disturbed for m in measurements)
    if repeated and disturbed / repeated > DISTURBED_MAX:
        yield (
            f"noisy host: {disturbed / repeated:.0%} of the repetitions were disturbed by other "
            "threads and left out"
        )
    noisy = [m for m in measurements if m.noisy]
    if noisy:
        yield (
            f"noisy host: {len(noisy)} of {len(measurements)} figures have hardly an undisturbed "
            f"repetition: uncertain, such as {_named(noisy[0])}"
        )
    # What varies from minute to minute is a figure of its own.
    unsteady = [m for m in measurements if m.spread > SPREAD_MAX and m.name not in DISTURBANCES]
    if len(unsteady) > UNSTEADY_MAX * len(measurements):
        worst = max(unsteady, key=lambda m: m.spread)
        # Differences may come out as nearly nothing, and their spread as nearly anything.
        shown = worst.spread < SPREAD_SHOWN_MAX
        spread = f"{worst.spread:.0%}" if shown else f"over {SPREAD_SHOWN_MAX:.0%}"
        yield (
            f"noisy host: the quartiles of {len(unsteady)} of {len(measurements)} figures lie more "
            f"than {SPREAD_MAX:.0%} of the median apart, at worst {spread} ({_named(worst)})"
        )


def _named(measurement: Measurement) -> str:
    parameters = measurement.parameters.model_dump(mode="json", exclude_defaults=True)
    return " ".join([measurement.name, *(f"{name} {value}" for name, value in parameters.items())])

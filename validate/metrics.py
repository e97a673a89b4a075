"""Figures that a check can use: by their path, of one replication of a run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..inputs import InputError
from ..inputs.fields import near
from ..sim.planes.outcome import Outcome, ResourceUse
from ..sim.run.record import Record
from ..sim.run.recovery import recoveries_together, typical_recovery
from ..sim.run.scenario import Scenario
from .emulated import FIGURES, EmulatedRun, traffic_figure

TRAFFIC = "traffic"
QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
# A quantile is the middle of its bin, which is at most this part of it away from an edge:
# bins are 2^-7 of their power of two wide (sim/kernel/statistics.hpp).
BIN_HALF = 2.0**-8
LATENCIES = ("mean", *QUANTILES)
# Of the worst change; and of what is typical of changes that are all alike.
RECOVERIES = ("depth", "time", "typical_depth", "typical_time")
USES = ("mean", "busiest")
FORMS = (
    "throughput.OPERATION, latency_ns.OPERATION.p99, bandwidth_Bps.memory, energy_J, "
    "utilisation.memory.busiest or recovery.OPERATION.depth; of a command in the emulator: "
    "traffic.remote_share"
)


@dataclass(frozen=True)
class Metric:
    """A figure's ``path``, such as ``("latency_ns", "lookup", "p99")``.

    ``dimension``: of a bound in a suite, None for a plain number; ``per_si``: the figure's own unit
    in units of it.
    """

    path: tuple[str, ...]
    higher_is_better: bool
    dimension: str | None
    unit: str
    per_si: float = 1.0

    @staticmethod
    def parsed(text: str) -> "Metric":
        """The metric that ``text`` names; raises InputError."""
        path = tuple(text.split("."))
        kind, rest = path[0], path[1:]
        if kind == "throughput" and len(rest) == 1:
            return Metric(path, True, "rate", "1/s")
        if kind == "latency_ns" and len(rest) == 2 and rest[1] in LATENCIES:
            return Metric(path, False, "time", "ns", 1e9)
        if kind == "bandwidth_Bps" and len(rest) == 1:
            return Metric(path, False, "bandwidth", "B/s")
        if path == ("energy_J",):
            return Metric(path, False, None, "J")
        if kind == "utilisation" and len(rest) == 2 and rest[1] in USES:
            return Metric(path, False, None, "1")
        if kind == "recovery" and len(rest) == 2 and rest[1] in RECOVERIES:
            timed = rest[1].endswith("time")
            return Metric(path, False, "time" if timed else None, "s" if timed else "1")
        if kind == TRAFFIC and len(rest) == 1 and rest[0] in FIGURES:
            return Metric(path, False, *FIGURES[rest[0]])
        raise InputError("unknown metric", token=text, expected=FORMS)

    def __str__(self) -> str:
        return ".".join(self.path)

    def check_operation(self, scenario: Scenario) -> None:
        """Raises InputError where it is of an operation that ``scenario`` does not have."""
        operations = list(scenario.workload.operations)
        of_operation = self.path[0] in ("throughput", "latency_ns", "recovery")
        if of_operation and self.path[1] not in operations:
            raise InputError(
                f"no operation '{self.path[1]}' in workload '{scenario.workload.name}'",
                expected=near(self.path[1], operations),
            )

    def check(self, scenario: Scenario | EmulatedRun) -> None:
        """Raises InputError where ``scenario`` has no such figure."""
        counted = isinstance(scenario, EmulatedRun)
        if counted != (self.path[0] == TRAFFIC):
            raise InputError(
                "the emulator counts traffic only"
                if counted
                else "traffic is counted of a command in the emulator",
                expected=" or ".join(f"{TRAFFIC}.{name}" for name in FIGURES)
                if counted
                else "emulate in place of scenario",
            )
        if isinstance(scenario, EmulatedRun):
            return
        self.check_operation(scenario)
        if self.path[0] == "latency_ns" and scenario.plane == "flow":
            raise InputError("the flow plane has no latencies", expected="plane event")
        if self.path[0] == "recovery" and scenario.plane != "flow":
            raise InputError("recovery is known on the flow plane only", expected="plane flow")

    @property
    def in_bins(self) -> bool:
        """Whether it is read from a histogram's bins."""
        return self.path[-1] in QUANTILES

    def grain(self, value: float, counted_s: float) -> float:
        """By how much a ``value``, of a run that counts for so long, may be off by counting alone.

        Half a bin of a histogram, or one operation; 0 for a figure that has no steps.
        """
        if self.in_bins:
            return BIN_HALF * value
        return 1.0 / counted_s if self.path[0] == "throughput" else 0.0

    def of_outcome(self, outcome: Outcome) -> float:
        """The figure of one replication; raises InputError where there is none."""
        if self.path[0] != "latency_ns":
            return self._known(self._plain(outcome))
        histogram, last = outcome.latencies_ns.get(self.path[1]), self.path[2]
        if histogram is None or not histogram.count:
            return self._known(None)
        return self._known(
            histogram.mean if last == "mean" else histogram.quantile(QUANTILES[last])
        )

    def of_record(self, record: Record) -> float:
        """The figure of a whole run; raises InputError where there is none."""
        kind = self.path[0]
        found: float | None = None
        if kind == "recovery":
            found = self._recovery(record)
        elif kind == "latency_ns":
            found = (record.latency_ns.get(self.path[1]) or {}).get(self.path[2])
        elif kind == TRAFFIC and record.traffic is not None:
            found = traffic_figure(record.traffic, self.path[1])
        else:
            found = self._plain(record)
        return self._known(found)

    def interval(self, record: Record) -> list[float] | None:
        """The confidence interval of the figure of a random run; None where it is unknown."""
        return record.interval(*self.path)

    def _plain(self, of: Outcome | Record) -> float | None:
        """One that a replication and a whole run have alike."""
        kind, *rest = self.path
        if kind == "utilisation":
            return self._use(of.resources)
        if kind == "energy_J":
            return of.energy_J
        found: Mapping[str, float | None] = getattr(of, kind, {})
        return found.get(rest[0])

    def _known(self, found: float | None) -> float:
        if found is None or not math.isfinite(found):
            raise InputError(f"the run has no figure '{self}'")
        return found

    def _use(self, resources: Sequence[ResourceUse]) -> float | None:
        uses = [resource.utilisation for resource in resources if resource.kind == self.path[1]]
        if not uses:
            kinds = dict.fromkeys(resource.kind for resource in resources)
            raise InputError(
                f"no resource of kind '{self.path[1]}'", expected=near(self.path[1], kinds)
            )
        return max(uses) if self.path[2] == "busiest" else math.fsum(uses) / len(uses)

    def _recovery(self, record: Record) -> float | None:
        """The deepest drop, or the longest time until it is made up for; or the typical one."""
        operation, which = self.path[1:]
        if which.startswith("typical_"):
            typical = typical_recovery(record, operation)
            found = [] if typical is None else [typical]
        else:
            found = recoveries_together([record], operation)[0]
        if not found:
            raise InputError("the workload never changes, so there is nothing to recover from")
        if which.endswith("depth"):
            return max(recovery.depth or 0.0 for recovery in found)
        return max(recovery.lasts_s for recovery in found)

"""Instructions per cycle of a query's loops, as the time tells that it took.

Counts do not tell what waits for what: the rate of each loop has a range. All loops are taken to
lie at the same part of their ranges, as they do where a rate is in doubt; which part it is follows
from the processor time of the query, or of another one of the same engine, on one thread of a known
machine. What is uncertain of that machine, and between runs, leaves a range of it.

The scenario of one query on a machine, on data that one thread has loaded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from ...inputs import InputError
from ...inputs.quantities import rounded, time_text
from ...inputs.shared_work import SharedWork, shared
from ...sim.kernel.arrays import Floats
from ...sim.machine.assumptions import Place, Variant
from ...sim.run.assumptions import varied
from ...sim.run.doubts import Doubt, doubts_of, merged, parts_drawn, stream_of_loops
from ...sim.run.scenario import Scenario, load_scenario
from ...sim.run.uncertainty import DRAWS, bounds
from ...sim.run.what_if import Predictor
from ...topologies.export import machine_yaml
from ...topologies.facts import complete
from ...topologies.importers import import_machine

PARTS = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class Timed:
    """Processor times of runs of a query on one thread of a ``machine`` (None: this host).

    ``workload``: a file of what took this time; None: what is profiled.
    """

    times_s: tuple[float, ...]
    machine: str | None = None
    workload: Path | None = None


def set_rates(document: dict[str, Any], timed: Timed) -> None:
    """States the rates of all loops in a workload's document; raises InputError for times that no
    rate explains."""
    with TemporaryDirectory(prefix="numatwin-") as name:
        folder = Path(name)
        machine, own = described(timed.machine, folder), folder / "workload.yaml"
        own.write_text(yaml.safe_dump(document))
        scenario = measured = on_one_thread(folder, machine, own)
        if timed.workload is not None:
            measured = on_one_thread(folder, machine, timed.workload.absolute())
    with shared(SharedWork()):
        parts = _Times(measured).parts(timed.times_s)
    rate = _rate(scenario, doubts_of(scenario))
    low, middle, high = map(rate.at, parts)
    for place in middle:
        fact: Any = document
        for key in place[1:]:
            fact = fact[key]
        ends = [rounded(low[place]), rounded(high[place])]
        fact |= {"value": rounded(middle[place]), "range": ends}


def _rate(scenario: Scenario, doubts: Sequence[Doubt]) -> Doubt:
    query, *_ = scenario.workload.operations
    for doubt in doubts:
        if doubt.stream == stream_of_loops(query, "ipc"):
            return doubt
    raise InputError(
        "--timed: no loops with a range of instructions per cycle",
        token=query,
        expected="a workload of 'numatwin profile' without --time",
    )


class _Times:
    """Times of a query at parts of its loops' ranges."""

    def __init__(self, scenario: Scenario) -> None:
        doubts = doubts_of(scenario)
        self.scenario, self.rate = scenario, _rate(scenario, doubts)
        self.others = tuple(doubt for doubt in doubts if doubt is not self.rate)
        self.predictor = Predictor(scenario)
        self.logs = np.log([self._time_s(self.rate.at(part)) for part in PARTS.tolist()])

    def parts(self, times_s: Sequence[float]) -> tuple[float, float, float]:
        """Those that explain the times: the least, that of the median, the most."""
        middle_s = float(np.median(times_s))
        slowest, fastest = np.exp(self.logs[[0, -1]]).tolist()
        if not fastest <= middle_s <= slowest:
            raise InputError(
                "--time: no instructions per cycle explain it",
                token=time_text(middle_s),
                expected=f"from {time_text(fastest)} to {time_text(slowest)} on one thread of "
                f"{self.scenario.machine.name}",
            )
        middle = self._part(middle_s)
        fewest, most = bounds(self._shifts(middle))
        return self._part(max(times_s) / fewest), middle, self._part(min(times_s) / most)

    def _part(self, time_s: float) -> float:
        return float(np.interp(np.log(time_s), self.logs[::-1], PARTS[::-1]))

    def _shifts(self, part: float) -> Floats:
        """(DRAWS,) by what all else that is uncertain multiplies the time."""
        at = self.rate.at(part)
        own_s = self._time_s(at)
        parts = parts_drawn(self.others, DRAWS)
        drawn = ({**merged(self.others, row).settings, **at} for row in parts)
        return np.array([self._time_s(settings) / own_s for settings in drawn])

    def _time_s(self, settings: Mapping[Place, Any]) -> float:
        found = self.predictor(varied(self.scenario, Variant("a rate", settings)))
        (rate,) = found.throughput.values()
        return 1.0 / rate


# What tasks cost is among what was counted; any thread takes any task, wherever its data lie.
SCENARIO = """\
name: one-query
machine: {machine}
workload: {workload}
system:
  {{kind: tasks, threads: cores, queue: machine, placement: first-touch, loaders: 1, task: 0 s}}
policies: {{stealing: none}}
horizon: 10 s
"""


def described(machine: str | None, folder: Path) -> str:
    """The machine's name or file; None: a file in ``folder`` of this host."""
    if machine is not None:
        return str(Path(machine).absolute()) if Path(machine).exists() else machine
    made = folder / "this-host.yaml"
    made.write_text(machine_yaml(complete(import_machine(None), None, None).description))
    return str(made)


def one_query(
    folder: Path, machine: str, workload: Path, threads: int | None, settings: Iterable[str] = ()
) -> Scenario:
    """With so many ``threads`` on each node, by default one for each core; ``folder``: for its
    file. Raises InputError."""
    path = folder / "one-query.yaml"
    path.write_text(SCENARIO.format(machine=machine, workload=workload))
    own = [f"system.threads={threads}"] if threads else []
    return load_scenario(path, plane="flow", settings=(*own, *settings))


def on_one_thread(folder: Path, machine: str, workload: Path) -> Scenario:
    """On a thread of the first node that has cores."""
    nodes = one_query(folder, machine, workload, 1).machine.nodes
    first = next(node.id for node in nodes if node.cores)
    return one_query(folder, machine, workload, 1, (f"system.nodes=[{first}]",))

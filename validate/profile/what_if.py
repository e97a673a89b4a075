"""What would help a workload on a machine: its memory elsewhere, fewer nodes, fewer threads.

Each alternative is a command to try. Both are predicted with the same draws of what is uncertain,
so that the interval of what one gains over the other is narrower than either's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs import DescriptionError, InputError
from ...sim.run.limit import limit_in_words
from ...sim.run.numactl import numactl_settings
from ...sim.run.record import Record
from ...sim.run.runner import run_scenario
from ...sim.run.scenario import load_scenario
from ...sim.run.uncertainty import bounds, shift_of, with_uncertainty
from ...topologies import Machine

NOT_PREDICTED = {
    "huge pages": "walks of page tables are not part of the model of queries; try "
    "'echo always > /sys/kernel/mm/transparent_hugepage/enabled'",
}
SCENARIO = """\
name: what-if
machine: {machine}
workload: {workload}
system: {{kind: tasks, threads: {threads}, placement: first-touch, loaders: 1}}
policies: {{stealing: none}}
horizon: 10 s
"""


@dataclass(frozen=True)
class Alternative:
    """``command``: words to put before the program's own, empty for the program as it is."""

    name: str
    command: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """Of an alternative: seconds of the query and their interval; ``gain``: its throughput over
    that of the program as it is, with the interval of that; ``binds``: what keeps it from more."""

    alternative: Alternative
    time_s: float
    interval_s: tuple[float, float]
    gain: float
    gain_interval: tuple[float, float]
    binds: str

    def as_json(self) -> dict[str, Any]:
        """As ``what-if --json`` has it."""
        return {
            "name": self.alternative.name,
            "command": self.alternative.command,
            "time_s": self.time_s,
            "interval_s": list(self.interval_s),
            "gain": self.gain,
            "gain_interval": list(self.gain_interval),
            "binds": self.binds,
        }


def alternatives(machine: Machine, threads: int) -> Iterator[Alternative]:
    """What there is to try on the machine, the program as it is first: with ``threads`` on each
    node, on data that one thread has loaded."""
    yield Alternative("as it is", "")
    cores = [node for node in machine.nodes if node.cores]
    stored = [node for node in machine.nodes if node.memory_bytes]
    if len(machine.nodes) > 1:
        options = [("interleave", "--interleave=all")]
        weights = _weights(machine)
        if weights is not None:
            options.append(("weighted interleave", f"--weighted-interleave={weights}"))
        for node in cores:
            if node.memory_bytes:
                bind = f"--cpunodebind={node.id} --membind={node.id}"
                options.append((f"bind to node {node.id}", bind))
        if len(stored) > 1:
            near = f"--cpunodebind={cores[0].id} --interleave=all"
            options.append((f"threads on node {cores[0].id}, memory on all", near))
        for name, words in options:
            yield Alternative(name, f"numactl {words}", tuple(numactl_settings(words)))
    for fewer in dict.fromkeys((threads // 2, 1)):
        if 0 < fewer < threads:
            text = f"{fewer} thread{'s' if fewer > 1 else ''} a node"
            count = fewer * len(cores)
            yield Alternative(text, f"{count} threads, by its own option",
                              (f"system.threads={fewer}",))  # fmt: skip


def _weights(machine: Machine) -> str | None:
    """Of nodes by the bandwidth of their memory; None where it is not known, or the same."""
    known = [(node.id, node.memory_bandwidth_Bps) for node in machine.nodes if node.memory_bytes]
    rates = [rate for _, rate in known if rate]
    if len(rates) < len(known) or max(rates) < 1.05 * min(rates):
        return None
    return ",".join(f"{k}:{max(round(rate / min(rates)), 1)}" for k, rate in known if rate)


def predictions(
    folder: Path, machine: str, workload: Path, threads: int | None
) -> list[Prediction]:
    """All alternatives on the machine of that name or file; ``threads``: on each node, as many as
    it has cores by default. ``folder``: for a scenario file. Alternatives that the machine has no
    room for are left out. Raises InputError."""
    path = folder / "what-if.yaml"
    path.write_text(SCENARIO.format(
        machine=machine, workload=workload, threads=threads or "cores"
    ))  # fmt: skip
    first = load_scenario(path, plane="flow").machine
    most = threads or max(node.cores for node in first.nodes)
    found: list[Prediction] = []
    base: Record | None = None
    for alternative in alternatives(first, most):
        try:
            scenario = load_scenario(path, plane="flow", settings=alternative.settings)
            record = with_uncertainty(run_scenario(scenario), scenario)
        except (InputError, DescriptionError):
            if base is None:
                raise
            continue
        base = base or record
        found.append(_prediction(alternative, record, base))
    return found


def _prediction(alternative: Alternative, record: Record, base: Record) -> Prediction:
    (query, rate), *_ = record.throughput.items()
    path = ("throughput", query)
    assert record.uncertainty is not None
    low, high = record.uncertainty["throughput"][query]
    each = shift_of(record, path) / np.maximum(shift_of(base, path), 1e-9)
    gain = rate / base.throughput[query]
    least, most = bounds(gain * each)
    why = record.why.get(query)
    return Prediction(
        alternative,
        1 / rate,
        (1 / high, 1 / max(low, 1e-300)),
        gain,
        (least, most),
        "" if why is None else limit_in_words(why, record.resources),
    )

"""What would help a workload on a machine: its memory elsewhere, fewer nodes, fewer threads.

Each alternative is a command to try. Gains are decided as between any two records: with the same
draws of what is uncertain, and with what ratios were off by so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...inputs import DescriptionError, InputError
from ...inputs.progress import Progress, part_of, silent
from ...inputs.shared_work import shared
from ...sim.run.decision import decision
from ...sim.run.limit import limit_in_words
from ...sim.run.numactl import numactl_settings
from ...sim.run.record import Record
from ...sim.run.runner import run_scenario
from ...sim.run.uncertainty import with_uncertainty
from ...topologies import Machine
from .timed_rates import one_query

BIND = "bind to node "
NOT_PREDICTED = {
    "huge pages": "walks of page tables are not part of the model of queries; try "
    "'echo always > /sys/kernel/mm/transparent_hugepage/enabled'",
}


@dataclass(frozen=True)
class Alternative:
    """``command``: words to put before the program's own, empty for the program as it is; ``type``:
    of the one node that it binds all to."""

    name: str
    command: str
    settings: tuple[str, ...] = ()
    type: str | None = None


@dataclass(frozen=True)
class Prediction:
    """Of an alternative: seconds of the query and their interval; ``gain``: its throughput over
    that of the program as it is, with the interval of that; ``faster``: the probability that it
    gains; ``binds``: what keeps it from more."""

    alternative: Alternative
    time_s: float
    interval_s: tuple[float, float]
    gain: float
    gain_interval: tuple[float, float]
    faster: float
    binds: str

    def as_json(self) -> dict[str, Any]:
        """As ``what-if --json`` has it."""
        plain = asdict(self)
        of = plain.pop("alternative")
        return {"name": of["name"], "command": of["command"], **plain}

    def joined(self, other: Alternative, record: Record) -> Prediction | None:
        """With another one, where both bind to nodes of one type that are as fast: what is drawn is
        of types."""
        mine, (rate, *_) = self.alternative, record.throughput.values()
        if mine.type is None or (mine.type, self.time_s) != (other.type, 1 / rate):
            return None
        name = f"{mine.name}, {other.name.removeprefix(BIND)}"
        return replace(self, alternative=replace(mine, name=name))


def alternatives(machine: Machine, threads: int) -> Iterator[Alternative]:
    """What there is to try on the machine, the program as it is first: with ``threads`` on each
    node, on data that one thread has loaded."""
    yield Alternative("as it is", "")
    cores = [node for node in machine.nodes if node.cores]
    stored = [node for node in machine.nodes if node.memory_bytes]
    if len(machine.nodes) > 1:
        options: list[tuple[str, str, str | None]] = [("interleave", "--interleave=all", None)]
        types = machine.description.type_of_node()
        weights = _weights(machine)
        if weights is not None:
            options.append(("weighted interleave", f"--weighted-interleave={weights}", None))
        for node in cores:
            if node.memory_bytes:
                bind = f"--cpunodebind={node.id} --membind={node.id}"
                options.append((f"{BIND}{node.id}", bind, types[node.id]))
        if len(stored) > 1:
            near = f"--cpunodebind={cores[0].id} --interleave=all"
            options.append((f"threads on node {cores[0].id}, memory on all", near, None))
        for name, words, of in options:
            yield Alternative(name, f"numactl {words}", tuple(numactl_settings(words)), of)
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


@shared()  # draws of all are of the same machines
def predictions(
    folder: Path, machine: str, workload: Path, threads: int | None, progress: Progress = silent
) -> list[Prediction]:
    """All alternatives on the machine of that name or file; ``threads``: on each node, as many as
    it has cores by default. ``folder``: for a scenario file. Alternatives that the machine has no
    room for are left out. Raises InputError."""
    first = one_query(folder, machine, workload, threads).machine
    most = threads or max(node.cores for node in first.nodes)
    found: list[Prediction] = []
    base: Record | None = None
    tried = list(alternatives(first, most))
    for k, alternative in enumerate(tried):
        drawing = part_of(progress, k / len(tried), (k + 1) / len(tried))
        try:
            scenario = one_query(folder, machine, workload, threads, alternative.settings)
            record = run_scenario(scenario)
            if found and (joined := found[-1].joined(alternative, record)):
                found[-1] = joined
                continue
            record = with_uncertainty(record, scenario, drawing, most=False)
        except (InputError, DescriptionError):
            if base is None:
                raise
            continue
        base = base or record
        found.append(_prediction(alternative, record, base))
    return found


def _prediction(alternative: Alternative, record: Record, base: Record) -> Prediction:
    (query, rate), *_ = record.throughput.items()
    assert record.uncertainty is not None
    low, high = record.uncertainty["throughput"][query]
    found = None if record is base else decision(base, record, query)
    gain = rate / base.throughput[query]
    least, most = (gain, gain) if found is None else found["interval"]
    why = record.why.get(query)
    return Prediction(
        alternative,
        1 / rate,
        (1 / high, 1 / max(low, 1e-300)),
        gain,
        (least, most),
        0.5 if found is None else found["share"],
        "" if why is None else limit_in_words(why, record.resources),
    )

"""What single passes over tuples take on this host, and exchanges of messages: measured, and as
facts of a machine file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...sim.systems.joins.facts import ENGINE, ExchangeCost, JoinFacts, PassCost
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..measure import fabric
from ..measure.bench import Bench, Samples

# By step of the facts: how it is made, and what it is (engine_native/measure/engine_work.hpp).
METHODS = {
    "count": "tuples of 16 bytes counted by partition",
    "partition": "tuples put into buffers of partitions, these written past the caches when full",
    "gather": "owners of tuples found out, and tuples put into messages for two of them",
    "take": "tuples of messages in a cache copied behind what came before",
    "build": "hash tables of partitions built, one partition after the other",
    "join": "the same, and as many outer tuples looked up; of an inner and an outer tuple",
    "new-group": "groups added to a table that is empty at first, and grows",
    "same-group": "tuples added to groups of such a table, in random order",
    "send-group": "all groups of such a table put into messages",
    "result-group": "all groups of such a table counted, with a checksum",
    "new-cached": "groups added to a table until it is full; it is read and emptied then",
    "same-cached": "tuples added to groups of such a table, in random order",
    "filter-add": "keys added to a Bloom filter",
    "filter-hit": "keys looked up that it has",
    "filter-miss": "keys looked up that it has not",
}
PARTITIONS = (2, 16, 64, 256, 1_024, 4_096)
BUFFERS = (256, 2_048)
INNER = (256, 2_048, 16_384, 131_072)
GROUPS = (1_000, 8_000, 64_000, 512_000)
TABLE_BYTES = (32 << 10, 256 << 10, 1 << 20)
FILTER_BYTES = (64 << 10, 512 << 10, 4 << 20)
MESSAGE_BYTES = (2_048, 16_384)
AT: dict[str, tuple[int, ...]] = {
    "count": PARTITIONS[1:-1:2],
    "partition": PARTITIONS,
    "gather": MESSAGE_BYTES,
    "take": MESSAGE_BYTES,
    "build": INNER,
    "join": INNER,
    **dict.fromkeys(("new-group", "same-group", "send-group", "result-group"), GROUPS),
    **dict.fromkeys(("new-cached", "same-cached"), TABLE_BYTES),
    **dict.fromkeys(("filter-add", "filter-hit", "filter-miss"), FILTER_BYTES),
}
LIMIT_S = 0.6  # where others use the processors, few repetitions are undisturbed
SHARE = 0.8  # of the time, for passes


def measure(bench: Bench) -> Iterator[float]:
    """Passes on all of the first two cores at once, as nodes of a run are; then exchanges."""
    cpus = bench.layout.cores[:2]
    cases = [
        (step, end, buffer)
        for step, sizes in AT.items()
        for end in _ends(sizes, bench)
        for buffer in (_ends(BUFFERS, bench) if step == "partition" else (None,))
    ]
    for k, (step, at, buffer) in enumerate(cases):
        windows = bench.run([(cpu, _work(step, at, buffer)) for cpu in cpus], limit_s=LIMIT_S)
        # Of both members, as each does the same.
        samples: Samples = windows.of((windows.elapsed_ns / windows.amounts).mean(axis=1))
        more: dict[str, object] = {} if buffer is None else {"buffer": buffer}
        bench.add("pass", samples, "time", METHODS[step], step=step, batch=at, **more)
        yield SHARE * (k + 1) / len(cases)
    for done in fabric.exchanges(bench):
        yield SHARE + (1.0 - SHARE) * done


def _ends(sizes: tuple[int, ...], bench: Bench) -> tuple[int, ...]:
    return (sizes[0], sizes[-1]) if bench.effort.quick else sizes


def _work(step: str, size: int, buffer: int | None) -> Any:
    """What the engine calls it."""
    from ...engine_native import _engine as engine

    makers = {
        "count": lambda: engine.count_tuples(size),
        "partition": lambda: engine.partition_tuples(size, buffer or 0),
        "gather": lambda: engine.gather_tuples(size),
        "take": lambda: engine.take_tuples(size),
        "build": lambda: engine.join_partitions(size, False),
        "join": lambda: engine.join_partitions(size, True),
        "new-group": lambda: engine.add_groups(size, False),
        "same-group": lambda: engine.add_groups(size, True),
        "send-group": lambda: engine.read_groups(size, False),
        "result-group": lambda: engine.read_groups(size, True),
        "new-cached": lambda: engine.cache_groups(size, False),
        "same-cached": lambda: engine.cache_groups(size, True),
        "filter-add": lambda: engine.add_to_filter(size),
        "filter-hit": lambda: engine.probe_filter(size, True),
        "filter-miss": lambda: engine.probe_filter(size, False),
    }
    return makers[step]()


def described(
    description: MachineDescription, measurements: Iterable[Measurement], day: str
) -> MachineDescription:
    """``description`` with what these figures tell of the engine; without where some lack."""
    return description.with_facts(ENGINE, join_facts(measurements, day))


def join_facts(measurements: Iterable[Measurement], day: str) -> JoinFacts | None:
    """The part of a machine file that such measurements fill; None where a step is missing."""
    passes, exchanges = [], dict[str, list[ExchangeCost]]()
    for measurement in measurements:
        parameters = measurement.parameters
        if measurement.name == "pass":
            passes.append(
                PassCost.model_validate(
                    {
                        "step": parameters.step,
                        "at": parameters.batch,
                        "buffer": parameters.buffer,
                        "time": measurement.quantity(day),
                    }
                )
            )
        elif measurement.name == "fabric-exchange" and parameters.transport is not None:
            exchanges.setdefault(parameters.transport, []).append(
                ExchangeCost.model_validate(
                    {
                        "operation": parameters.operation,
                        "size": parameters.size,
                        "time": measurement.quantity(day),
                    }
                )
            )
    if {measured.step for measured in passes} != set(METHODS):
        return None
    return JoinFacts(
        passes=tuple(passes),
        exchanges={name: tuple(exchange) for name, exchange in exchanges.items()},
    )

"""What single passes over tuples take on this host, and exchanges of messages: measured, and as
facts of a machine file.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ...sim.systems.joins.facts import ENGINE, ExchangeCost, JoinFacts, PassCost
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..measure import fabric
from ..measure.bench import Bench, Samples, methods_of

METHODS = methods_of("operators")
PARTITIONS = (2, 16, 64, 256, 1_024, 4_096)
BUFFERS = (256, 2_048)
INNER = (256, 2_048, 16_384, 131_072)
GROUPS = (1_000, 8_000, 64_000, 512_000)
TABLE_BYTES = (32 << 10, 256 << 10, 1 << 20)
FILTER_BYTES = (64 << 10, 512 << 10, 4 << 20)
MESSAGE_BYTES = (2_048, 16_384)
# By step of the facts: its sizes, what the engine calls it, and which of two it is.
WORK: dict[str, tuple[tuple[int, ...], str, *tuple[bool, ...]]] = {
    "count": (PARTITIONS[1:-1:2], "count_tuples"),
    "partition": (PARTITIONS, "partition_tuples"),
    "gather": (MESSAGE_BYTES, "gather_tuples"),
    "take": (MESSAGE_BYTES, "take_tuples"),
    "build": (INNER, "join_partitions", False),
    "join": (INNER, "join_partitions", True),
    "new-group": (GROUPS, "add_groups", False),
    "same-group": (GROUPS, "add_groups", True),
    "send-group": (GROUPS, "read_groups", False),
    "result-group": (GROUPS, "read_groups", True),
    "new-cached": (TABLE_BYTES, "cache_groups", False),
    "same-cached": (TABLE_BYTES, "cache_groups", True),
    "filter-add": (FILTER_BYTES, "add_to_filter"),
    "filter-hit": (FILTER_BYTES, "probe_filter", True),
    "filter-miss": (FILTER_BYTES, "probe_filter", False),
}
LIMIT_S = 0.6  # where others use the processors, few repetitions are undisturbed
SHARE = 0.8  # of the time, for passes


def measure(bench: Bench) -> Iterator[float]:
    """Passes on all of the first two cores at once, as nodes of a run are; then exchanges."""
    cpus = bench.layout.cores[:2]
    cases = [
        (step, end, buffer)
        for step, (sizes, *_) in WORK.items()
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

    _, name, *which = WORK[step]
    return getattr(engine, name)(size, *(which if buffer is None else (buffer,)))


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

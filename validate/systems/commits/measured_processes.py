"""Costs between processes of this host: context switches, shared memory, messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....inputs import InputError, Quantity
from ....sim.systems.commits.facts import (
    ENGINE,
    BlockCost,
    CommitFacts,
    EndCost,
    HostFacts,
    TransportCosts,
)
from ....topologies.measurements import Measurement
from ....topologies.processes import ProcessFacts
from ....topologies.schema import MachineDescription
from ...measure.bench import Bench, Samples, methods_of

STEPS = methods_of("processes")
TOGETHER = "-together"
ENDS = "both ends in one thread, which works for one and then for the other; of each request"
PARTS = ("post", "serve", "complete")
OTHERS = {
    "sleeper_other": "sleep-other",
    "post_sleeper": "post-sleeper",
    "post_across": "post-across",
    "serve_across": "serve-across",
    "interrupted": "interrupted",
}
ENDS_OF = ("get", "put", "compare-and-swap", "add", "message")
SIZES = (136, 520, 1_032, 4_104)
QUICK_SIZES = (136, 1_032)
REGIONS = (1 << 18, 1 << 21, 1 << 23, 1 << 25, 1 << 27, 1 << 30)
QUICK_REGIONS = (1 << 18, 1 << 21, 1 << 23, 1 << 25, 1 << 28)
MESSAGE_SIZES = (64, 1_032, 8_192)
COUNTS = (1, 2, 4, 12)
SLEEPER_BYTES = 64
TRANSPORTS = ("shm", "tcp")
# Short windows, many of them: others that run on these processors are then in few.
TURN_WINDOW_NS, TURN_WINDOWS = 200_000, 31
LEAST_NS = 1e-3


def measure(bench: Bench) -> Iterator[float]:
    """Steps on blocks, then both ends and the sleepers of each transport."""
    from ....engine_native._engine import HAS_UCX

    quick = bench.effort.quick
    cpus = bench.layout.cores
    free = max(home.memory_bytes for home in bench.layout.homes)
    sizes = list(QUICK_SIZES if quick else SIZES)
    regions = [r for r in (QUICK_REGIONS if quick else REGIONS) if r <= free]
    plan = (bench.effort.wanted, bench.effort.window_ns // 4)
    for index, region in enumerate(regions):
        transport = "shm" if HAS_UCX else "threads"
        try:
            rows = _call("measure_blocks", transport, (sizes, [region], cpus[:2], *plan))
        except InputError as failure:
            bench.warn(f"processes: not measured: {failure}")
            return
        # What has no region is the same each time.
        _add(bench, [row for row in rows if row["region"] or index == 0])
        yield 0.45 * (index + 1) / len(regions)
    if not HAS_UCX:
        bench.warn("processes: numatwin was built without UCX (Debian: libucx-dev): not measured")
        return
    for index, transport in enumerate(TRANSPORTS):
        try:
            taken = [
                _call(function, transport, arguments)
                for function, arguments in (
                    ("measure_ends", (list(MESSAGE_SIZES), list(COUNTS), *plan)),
                    ("measure_turns", (SLEEPER_BYTES, cpus[:2], TURN_WINDOWS, TURN_WINDOW_NS)),
                )
            ]
        except InputError as failure:
            bench.warn(f"processes: not measured over {transport}: {failure}")
            continue
        for rows in taken:
            _add(bench, rows, transport)
        yield 0.45 + 0.55 * (index + 1) / len(TRANSPORTS)


def _call(function: str, transport: str, arguments: tuple[Any, ...]) -> list[dict[str, Any]]:
    """In a process of its own, which may fork."""
    from ....engine_native.engine_process import EngineProcess
    from ....engine_native.systems.commits.cluster import START_S
    from ....engine_native.transports import ucx_settings

    process = EngineProcess(function, {"streams": [0] * 4} | ucx_settings(transport), arguments)
    try:
        found: list[dict[str, Any]] = process.result(START_S)
    finally:
        process.close()
    return found


def _add(bench: Bench, rows: Iterable[dict[str, Any]], transport: str | None = None) -> None:
    for row in rows:
        name = str(row["name"])
        parameters: dict[str, object] = {}
        if row["bytes"]:
            parameters["size"] = row["bytes"]
        if row["region"]:
            parameters["region"] = row["region"]
        if name not in STEPS:
            parameters["batch"] = row["count"]
        if transport is not None:
            parameters["transport"] = transport
        # A difference that is lost in the noise is still a time.
        taken_ns = np.maximum(np.array(row["samples_ns"]), LEAST_NS)
        samples = Samples(taken_ns)
        bench.add(f"step-{name}", samples, "time", STEPS.get(name, ENDS), **parameters)


def described(
    description: MachineDescription, measurements: Iterable[Measurement], day: str
) -> MachineDescription:
    """``description`` with what these figures tell of processes and of the engine; without either
    where some are missing.
    """
    found = host_facts(measurements, day)
    processes, engine = (None, None) if found is None else (found.processes, found.engine)
    return description.model_copy(update={"processes": processes}).with_facts(ENGINE, engine)


def host_facts(measurements: Iterable[Measurement], day: str) -> HostFacts | None:
    """The parts of a machine file that such measurements fill; None where some are missing."""
    measurements = list(measurements)
    found: dict[tuple[str, str | None], list[Measurement]] = {}
    line: Measurement | None = None
    for measurement in measurements:
        if measurement.name.startswith("step-"):
            key = measurement.name.removeprefix("step-"), measurement.parameters.transport
            found.setdefault(key, []).append(measurement)
        elif measurement.name == "message.latency":
            line = measurement

    def one(name: str, transport: str | None = None, last: bool = False) -> Quantity | None:
        of_name = found.get((name, transport))
        return of_name[-1 if last else 0].quantity(day) if of_name else None

    transports = {name: costs for name in TRANSPORTS if (costs := _transport(found, name, day))}
    turns = {
        field: next((q for t in TRANSPORTS if (q := one(name, t))), None)
        for field, name in {"slice": "slice", "turn": "turn", "give_way": "yield"}.items()
    }
    alone, turn = turns["give_way"], turns["turn"]
    if alone is not None and turn is not None and alone.value > turn.value:
        # Others ran meanwhile: it takes no longer than a turn.
        turns["give_way"] = replace(alone, value=turn.value, low=min(alone.low, turn.value))
    words = {
        "clock": one("clock"),
        "word_get": one("words-get"),
        "words_get": one("words-get", last=True),
        "word_add": one("word-add"),
    }
    of_machine: dict[str, Any] = {**turns, **words}
    of_engine: dict[str, Any] = {"key_draw": one("key-draw"), "timestamp": one("timestamp")}
    missing = None in (*of_machine.values(), *of_engine.values())
    if missing or ("block-get", None) not in found:
        return None
    return HostFacts(
        ProcessFacts(**of_machine, line=None if line is None else line.quantity(day)),
        CommitFacts(
            **of_engine, note=one("note"), blocks=tuple(_blocks(found)), transports=transports
        ),
    )


def _blocks(found: Mapping[tuple[str, str | None], Sequence[Measurement]]) -> Iterator[BlockCost]:
    """By size and region, in the order of steps by one processor alone."""
    steps: dict[tuple[float, float], dict[str, Quantity]] = {}
    for end in ("", TOGETHER):
        for step in ("get", "update", "insert"):
            for measurement in found.get((f"block-{step}{end}", None), ()):
                size, region = measurement.parameters.size, measurement.parameters.region
                assert size is not None
                assert region is not None
                of_block = steps.setdefault((size.value, region.value), {})
                of_block |= {"size": size, "region": region}
                of_block[step + end.replace("-", "_")] = measurement.quantity()
    yield from (BlockCost.model_validate(of_block) for of_block in steps.values())


def _transport(
    found: dict[tuple[str, str | None], list[Measurement]], transport: str, day: str
) -> TransportCosts | None:
    ends = []
    for operation in ENDS_OF:
        parts = [found.get((f"{part}-{operation}", transport), []) for part in PARTS]
        for post, serve, complete in zip(*parts, strict=True):
            ends.append(
                EndCost(
                    operation=operation,
                    size=post.parameters.size,
                    count=post.parameters.batch,
                    post=post.quantity(),
                    serve=serve.quantity(),
                    complete=complete.quantity(),
                )
            )
    same = found.get(("sleep-same", transport))
    if not ends or not same:
        return None
    optional = {
        field: of_name[0].quantity(day)
        for field, name in OTHERS.items()
        if (of_name := found.get((name, transport)))
    }
    return TransportCosts(
        look=found["idle-look", transport][0].quantity(day),
        arm=found["arm", transport][0].quantity(day),
        sleeper_size=same[0].parameters.size,
        sleeper_same=same[0].quantity(day),
        ends=tuple(ends),
        **optional,
    )

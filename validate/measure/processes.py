"""What processes of this host cost each other: turns on processors, shared memory, messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...inputs import InputError, Quantity
from ...inputs.quantities import format_quantity
from ...sim.systems.commits.facts import (
    QUANTILES,
    BlockCost,
    BlockSpread,
    CommitFacts,
    EndCost,
    HostFacts,
    TransportCosts,
)
from ...topologies.measurements import Measurement
from ...topologies.processes import ProcessFacts
from .bench import Bench
from .interrupting import TURN_NS
from .quiet import APART_TIMES, NEAR_QUANTILE
from .samples import Samples

# What the engine calls them, and what they are (systems/commits/measure_steps.hpp).
STEPS = {
    "block-get": "blocks at random places of shared memory read, and their first words again, each "
    "three after 32 KiB of one's own",
    "block-update": "the same, and locked by CAS, copied twice, written back",
    "block-insert": "blocks made and written, one place of shared memory after the other; between "
    "each three of them words are added to and read",
    "block-get-together": "the same as block-get, while another processor updates and inserts "
    "blocks of the same memory",
    "block-update-together": "the same as block-update, together likewise",
    "block-insert-together": "the same as block-insert, together likewise",
    "block-get-apart": "the same as block-get-together, while both processors are far apart",
    "block-update-apart": "the same as block-update, apart likewise",
    "block-insert-apart": "the same as block-insert, apart likewise",
    "words-get": "words that a cache holds read from shared memory",
    "word-add": "atomic adds to a word in shared memory, alone",
    "key-draw": "records of a transaction drawn, uniform, and where they lie",
    "timestamp": "ends of runs of timestamps' bits found in words at hand, and places of bits",
    "note": "what a transaction did counted, and its latency",
    "clock": "looks at the clock",
    "yield": "sched_yield where no other process waits for the processor",
    "turn": "sched_yield of two processes on one processor, until the other one runs and has been "
    "through 32 KiB of its own; less what that takes alone",
    "slice": "how long a process runs while another one waits for its processor",
    "sleep-same": "a message to a sleeper on the same processor, and back; half of it",
    "sleep-among": "the same to three sleepers there, one after the other",
    "sleep-other": "a message to a sleeper on another processor, and back; half of it",
    "post-sleeper": "handing over a message to a sleeper on another processor",
    "post-across": "handing over a message to a process on another processor, which looks for it "
    "all the time",
    "serve-across": "receiving its answer, likewise",
    "interrupted": "time that a process which never stops loses to a sleeper on its processor, for "
    "each message to that from another processor and its answer",
    "idle-look": "looks at the network with nothing there",
    "arm": "going to sleep, but for the sleep",
}
TOGETHER, APART = "-together", "-apart"
ENDS = "both ends in one thread, which works for one and then for the other; of each request"
PARTS = ("post", "serve", "complete")
OTHERS = {
    "sleeper_among": "sleep-among",
    "sleeper_other": "sleep-other",
    "post_sleeper": "post-sleeper",
    "post_across": "post-across",
    "serve_across": "serve-across",
    "interrupted": "interrupted",
}
ENDS_OF = ("get", "put", "compare-and-swap", "add", "message")
SPREADS = {
    "begin": "all that a client does for a transaction beside its requests, singly",
    "end": "posting, serving and completing a request, both ends in one thread, each singly",
    "sleeper": "messages to a sleeper on another processor until it has received them, singly",
}
BLOCK_SPREAD = "steps on three blocks after 32 KiB of one's own, singly"
SPREAD_METHOD = "{}: over the mean of its window's but for the slowest twentieth"
# Beyond the last of QUANTILES: the mean of what is slower.
FACTOR_STEPS = (*(f"p{share * 100:g}" for share in QUANTILES), "slowest")

SIZES = (136, 520, 1_032, 4_104)
QUICK_SIZES = (136, 1_032)
REGIONS = (1 << 18, 1 << 21, 1 << 23, 1 << 25, 1 << 27, 1 << 30)
QUICK_REGIONS = (1 << 18, 1 << 21, 1 << 23, 1 << 25, 1 << 28)
MESSAGE_SIZES = (64, 1_032, 8_192)
COUNTS = (1, 2, 4, 12)
SPREAD_REGIONS, SPREAD_BYTES = (1 << 18, 1 << 23, 1 << 28), 1_032
SPREAD_WINDOWS = 2  # for each repetition of other figures
# Of steps in memory, and of messages: some thousands, some hundred of them.
SPREAD_WINDOW_NS, MESSAGE_WINDOW_NS = 5_000_000, 20_000_000
SLEEPER_BYTES = 64
TRANSPORTS = ("shm", "tcp")
# Short windows, many of them: others that run on these processors are then in few.
TURN_WINDOW_NS, TURN_WINDOWS = 200_000, 31
LEAST_NS = 1e-3


def measure(bench: Bench) -> Iterator[float]:
    """Steps on blocks, then both ends and the sleepers of each transport."""
    from ...engine_native._engine import HAS_UCX

    quick = bench.effort.quick
    cpus = [cpu for node in bench.layout.starts for cpu in node.cores]
    free = max(home.memory_bytes for home in bench.layout.homes)
    sizes = list(QUICK_SIZES if quick else SIZES)
    regions = [r for r in (QUICK_REGIONS if quick else REGIONS) if r <= free]
    plan = (bench.effort.wanted, bench.effort.window_ns // 4)
    blocks: list[tuple[dict[str, Any], bool]] = []
    for at, region in enumerate(regions):
        # Each between two looks at the host.
        transport = "shm" if HAS_UCX else "threads"
        arguments = (sizes, [region], cpus[:2], *plan)
        rows, calm = bench.quiet.take(partial(_call, "measure_blocks", transport, arguments))
        # What has no region is the same each time.
        blocks += [(row, calm) for row in rows if row["region"] or at == 0]
        yield 0.4 * (at + 1) / len(regions)
    _add_blocks(bench, blocks)
    windows = SPREAD_WINDOWS * bench.effort.wanted
    spread_regions = [region for region in SPREAD_REGIONS if region <= free]
    spread_plan = (SPREAD_BYTES, spread_regions, cpus[:2], windows, SPREAD_WINDOW_NS, TURN_NS)
    _add_spreads(bench, "measure_block_spreads", "shm" if HAS_UCX else "threads", spread_plan)
    yield 0.45
    if not HAS_UCX:
        bench.warn("processes: numatwin was built without UCX (Debian: libucx-dev): not measured")
        return
    for at, transport in enumerate(TRANSPORTS):
        try:
            taken = [
                bench.quiet.take(partial(_call, function, transport, arguments))
                for function, arguments in (
                    ("measure_ends", (list(MESSAGE_SIZES), list(COUNTS), *plan)),
                    ("measure_turns", (SLEEPER_BYTES, cpus[:2], TURN_WINDOWS, TURN_WINDOW_NS)),
                )
            ]
        except InputError as failure:
            bench.warn(f"processes: no transport {transport}: {failure}")
            continue
        for rows, calm in taken:
            _add(bench, rows, calm, transport)
        messages = (SPREAD_BYTES, cpus[:2], windows, MESSAGE_WINDOW_NS, TURN_NS)
        _add_spreads(bench, "measure_message_spreads", transport, messages, transport=transport)
        yield 0.45 + 0.55 * (at + 1) / len(TRANSPORTS)


def _call(function: str, transport: str, arguments: tuple[Any, ...]) -> list[dict[str, Any]]:
    """In a process of its own, which may fork."""
    from ...engine_native.engine_process import EngineProcess
    from ...engine_native.systems.commits.cluster import START_S, ucx_settings

    process = EngineProcess(function, {"streams": [0] * 4} | ucx_settings(transport), arguments)
    try:
        found: list[dict[str, Any]] = process.result(START_S)
    finally:
        process.close()
    return found


def _add_blocks(bench: Bench, rows: Sequence[tuple[dict[str, Any], bool]]) -> None:
    """Steps on blocks, each whether it was calm; those together where both processors were near
    each other, and those where they were far apart."""
    near_ns = bench.quiet.near_ns
    if lines_ns := [line_ns for row, _ in rows for line_ns in row["lines_ns"]]:
        near_ns = min(near_ns, float(np.quantile(lines_ns, NEAR_QUANTILE)))
    for row, calm in rows:
        if not row["lines_ns"]:
            _add(bench, [row], calm)
            continue
        samples_ns = np.array(row["samples_ns"])
        apart = np.array(row["lines_ns"]) > APART_TIMES * near_ns
        for end, those in ((TOGETHER, ~apart), (APART, apart)):
            if those.any():
                name = row["name"].removesuffix(TOGETHER) + end
                _add(bench, [row | {"name": name, "samples_ns": samples_ns[those]}], calm)


def _add(
    bench: Bench, rows: Iterable[dict[str, Any]], calm: bool, transport: str | None = None
) -> None:
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
        samples = Samples(taken_ns, noisy=not calm)
        bench.add(f"step-{name}", samples, "time", STEPS.get(name, ENDS), **parameters)


def _add_spreads(
    bench: Bench, function: str, by: str, arguments: tuple[Any, ...], **of: object
) -> None:
    """Of what: ``of``."""
    rows, calm = bench.quiet.take(partial(_call, function, by, arguments))
    for row in rows:
        parameters: dict[str, object] = {"operation": row["name"]} | of
        if row["region"]:
            parameters["region"] = row["region"]
        method = SPREAD_METHOD.format(SPREADS.get(row["name"], BLOCK_SPREAD))
        for step, factor in zip(FACTOR_STEPS, row["factors"], strict=True):
            samples = Samples(np.array([factor]), noisy=not calm)
            bench.add("spread", samples, "count", method, step=step, **parameters)


def host_facts(measurements: Iterable[Measurement], day: str) -> HostFacts | None:
    """The parts of a machine file that such measurements fill; None where some are missing."""
    measurements = list(measurements)
    found: dict[tuple[str, str | None], list[Measurement]] = {}
    spreads = _Spreads(measurements)
    line: Measurement | None = None
    for measurement in measurements:
        if measurement.name.startswith("step-"):
            key = measurement.name.removeprefix("step-"), measurement.parameters.transport
            found.setdefault(key, []).append(measurement)
        elif measurement.name == "message.latency":
            line = measurement

    def one(name: str, transport: str | None = None, last: bool = False) -> Quantity | None:
        of_name = found.get((name, transport))
        return _quantity(of_name[-1 if last else 0], day) if of_name else None

    transports = {
        name: costs for name in TRANSPORTS if (costs := _transport(found, spreads, name, day))
    }
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
        ProcessFacts(**of_machine, line=None if line is None else _quantity(line, day)),
        CommitFacts(
            **of_engine,
            note=one("note"),
            begin_spread=spreads.of("begin"),
            block_spreads=spreads.blocks(),
            blocks=tuple(_blocks(found)),
            transports=transports,
        ),
    )


def _blocks(found: Mapping[tuple[str, str | None], Sequence[Measurement]]) -> Iterator[BlockCost]:
    """By size and region, in the order of steps by one processor alone."""
    steps: dict[tuple[float, float], dict[str, Quantity]] = {}
    for end in ("", TOGETHER, APART):
        for step in ("get", "update", "insert"):
            for one in found.get((f"block-{step}{end}", None), ()):
                size, region = one.parameters.size, one.parameters.region
                assert size is not None
                assert region is not None
                of_block = steps.setdefault((size.value, region.value), {})
                of_block |= {"size": size, "region": region}
                of_block[step + end.replace("-", "_")] = _quantity(one)
    yield from (BlockCost.model_validate(of_block) for of_block in steps.values())


class _Spreads:
    """How steps vary: factors by step, region and transport."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self._of: dict[tuple[str, float | None, str | None], dict[str, float]] = {}
        for measurement in measurements:
            if measurement.name == "spread":
                at = measurement.parameters
                region = None if at.region is None else at.region.value
                factors = self._of.setdefault((str(at.operation), region, at.transport), {})
                factors[str(at.step)] = measurement.value.value

    def of(
        self, step: str, region: float | None = None, transport: str | None = None
    ) -> tuple[float, ...] | None:
        """As a machine file has them. Each is a figure of its own: none falls below the last."""
        factors = self._of.get((step, region, transport))
        if factors is None or any(name not in factors for name in FACTOR_STEPS):
            return None
        rising = np.maximum.accumulate([factors[name] for name in FACTOR_STEPS])
        return tuple(float(f"{factor:.4g}") for factor in rising)

    def blocks(self) -> tuple[BlockSpread, ...]:
        """By region."""
        regions = sorted({region for _, region, _ in self._of if region is not None})
        return tuple(
            BlockSpread.model_validate(
                {"region": format_quantity(region, "size")}
                | {
                    (step + end).replace("-", "_"): self.of(step + end, region)
                    for step in ("get", "write", "insert")
                    for end in ("", "-together")
                }
            )
            for region in regions
        )


def _transport(
    found: dict[tuple[str, str | None], list[Measurement]],
    spreads: _Spreads,
    transport: str,
    day: str,
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
                    post=_quantity(post),
                    serve=_quantity(serve),
                    complete=_quantity(complete),
                )
            )
    same = found.get(("sleep-same", transport))
    if not ends or not same:
        return None
    optional = {
        field: _quantity(of_name[0], day)
        for field, name in OTHERS.items()
        if (of_name := found.get((name, transport)))
    }
    return TransportCosts(
        look=_quantity(found["idle-look", transport][0], day),
        arm=_quantity(found["arm", transport][0], day),
        sleeper_size=same[0].parameters.size,
        sleeper_same=_quantity(same[0], day),
        ends=tuple(ends),
        end_spread=spreads.of("end", transport=transport),
        sleeper_spread=spreads.of("sleeper", transport=transport),
        **optional,
    )


def _quantity(found: Measurement, day: str | None = None) -> Quantity:
    """With its quartiles; of what stands once, with its method."""
    low, high = found.quartiles or (found.value, found.value)
    source = f"measured {day}: {found.method}" if day else None
    return Quantity(found.value.value, low.value, high.value, source, doubtful=found.noisy)

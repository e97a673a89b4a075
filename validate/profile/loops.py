"""Counts of an operator's functions as loops: instructions, their rate, bytes, random accesses.

A vectorised engine goes through its functions one after the other, a few thousand rows at a time:
each that takes its time is a loop. Lines that a simulated prefetcher had fetched are read in order:
from memory those that the largest cache with a prefetcher misses without it; those that lie in a
cache larger than the smallest are there in time, and cost nothing besides. What caches miss at
random goes to structures whose miss curve is the counted one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...sim.kernel.arrays import Flags, Ints
from ...sim.kernel.arrays import Floats as Floats
from ...sim.machine.caches import hit_rates
from ...sim.machine.counted_instructions import (
    FETCH_MISS_CYCLES,
    IPC_LEAST,
    IPC_MIDDLE,
    IPC_MOST,
    MISPREDICTION_CYCLES,
    MISPREDICTION_CYCLES_MOST,
)
from .counts import CallGraph

LINE_BYTES = 64.0
FIRST_CACHE_BYTES = 32.0 * 2**10  # of most processors
MISS_CYCLES = 50.0  # only to tell which functions matter most
LEAST = 0.02  # of a pipeline's time that a function takes to be a loop of its own
LOOPS_MAX = 12
NOTICED = 1e-3  # lines per row
BEYOND = 16.0  # times the largest simulated cache: how large what misses it may be
# Of a fit: part of a loop's misses, errors of which matter little; what a structure's size costs
# that is not in the middle; steps at most.
SMALL, AWAY, TRIES = 0.01, 0.01, 200
# That a string instruction copies in the time of another instruction. Estimate, not verified: as
# wide as one load and one store of AVX.
COPIED_BYTES = 32.0


class Structure(NamedTuple):
    """So many ``accesses`` to any line of ``size`` bytes, from ``low`` to ``high``; the part
    ``written`` of what they fetch is changed."""

    accesses: float
    size: float
    low: float
    high: float
    written: float = 0.0


@dataclass(frozen=True)
class Counted:
    """F functions of one program, counted once or more, with caches of several sizes.

    ``misses`` (K, F): of caches of ``sizes`` (K,) bytes, rising; ``at_random`` (K, F): those that
    no prefetcher foresees, where that is known; ``changed`` (K,): the part of all these that write
    another line back. ``in_order`` (F,): of one size, those that one foresees; None: not known.
    ``written`` (F,): lines that miss the same one, or the largest, and are changed.
    ``mispredicted`` (F,): None: not counted. ``cycles`` (F,): with all misses; 0: not counted.
    ``fetches`` (F,): of instructions, that miss the first cache. ``faults`` (F,): first touches of
    pages.
    """

    graph: CallGraph
    instructions: Floats
    sizes: Floats
    misses: Floats
    at_random: Floats
    changed: Floats
    written: Floats
    in_order: Floats | None
    mispredicted: Floats | None
    cycles: Floats
    fetches: Floats
    faults: Floats


def counted(graphs: Sequence[CallGraph], faults: float = 0.0) -> Counted:
    """All runs together, by the functions of the first. Page ``faults`` are shared out: new memory
    is in no cache as it is written first."""
    first = min(graphs, key=lambda graph: 0.0 < graph.code_cache < FIRST_CACHE_BYTES)

    def aligned(graph: CallGraph, values: Floats) -> Floats:
        at = [graph.position.get(name, -1) for name in first.names]
        return np.where(np.array(at) >= 0, values[at], 0.0)

    by_size: dict[float, Floats] = {}
    dirty: dict[float, float] = {}
    written: dict[float, Floats] = {}
    unforeseen: dict[float, Floats] = {}
    for graph in graphs:
        for size, level in zip(graph.caches[:2], ("D1", "DL"), strict=True):
            if size < FIRST_CACHE_BYTES:
                continue
            found = aligned(graph, graph.of(f"{level}mr", f"{level}mw"))
            if level == "DL" and graph.prefetched:
                unforeseen[size] = found
                continue
            by_size[size] = found
            if f"{level}dmw" in graph.events:
                dirty[size] = float(graph.of(f"{level}dmr", f"{level}dmw").sum())
            written[size] = aligned(graph, graph.of(f"{level}mw"))
    # Misses with and without a prefetcher are of one size, or of the largest ones.
    known = max(unforeseen, default=0.0)
    largest = max(by_size, default=0.0)
    size = known if known in by_size else largest
    in_order = None
    if by_size and known >= size > 0:
        in_order = np.maximum(by_size[size] - unforeseen[known], 0.0)
    elif "lines" in first.events:  # of memory, by a processor's own counter
        in_order = first.of("lines")
    sizes = np.array(sorted(by_size))
    misses = np.array([by_size[size] for size in sizes]).reshape(len(sizes), len(first.names))
    misses = np.minimum.accumulate(misses, axis=0) if len(sizes) else misses
    wrote = written.get(size, np.zeros(len(first.names)))
    new = written.get(largest, np.zeros(len(first.names)))
    new = new if new.any() else first.of("Ir")
    at_random = _at_random(sizes, misses, unforeseen, in_order)
    streamed = np.zeros(len(first.names)) if in_order is None else np.minimum(wrote, in_order)
    if in_order is not None and size in dirty:  # some lines are read first, and written then
        read, kept = in_order - streamed, at_random[sizes.tolist().index(size)].sum()
        more = max(dirty[size] - float(streamed.sum() + kept), 0.0)
        wrote = streamed = streamed + read * min(more / max(float(read.sum()), 1.0), 1.0)
    return Counted(
        first,
        _instructions(first),
        sizes,
        misses,
        at_random,
        _changed(sizes, at_random.sum(axis=1), dirty, float(streamed.sum())),
        wrote,
        in_order,
        first.of("Bcm", "Bim") if "Bcm" in first.events else None,
        first.of("cycles"),
        first.of("I1mr"),
        faults * new / max(new.sum(), 1.0),
    )


def _instructions(graph: CallGraph) -> Floats:
    """(F,) of each function. Callgrind counts each byte of a copying string instruction (``rep
    movsb`` of a large memcpy) as an instruction that reads and writes. No other code accesses
    memory more than once an instruction for long: the accesses beyond are such bytes."""
    executed = graph.of("Ir")
    copied = np.clip(graph.of("Dr", "Dw") - executed, 0.0, executed)
    return executed - copied * (1.0 - 1.0 / COPIED_BYTES)


def _changed(sizes: Floats, missed: Floats, dirty: dict[float, float], streamed: float) -> Floats:
    """(K,) part of those ``missed`` (K,) at random that write another line back: of ``dirty`` ones,
    by size, those that are not of lines ``streamed`` out. Between sizes as on a straight line."""
    known = [k for k, size in enumerate(sizes) if size in dirty]
    if not known:
        return np.zeros(len(sizes))
    parts = [(dirty[sizes[k]] - streamed) / max(missed[k], 1.0) for k in known]
    return np.asarray(np.interp(np.log(sizes), np.log(sizes[known]), np.clip(parts, 0.0, 1.0)))


def _at_random(
    sizes: Floats, misses: Floats, unforeseen: dict[float, Floats], in_order: Floats | None
) -> Floats:
    """(K, F) misses that prefetchers left over at the sizes at which there was one. Of what one
    such cache misses and the next holds, the same part is at random at all sizes between; beyond
    the largest, and below the smallest, as many are in order as there."""
    if in_order is None or not len(sizes):
        return misses
    known = [k for k, size in enumerate(sizes) if size in unforeseen] or [len(sizes) - 1]
    foreseen = {k: np.maximum(misses[k] - unforeseen.get(sizes[k], misses[k]), 0.0) for k in known}
    foreseen[known[-1]] = in_order
    found = np.empty_like(misses)
    for k, missed in enumerate(misses):
        low = max((at for at in known if at <= k), default=known[0])
        high = min((at for at in known if at >= k), default=known[-1])
        between = np.maximum(misses[low] - misses[high], 1.0)
        part = np.clip((missed - misses[high]) / between, 0.0, 1.0)
        ordered = foreseen[high] + (foreseen[low] - foreseen[high]) * part
        found[k] = np.maximum(missed - ordered, 0.0)
    return np.minimum.accumulate(found, axis=0)


@dataclass(frozen=True)
class Loop:
    """What one loop does per row; ``structures``: accesses, bytes, and the least and
    the most that these may be. ``functions``: which. ``at_once``: accesses under way, the least and
    the most; None: as many as the machine can."""

    functions: str
    instructions: float
    ipc: tuple[float, float, float]
    read_bytes: float
    written_bytes: float
    structures: tuple[Structure, ...] = ()
    at_once: tuple[float, float, float] | None = None
    page_faults: float = 0.0
    at_random: Floats = field(default_factory=lambda: np.zeros(1))


def loops_of(counted: Counted, share: Floats, rows: float, *, streams: Flags | None) -> list[Loop]:
    """The loops of the functions that work, in parts ``share`` (F,), for so many rows. ``streams``
    (F,): those whose misses are in order where no prefetcher has told which are; None: none."""
    missed = counted.misses[0] if len(counted.sizes) else np.zeros(len(share))
    cycles = share * (counted.instructions / IPC_MIDDLE + MISS_CYCLES * missed)
    order = np.argsort(-cycles)
    own = [k for k in order[: LOOPS_MAX - 1].tolist() if cycles[k] > LEAST * cycles.sum()]
    rest = np.ones(len(share), dtype=bool)
    rest[own] = False
    groups = [np.array([k]) for k in own] + [np.flatnonzero(rest & (share > 0))]
    found = [_loop(counted, share, group, rows, streams=streams) for group in groups if len(group)]
    return [loop for loop in found if loop.instructions > 0]


def whole_loop(counted: Counted, share: Floats) -> Loop:
    """All of it as one loop that runs once."""
    return _loop(counted, share, np.flatnonzero(share > 0), 1.0, streams=None)


def _loop(
    counted: Counted, share: Floats, group: Ints, rows: float, *, streams: Flags | None
) -> Loop:
    part = share[group] / rows

    def each(values: Floats) -> float:
        return float(values[group] @ part)

    at_random = np.array([each(values) for values in counted.at_random])
    in_order = 0.0
    if counted.in_order is not None:
        in_order = each(counted.in_order)
    elif len(at_random) and streams is not None:
        in_order = each(counted.misses[-1] * streams)
        at_random = np.maximum(at_random - in_order, 0.0)
    written = min(each(counted.written), in_order)
    names = counted.graph.names
    name = names[group[0]] if len(group) == 1 else f"{len(group)} other functions"
    instructions = each(counted.instructions)
    wrong = None if counted.mispredicted is None else each(counted.mispredicted)
    low, cycles = 0.0, each(counted.cycles)
    if cycles:  # without its misses it executes no fewer per cycle
        low = instructions / cycles
    middle, least, most = rates(instructions, wrong, each(counted.fetches))
    return Loop(
        name,
        instructions,
        (max(middle, low), max(least, low), max(most, low)),
        (in_order - written) * LINE_BYTES,
        written * LINE_BYTES,
        page_faults=each(counted.faults),
        at_random=at_random,
    )


def rates(
    instructions: float, mispredicted: float | None, fetches: float = 0.0
) -> tuple[float, float, float]:
    """Instructions per cycle without misses of data: a middle, the least, the most. Real processors
    predict better than the simulated predictor, and fetch ahead: between none and all of its
    mispredictions, and of the ``fetches`` that miss, take their time."""
    wrong, fetching = mispredicted or 0.0, fetches * FETCH_MISS_CYCLES
    cycles = instructions / IPC_MIDDLE + wrong / 2 * MISPREDICTION_CYCLES + fetching / 2
    most = instructions / IPC_LEAST + wrong * MISPREDICTION_CYCLES_MOST + fetching
    if not cycles > 0:
        return IPC_MIDDLE, IPC_LEAST, IPC_MOST
    return instructions / cycles, instructions / most, IPC_MOST


def with_structures(
    sizes: Floats, changed: Floats, loops: Sequence[tuple[float, Loop]]
) -> list[Loop]:
    """Each loop, of so many rows, with structures that miss caches of ``sizes`` (K,), rising, as
    often as its random accesses do.

    A structure lies between two of the sizes, or beyond the largest one, where its size is not
    known: from as large to ``BEYOND`` times. They are the same for all loops, as what these have in
    the caches was counted together; the caches are shared as the model shares them (Che's
    approximation). The accesses are those whose misses are nearest to the counted ones; the part
    ``changed`` (K,) of what they fetch is written back.
    """
    from scipy.optimize import nnls  # slow to load

    together = sum((rows * loop.at_random for rows, loop in loops), np.zeros(len(sizes)))
    if not together.any():
        return [loop for _, loop in loops]
    missed, bytes_ = _shared(sizes, together)
    low, high = bytes_.copy(), bytes_.copy()
    low[-1], high[-1] = sizes[-1], BEYOND * sizes[-1]

    def structured(loop: Loop) -> Loop:
        if not loop.at_random[0] >= NOTICED:
            return loop
        weights = 1.0 / _scale(loop.at_random)
        counts, _ = nnls(missed * weights[:, None], loop.at_random * weights)
        rows = zip(*(each.tolist() for each in (counts, bytes_, low, high, changed)), strict=True)
        found = tuple(Structure(*row) for row in rows if row[0] >= NOTICED)
        return replace(loop, structures=found)

    return [structured(loop) for _, loop in loops]


def _shared(sizes: Floats, misses: Floats) -> tuple[Floats, Floats]:
    """(K, K) part of the accesses to each of K structures that miss each of K caches, where all
    share them and miss (K,) times; (K,) bytes of the structures."""
    from scipy.optimize import least_squares

    many, wanted = len(sizes), misses / misses[0]
    between = np.log(np.append(sizes[1:], BEYOND * sizes[-1]) / sizes)

    def missed(at: Floats) -> tuple[Floats, Floats]:
        bytes_ = sizes * np.exp(between * at[many:])
        shape = (many, many)
        lines, rates = (np.broadcast_to(each, shape) for each in (bytes_ / LINE_BYTES, at[:many]))
        return 1.0 - hit_rates(lines, rates, sizes / LINE_BYTES), bytes_

    def off(at: Floats) -> Floats:
        found = missed(at)[0] @ at[:many] - wanted
        return np.concatenate([found / _scale(wanted), AWAY * (at[many:] - 0.5)])

    # Counts, and where between the two sizes: in the middle, unless the counts say otherwise; what
    # misses the largest cache stays there, as nothing tells more of it.
    steps = np.maximum(wanted - np.append(wanted[1:], 0.0), 1e-6)
    start = np.concatenate([steps, np.full(many, 0.5)])
    highest = np.repeat([np.inf, 1.0], many)
    highest[-1] = 0.5 + 1e-9
    return missed(least_squares(off, start, bounds=(0.0, highest), max_nfev=TRIES).x)


def _scale(misses: Floats) -> Floats:
    """Of (…, K) misses, what an error of each is measured by."""
    return np.asarray(misses + SMALL * misses[..., :1] + 1e-12)

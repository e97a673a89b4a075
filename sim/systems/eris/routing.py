"""Costs of routing in ERIS, per command: the same for every plane."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ....workloads.keys import KeyDistribution
from ....workloads.workload import PhaseState
from ....workloads.zipf import Zipf
from ..._kernel import binomial_parts
from ...kernel.arrays import Floats, Ints
from ...machine.costs import LINE_BYTES
from ...machine.demands import Waits
from .costs import ErisCosts, InstructionCounts
from .spec import ErisSystem

# Where each worker gets so many commands of a batch on average, buffers keep each batch separate.
BATCH_PER_TARGET_MIN = 16

CACHED_MAX = 1024

# Changes of a buffer's descriptor for each flush into it: two of who flushes, one of who takes it.
DESCRIPTOR_CHANGES = 3.0

# A node of the partition table's CSB+-tree: a cache line with 7 bounds and a pointer.
TABLE_FANOUT = 8


@dataclass(frozen=True)
class RoutingCosts:
    """Instructions, and cache lines, of a command on its way.

    ``issue``: make it, with its part of a batch's costs, look its target up, append it to the
    outgoing buffer. ``receive``: take it from the incoming buffer. ``batch_executed``: of a batch
    that is executed, ``round``: of a round of the loop; ``looped``: a command's part of both.
    ``flush_fixed``: of a flush; ``flush_line``: for each line of it. ``lines``, ``answer_lines``:
    of a command, and of what is sent back for it. ``part``: of a header of a part of a batch.
    """

    issue: float
    receive: float
    batch_executed: float
    round: float
    looped: float
    flush_fixed: float
    flush_line: float
    lines: float
    answer_lines: float
    part: float


def takers_wait(
    executed: Floats,
    parts: Floats,
    waits: tuple[float, float],
    made: float,
    taken: float,
    others_make: float,
) -> Waits:
    """The waits of executors for lines of issuers, per unit of work.

    ``executed`` (C,): share of the commands that each core executes; ``parts`` (C,): headers of
    parts of batches under which they come. ``waits``: each time that it takes what others have
    sent, however much that is, and for each of these headers that another core sent. A worker
    issues ``made`` units in a round of its loop at most, and takes ``taken``; all others issue
    ``others_make`` commands in it.

    Who has time issues as many commands as it may in each round; who has none left takes what fits
    into its buffer. Only rounds in which there is something of others' to take count.
    """
    read_waits, part_waits = waits

    def of_threads(threads: Floats) -> Callable[[Floats, Floats], Floats]:
        some = 1.0 - (1.0 - executed / threads) ** others_make
        full = executed / taken

        def waited(issued: Floats, remote: Floats) -> Floats:
            rounds = np.maximum(issued / made, full) * some
            return read_waits * rounds + part_waits * remote * parts

        return waited

    return of_threads


def making(counts: InstructionCounts, phase: PhaseState) -> float:
    """Instructions of making a command of the phase's operations by key, on average."""
    total, shares = 0.0, 0.0
    choose = counts.choose if len(phase.asked) > 1 else 0.0
    for operation in phase.asked:
        keys = operation.keys
        if keys is None:
            continue
        one = counts.generate if in_one_piece(keys) else counts.generate_ranked
        one += choose + (counts.generate_value if operation.kind == "upsert" else 0.0)
        if keys.scattered:
            steps, more = zip(*counts.scatter, strict=True)
            one += float(np.interp(scatter_steps(keys.keys), steps, more))
        total, shares = total + operation.share * one, shares + operation.share
    return total / shares if shares else counts.generate


def in_one_piece(keys: KeyDistribution) -> bool:
    """Whether keys are drawn evenly from one range; else a piece is drawn first, as with ranks."""
    return not isinstance(keys, Zipf) and np.count_nonzero(keys.density(0.0).mass) == 1


def scatter_steps(keys: int) -> float:
    """How often a rank goes through the permutation until it falls into the keys, on average.

    It permutes the next power of 4 (workloads/zipf.py).
    """
    half = max(1, -(-(keys - 1).bit_length() // 2))
    return float(4.0**half / keys)


def split_instructions(costs: ErisCosts, workers: int) -> float:
    """Instructions of finding a command's target, and of putting it into that one's buffer."""
    counts = costs.instructions
    points = costs.facts.route if costs.facts is not None else ()
    if points:
        targets = np.log([float(point.targets) for point in points])
        times = [point.time.value for point in points]
        rate = float(costs.unscaled.instructions_per_s[costs.first_node or 0])
        return float(np.interp(np.log(workers), targets, times)) * rate
    return table_levels(workers) * counts.route_level + counts.route_split


def routing_costs(
    costs: ErisCosts, system: ErisSystem, workers: int, phase: PhaseState | None = None
) -> RoutingCosts:
    """The costs where so many workers own partitions.

    ``phase``: whose operations by key are made; by default one, its keys drawn evenly.
    """
    counts = costs.instructions
    generate, shares = counts.generate, np.ones(1)
    if phase is not None:
        generate = making(counts, phase)
        by_key = [one.share for one in phase.asked if one.keys is not None]
        shares = np.array(by_key or [1.0])
    commands = system.commands_per_round(workers)
    together = min(system.batch, commands)
    executed = 0.0  # batches; where they cost nothing, they need no counting
    if counts.batch_executed:
        executed = batches_per_command(commands, system.batch, workers, shares)
    groups = extra_groups(commands, shares)
    answer_lines = system.result_size.value / LINE_BYTES
    return RoutingCosts(
        issue=generate
        + counts.batch / together
        + split_instructions(costs, workers)
        + (counts.route_split if answer_lines else 0.0),
        receive=counts.receive + groups * counts.group,
        batch_executed=counts.batch_executed,
        round=counts.round,
        looped=counts.batch_executed * executed + counts.round / commands,
        flush_fixed=counts.flush_fixed,
        flush_line=counts.flush_line,
        lines=system.command_size.value / LINE_BYTES,
        answer_lines=answer_lines,
        part=counts.part,
    )


def under_one_header(system: ErisSystem, workers: int) -> int:
    """Commands made together that stand under one header where all go to one target.

    Those of a batch, where each target gets many of one; else of all batches of a round.
    """
    commands = system.commands_per_round(workers)
    separate = system.batch >= BATCH_PER_TARGET_MIN * workers
    return min(system.batch, commands) if separate else commands


def part_headers(together: int, buffer_commands: int, shares: Floats) -> Floats:
    """Headers per command under which a part of what was made ``together`` comes, (...,).

    ``shares`` (...,): of all commands, those of an operation that go to a target. What fills a
    buffer is no part, as the next is as long; behind full buffers there is one of the rest, unless
    that is nothing, or all commands went there.
    """

    found, place = np.unique(shares, return_inverse=True)
    each = _part_headers(together, buffer_commands, tuple(found.tolist()))
    return np.array(each)[place].reshape(shares.shape)


# What is counted does not depend on the machine's facts: what-ifs and calibrations ask again.
@lru_cache(maxsize=CACHED_MAX)
def _part_headers(
    together: int, buffer_commands: int, shares: tuple[float, ...]
) -> tuple[float, ...]:
    """Part of what was made together is neither nothing, nor full buffers, nor all."""
    part = binomial_parts(together, buffer_commands, _chances(shares))[2]
    if together % buffer_commands:
        part = part - np.array(shares) ** together
    return tuple((part / together).tolist())


def _chances(shares: tuple[float, ...]) -> Floats:
    """Rounded shares may add up to a little more than 1."""
    return np.minimum(shares, 1.0)


def extra_groups(commands: int, shares: Floats) -> float:
    """Of so many ``commands`` in a round, operations beyond the first, per command."""
    present = 1.0 - (1.0 - shares / shares.sum()) ** commands
    return max(float(present.sum()) - 1.0, 0.0) / commands


def batches_per_command(commands: int, batch: int, workers: int, shares: Floats) -> float:
    """Batches that a worker executes, per command, where all make so many ``commands`` in a round
    and send them evenly to all ``workers``; those of each operation, with its part of ``shares``
    (K,), are batches of their own.

    As with flushes: on average ceil(N / batch) a round, N of all commands that all made.
    """
    parts = shares / shares.sum() / workers
    return workers * flushes_per_command(workers * commands, batch, parts)


def passed_on_per_flush(system: ErisSystem) -> float:
    """Lines that pass from one flush to the next: that of the descriptor, and the one that the ends
    of two flushes share, unless the second begins with a line of its own.
    """
    command_bytes = round(system.command_size.value)
    return 2.0 - math.gcd(command_bytes, int(LINE_BYTES)) / LINE_BYTES


def flushes_per_command(commands: int, buffer_commands: int, shares: Floats) -> float:
    """Flushes per command of a worker that makes so many ``commands`` in a round of its loop.

    ``shares`` (T,): the part of its commands that goes to each target. A buffer is flushed when it
    is full, and whatever it holds when the loop begins again: of N commands, binomially
    distributed, ceil(N / buffer) times.
    """
    return _flushes_to(commands, buffer_commands, shares)[0]


def flush_square(commands: int, buffer_commands: int, shares: Floats) -> float:
    """Mean square of the commands of a flush, likewise."""
    flushes, squares = _flushes_to(commands, buffer_commands, shares)
    return squares / flushes


def _flushes_to(commands: int, buffer_commands: int, shares: Floats) -> tuple[float, float]:
    found, times = np.unique(shares[shares > 0], return_counts=True)
    return _flushes(commands, buffer_commands, tuple(found.tolist()), tuple(times.tolist()))


@lru_cache(maxsize=CACHED_MAX)
def _flushes(
    commands: int, buffer_commands: int, shares: tuple[float, ...], targets: tuple[int, ...]
) -> tuple[float, float]:
    """Flushes and the squares of their commands, per command; so many ``targets`` get each of the
    ``shares``.
    """
    flushes, squares, _ = binomial_parts(commands, buffer_commands, _chances(shares))
    return float(flushes @ targets) / commands, float(squares @ targets) / commands


def retries(costs: ErisCosts, node: Ints, flushed_per_s: float) -> float:
    """How often a flush finds that its buffer's descriptor has changed while it came, where so many
    flushes a second reach each of the workers on ``node`` (A,)."""
    if costs.implementation.held_descriptor:
        return 0.0
    line_s = costs.hand_overs.line_s
    part = np.bincount(node, minlength=len(line_s)) / len(node)
    changed = DESCRIPTOR_CHANGES * flushed_per_s * float(part @ line_s @ part)
    return math.expm1(min(changed, 1.0))


def table_levels(partitions: int) -> int:
    """Levels of the partition table's tree over so many partitions."""
    levels, room = 1, TABLE_FANOUT
    while room < partitions:
        levels, room = levels + 1, room * TABLE_FANOUT
    return levels

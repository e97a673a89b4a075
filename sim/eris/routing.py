"""What routing costs in ERIS, command by command: the same for every plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc

from ..costs import LINE_BYTES, CostModel
from ..system import ErisSystem

Floats = npt.NDArray[np.float64]

# A node of the partition table's CSB+-tree: a cache line with 7 bounds and a pointer.
TABLE_FANOUT = 8


@dataclass(frozen=True)
class RoutingCosts:
    """Instructions, and cache lines, of a command on its way.

    ``issue``: make it, look its target up, append it to the outgoing buffer. ``receive``: take it
    from the incoming buffer. ``flush_fixed``: of a flush; ``flush_line``: for each line of it.
    ``lines``, ``answer_lines``: of a command, and of what is sent back for it.
    """

    issue: float
    receive: float
    flush_fixed: float
    flush_line: float
    lines: float
    answer_lines: float


def routing_costs(costs: CostModel, system: ErisSystem, workers: int) -> RoutingCosts:
    """The costs where so many workers own partitions."""
    counts = costs.instructions
    answer_lines = system.result_size.value / LINE_BYTES
    splits = 2 if answer_lines else 1
    return RoutingCosts(
        issue=counts.generate
        + table_levels(workers) * counts.route_level
        + splits * counts.route_split,
        receive=counts.receive,
        flush_fixed=counts.flush_fixed,
        flush_line=counts.flush_line,
        lines=system.command_size.value / LINE_BYTES,
        answer_lines=answer_lines,
    )


def flushes_per_command(commands: int, buffer_commands: int, shares: Floats) -> float:
    """Flushes per command of a worker that makes so many ``commands`` in a round of its loop.

    ``shares`` (T,): the part of its commands that goes to each target. A buffer is flushed when it
    is full, and whatever it holds when the loop begins again: of N commands, binomially
    distributed, ceil(N / buffer) times. The mean of that is the sum of P(N > k * buffer), k >= 0.
    """
    found, times = np.unique(shares[shares > 0], return_counts=True)
    most = commands * found + 8.0 * np.sqrt(commands * found) + buffer_commands
    total = 0.0
    for k in range(int(np.minimum(most, commands).max() // buffer_commands) + 1):
        if k * buffer_commands < commands:
            total += float(times @ bdtrc(k * buffer_commands, commands, found))
    return total / commands


def table_levels(partitions: int) -> int:
    """Levels of the partition table's tree over so many partitions."""
    levels, room = 1, TABLE_FANOUT
    while room < partitions:
        levels, room = levels + 1, room * TABLE_FANOUT
    return levels

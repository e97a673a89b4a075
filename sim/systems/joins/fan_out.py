"""Numbers of partitions into which operators divide rows: over the network, and then in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....topologies import Machine
from ...machine.costs import LINE_BYTES as LINE_BYTES
from .spec import BUFFERED_BY_PARTITION, JoinSystem, Operator, last_cache_bytes, own_cache_bytes

FINAL_MAX = 65_536  # partitions of all nodes: more are not distinguished


@dataclass(frozen=True)
class FanOut:
    """``network``: partitions that rows are sent in, partition p to node p mod n; ``final``: those
    that are joined, in all; ``passes`` over rows in a node's memory, from the ones to the others.
    """

    network: int
    final: int
    passes: int


def buffers_fit(system: JoinSystem, machine: Machine) -> int:
    """How many partitions over the network the last-level cache of each node has buffers for."""
    fits = []
    for position in system.positions(machine):
        each = system.workers_of(machine, position) * system.send_buffers * system.buffer.value
        fits.append(last_cache_bytes(machine.nodes[position]) // each)
    return int(min(fits))


def fan_out(system: JoinSystem, machine: Machine, operator: Operator, table_bytes: float) -> FanOut:
    """Of an operator; ``table_bytes``: what a partition has of this much has to fit in a core's own
    cache: the smaller table, or all groups. Powers of two of partitions a node.
    """
    positions = system.positions(machine)
    n = len(positions)
    own = min(own_cache_bytes(machine.nodes[position]) for position in positions)
    needed = n * _power_of_two(table_bytes / n / own)
    final = min(needed, n * _power_of_two_below(FINAL_MAX / n))
    if system.layout == "host":  # as the engine does: all partitions at once, in powers of two
        final = max(_power_of_two(final), 2)
        return FanOut(final if operator in BUFFERED_BY_PARTITION else n, final, 0)
    network = n
    if operator in BUFFERED_BY_PARTITION:
        most = n * _power_of_two_below(max(buffers_fit(system, machine) / n, 1.0))
        network = min(final, most)
        if system.partitions is not None and operator == system.operator:
            network = system.partitions
            final = network * max(1, math.ceil(final / network))
    # A pass in memory has a line of each partition as its buffer, in half of the own cache.
    most_a_pass = max(_power_of_two_below(own / LINE_BYTES / 2.0), 2)
    left = final / network
    passes = math.ceil(math.log(left) / math.log(most_a_pass) - 1e-9) if left > 1 else 0
    return FanOut(network, final, passes)


def _power_of_two(value: float) -> int:
    return 1 << max(math.ceil(math.log2(max(value, 1.0))), 0)


def _power_of_two_below(value: float) -> int:
    return 1 << max(math.floor(math.log2(max(value, 1.0))), 0)

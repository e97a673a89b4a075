"""What ERIS's cost model makes of single figures: routed commands, keys of an index."""

from __future__ import annotations

from ....sim.machine.costs import LINE_BYTES
from ....sim.systems.eris.costs import ErisCosts
from ....sim.systems.eris.index import tree_of
from ....sim.systems.eris.routing import split_instructions
from ....topologies.machine import Machine
from ....topologies.measurements import Parameters
from ....workloads.schema import DataObject
from .engine_steps import COMMAND_BYTES, HEADER_BYTES


def routing_s(costs: ErisCosts, targets: int, buffer_bytes: float) -> float:
    """Core time of a command that is routed: the table's tree, the buffer, its part of a flush."""
    counts = costs.instructions
    commands = (buffer_bytes - HEADER_BYTES) / COMMAND_BYTES
    instructions = (
        split_instructions(costs, targets)
        + counts.flush_fixed / commands
        + counts.flush_line * buffer_bytes / LINE_BYTES / commands
    )
    return float(costs.core_s(instructions)[costs.first_node or 0])


def routing_measured_s(machine: Machine, given: Parameters) -> float | None:
    """The same, of a measurement with these parameters; None where they do not say enough."""
    if given.targets is None or given.buffer is None:
        return None
    return routing_s(ErisCosts(machine), given.targets, given.buffer.value)


def key_bytes(stored: DataObject) -> float:
    """Of a key of an index its entry, and its share of the tree's nodes."""
    return tree_of(stored, stored.value_size.value).bytes_per_key

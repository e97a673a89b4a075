"""What fails while queries are answered: a scenario's ``system.faults``."""

from collections.abc import Sequence
from typing import Literal

from ....inputs import DescriptionError
from ....topologies import Machine
from ...planes.plane import Change
from .. import faults as cores
from ..faults import CoreFault
from ..fields import Whole, node_positions
from .commands import SwitchNode


class NodeFault(CoreFault):
    """The cores of ``node`` stop at the time ``at`` and go on after ``lasts``, or never. Pinned
    workers there end the task that they are at, and those that wait are queued at the nearest node
    that runs; threads that the operating system moves go on where else they may. What lies in the
    node's memory can be read on.
    """

    kind: Literal["stop"]
    node: Whole


def changes_of(faults: Sequence[NodeFault], machine: Machine) -> tuple[Change, ...]:
    """By time; of nodes that the machine has."""
    at = node_positions(machine)
    return cores.changes_of(faults, lambda fault, begins: SwitchNode(at[fault.node], not begins))


def check_faults(faults: Sequence[NodeFault], machine: Machine, workers: Sequence[int]) -> None:
    """Of ``workers`` at these positions. Raises DescriptionError."""
    known = [machine.nodes[position].id for position in workers]
    cores.check_faults(faults, known, lambda fault: [fault.node])
    running = {*workers}
    for change in changes_of(faults, machine):
        running ^= {change.command.node}
        if not running:
            when = f"at {change.event.time_s:g} s"
            raise DescriptionError(("faults",), f"no workers are left {when}: expected some")

"""What fails while queries are answered: a scenario's ``system.faults``."""

from collections.abc import Sequence
from typing import Literal

from ....inputs import DescriptionError, Strict
from ....inputs.quantities import Duration
from ....topologies import Machine
from ...planes.outcome import ControlEvent
from ...planes.plane import Change
from ..fields import Whole
from .commands import SwitchNode


class NodeFault(Strict):
    """The cores of ``node`` stop at the time ``at`` and go on after ``lasts``, or never. Pinned
    workers there end the task that they are at, and those that wait are queued at the nearest node
    that runs; threads that the operating system moves go on where else they may. What lies in the
    node's memory can be read on.
    """

    kind: Literal["stop"]
    node: Whole
    at: Duration
    lasts: Duration | None = None

    @property
    def subject(self) -> str:
        """What fails, in words."""
        return f"node {self.node}"


def changes_of(faults: Sequence[NodeFault], machine: Machine) -> tuple[Change, ...]:
    """By time; of nodes that the machine has."""
    positions = {node.id: position for position, node in enumerate(machine.nodes)}
    found: list[Change] = []
    for fault in faults:
        at_s, position = fault.at.value, positions[fault.node]
        event = ControlEvent(at_s, "fault", f"the cores of {fault.subject} stop")
        found.append(Change(event, SwitchNode(position, False)))
        if fault.lasts is not None:
            event = ControlEvent(at_s + fault.lasts.value, "recovery", f"{fault.subject} is back")
            found.append(Change(event, SwitchNode(position, True)))
    return tuple(sorted(found, key=lambda one: (one.event.time_s, not one.command.runs)))


def check_faults(faults: Sequence[NodeFault], machine: Machine, workers: Sequence[int]) -> None:
    """Of ``workers`` at these positions. Raises DescriptionError."""
    running = {*workers}
    known = [machine.nodes[position].id for position in workers]
    for index, fault in enumerate(faults):
        if fault.node not in known:
            raise DescriptionError(
                ("faults", index, "node"),
                f"no workers on node {fault.node}: expected one of {', '.join(map(str, known))}",
            )
    for change in changes_of(faults, machine):
        command, when = change.command, f"at {change.event.time_s:g} s"
        if command.runs == (command.node in running):
            what = f"node {machine.nodes[command.node].id} stops while it is stopped"
            raise DescriptionError(("faults",), f"{what}, {when}: expected one fault at a time")
        running ^= {command.node}
        if not running:
            raise DescriptionError(("faults",), f"no workers are left {when}: expected some")

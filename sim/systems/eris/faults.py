"""What happens to the workers of ERIS, and when: a scenario's ``system.faults``."""

from collections.abc import Sequence
from math import inf
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ....inputs import DescriptionError
from ....topologies import Machine
from ...kernel.arrays import Ints
from ...planes.plane import Change
from .. import faults as cores
from ..faults import CoreFault
from ..fields import Whole, node_positions
from .commands import SetPace

SLOWEST = 1_000.0
# To the flow plane, where others need not wait for it, who has stopped is slower than this.
STOPPED = 1e9


class WorkerFault(CoreFault):
    """Of all workers of ``node``, or of one ``worker``; these are counted from 0, node by node."""

    worker: Whole | None = None

    @property
    def subject(self) -> str:
        return super().subject if self.worker is None else f"worker {self.worker}"

    @property
    def effect(self) -> str:
        return f"{self.subject} stops"

    @property
    def pace(self) -> float:
        """So many times as long its workers take meanwhile; without end where they stop."""
        return inf


class StopFault(WorkerFault):
    """Its workers stop, each after the round of its loop, or the batch, that it is at. What was
    sent to them waits, and their own clients, too.
    """

    kind: Literal["stop"]


class SlowFault(WorkerFault):
    """Its workers take ``factor`` times as long, as another program takes part of their cores."""

    kind: Literal["slow"]
    factor: Annotated[float, Field(gt=1, le=SLOWEST, allow_inf_nan=False)]

    @property
    def effect(self) -> str:
        return f"{self.subject} takes {self.factor:g} times as long"

    @property
    def pace(self) -> float:
        return self.factor


ErisFault = Annotated[StopFault | SlowFault, Field(discriminator="kind")]


def changes_of(faults: Sequence[WorkerFault], machine: Machine, nodes: Ints) -> tuple[Change, ...]:
    """By time; of workers on ``nodes`` (A,), by position."""
    return cores.changes_of(
        faults,
        lambda fault, begins: SetPace(
            _workers(fault, machine, nodes), fault.pace if begins else 1.0
        ),
    )


def _workers(fault: WorkerFault, machine: Machine, nodes: Ints) -> tuple[int, ...]:
    if fault.worker is not None:
        return (fault.worker,)
    assert fault.node is not None
    return tuple(np.flatnonzero(nodes == node_positions(machine)[fault.node]).tolist())


def check_faults(faults: Sequence[WorkerFault], machine: Machine, nodes: Ints) -> None:
    """Of workers on ``nodes`` (A,), by position. Raises DescriptionError."""
    for index, fault in enumerate(faults):
        if (fault.node is None) == (fault.worker is None):
            raise DescriptionError(("faults", index), "expected 'node' or 'worker', one of the two")
        if fault.worker is not None and fault.worker >= len(nodes):
            raise DescriptionError(
                ("faults", index, "worker"),
                f"there is no worker {fault.worker}: expected 0 to {len(nodes) - 1}",
            )
    known = [machine.nodes[position].id for position in np.unique(nodes)]
    cores.check_faults(faults, known, lambda fault: _workers(fault, machine, nodes))

"""What happens to the workers of ERIS, and when: a scenario's ``system.faults``."""

from collections.abc import Sequence
from math import inf
from typing import Annotated, Literal

from pydantic import Field

from ....inputs import DescriptionError
from ..faults import CoreFault
from ..fields import Whole
from .commands import SetPace

SLOWEST = 1_000.0
# To the flow plane, where others need not wait for it, who has stopped is slower than this.
STOPPED = 1e9


class WorkerFault(CoreFault):
    """Of all workers of ``node``, or of one ``worker``; these are counted from 0, node by node.

    They ``stop``, each after the round of its loop, or the batch, that it is at: what was sent to
    them waits. Or they are ``slow``, and take ``factor`` times as long.
    """

    kind: Literal["stop", "slow"]
    worker: Whole | None = None
    factor: Annotated[float, Field(gt=1, le=SLOWEST, allow_inf_nan=False)] | None = None

    @property
    def subject(self) -> str:
        return super().subject if self.worker is None else f"worker {self.worker}"

    @property
    def effect(self) -> str:
        takes = "stops" if self.factor is None else f"takes {self.factor:g} times as long"
        return f"{self.subject} {takes}"

    def workers(self, nodes: Sequence[int]) -> tuple[int, ...]:
        """Of workers on ``nodes`` (A,), by id."""
        return tuple(k for k, node in enumerate(nodes) if node == self.node or k == self.worker)

    def command(self, nodes: Sequence[int], begins: bool) -> SetPace:
        """What it does to these workers, or that it is over."""
        return SetPace(self.workers(nodes), (self.factor or inf) if begins else 1.0)

    def check(self, workers: int) -> None:
        """Of so many. Raises DescriptionError, its place counted from the fault."""
        if (self.node is None) == (self.worker is None):
            raise DescriptionError((), "expected 'node' or 'worker', one of the two")
        if (self.factor is None) == (self.kind == "slow"):
            expected = "a factor" if self.factor is None else "no factor"
            raise DescriptionError((), f"{self.kind}: expected {expected}")
        if self.worker is not None and self.worker >= workers:
            raise DescriptionError(
                ("worker",), f"there is no worker {self.worker}: expected 0 to {workers - 1}"
            )

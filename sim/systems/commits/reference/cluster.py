"""Clients and servers on a network: their own time, and the trace of what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._kernel import MessageCost, ProcessorSetup
from ....machine.reference.message_path import MessagePath, Place, Process
from ..history import MESSAGE, Row


class Cluster(MessagePath):
    """The machines, and what clients and nodes on them do."""

    def __init__(
        self,
        machines: int,
        costs: Mapping[str, tuple[MessageCost, ...]],
        types: tuple[str, ...],
        processors: ProcessorSetup | None = None,
    ) -> None:
        super().__init__(machines, costs, processors)
        self.types = {name: index for index, name in enumerate(types)}
        self.trace: list[Row] = []

    def log(self, kind: int, client: int, transaction: int, a: int, b: int = 0) -> None:
        """Adds a row to the trace."""
        self.trace.append((self.env.now, kind, client, transaction, a, b))

    def note(self, kind: str, sender: Place, receiver: Place) -> None:
        """Traces the message."""
        self.log(MESSAGE, sender.number, receiver.number, self.types[kind])

    def give_way(self, place: Place) -> None:
        """On shared processors, lets others run first, where that is how places do it."""
        processors = self.shared(place)
        if processors is not None and processors.setup.gives_way:
            processors.give_way(place.process)

    def compute(self, place: Place, ps: int) -> Process:
        """The place works; then a place that has stopped goes no further."""
        if ps and self.shared(place) is None:
            yield self.env.timeout(ps * place.factor)
        elif ps:
            yield self.work(place, ps)
        if place.stopped:
            yield self.never

    def pause(self, place: Place, ps: int) -> Process:
        """The place's own time passes; then a place that has stopped goes no further."""
        processors = self.shared(place)
        if ps and processors is not None:
            ps *= place.factor
            awake_ps = processors.setup.awake_ps
            if ps > 2 * awake_ps:
                yield self.env.timeout(ps - awake_ps)
                ps = awake_ps
            self.give_way(place)
            if ps:
                yield processors.work(place.process, ps)
        elif ps:
            yield self.env.timeout(ps * place.factor)
        elif processors is not None and place.process.gives_way:
            # Others run first: what comes next begins when the place runs again.
            yield processors.work(place.process, 0)
        if place.stopped:
            yield self.never

    def together(self, parts: list[Process]) -> Process:
        """Runs all parts at once, waits for the last of them, and returns what each returned."""
        results: list[Any] = [None] * len(parts)
        done = self.env.event()
        left = len(parts)

        def run(index: int, part: Process) -> Process:
            nonlocal left
            results[index] = yield from part
            left -= 1
            if left == 0:
                done.succeed()

        for index, part in enumerate(parts):
            self.env.process(run(index, part))
        if parts:
            yield done
        return results

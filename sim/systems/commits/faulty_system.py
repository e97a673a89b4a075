"""The part of a scenario of commits that says what fails, and its checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ....inputs import DescriptionError
from ....topologies import Machine
from ..descriptor import SystemSpec
from .fault_spec import ClientFault, Fault, Retransmission, ServerStop


class FaultySystem(SystemSpec):
    """A system on a cluster whose servers stop, paths fail and clients die.

    ``faults``: which, and when. ``retransmission``: when what was lost is sent again; by default as
    the transport does.
    """

    faults: Annotated[tuple[Fault, ...], Field(max_length=1_000)] = ()
    retransmission: Retransmission | None = None

    @model_serializer(mode="wrap")
    def _without_no_faults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A scenario without faults says nothing of them, as before there were any."""
        plain: dict[str, Any] = handler(self)
        unsaid = [name for name in ("faults", "retransmission") if not getattr(self, name)]
        return {name: value for name, value in plain.items() if name not in unsaid}

    @model_validator(mode="after")
    def _faults_fit(self) -> FaultySystem:
        system: Any = self
        if self.retransmission is not None and not self.faults:
            raise DescriptionError(
                ("retransmission",), "nothing is lost without faults: expected some"
            )
        self._check_overlaps()
        dying = [death.client for death in system.deaths]
        for index, fault in enumerate(self.faults):
            place = ("faults", index, "client")
            if not isinstance(fault, ClientFault):
                if system.layout == "host":
                    raise DescriptionError(
                        (*place[:2], "kind"), "layout host: expected client, as there is no network"
                    )
                continue
            if fault.client >= system.clients:
                raise DescriptionError(
                    place,
                    f"client {fault.client} does not exist: expected at most {system.clients - 1}, "
                    "as they count from 0",
                )
            if fault.client in dying:
                raise DescriptionError(place, f"client {fault.client} dies twice")
            dying.append(fault.client)
        self._check_lease(system)
        return self

    def _check_overlaps(self) -> None:
        """A server does not stop while it is stopped."""
        ends: dict[int, float] = {}
        stops = [(k, f) for k, f in enumerate(self.faults) if isinstance(f, ServerStop)]
        stops.sort(key=lambda pair: 0.0 if pair[1].at is None else pair[1].at.value)
        for index, stop in stops:
            begins_s = 0.0 if stop.at is None else stop.at.value
            if begins_s <= ends.get(stop.server, -1.0):
                raise DescriptionError(
                    ("faults", index, "server"),
                    f"node {stop.server} would stop while it is stopped: expected stops that do "
                    "not overlap, or one with a rate",
                )
            once = stop.at is not None and stop.lasts is not None
            ends[stop.server] = begins_s + stop.lasts.value if once and stop.lasts else math.inf

    def _check_lease(self, system: Any) -> None:
        lasting = any(not isinstance(fault, ClientFault) for fault in self.faults)
        if not lasting or system.lease is None:
            return
        why = "where messages may take longer than a lease, and fencing undoes"
        if system.versions < 2:
            raise DescriptionError(("versions",), f"expected at least 2 {why}")
        if system.send_queue != 1:
            raise DescriptionError(("send_queue",), f"expected 1 {why}")

    def check_faults(self, machine: Machine, positions: Sequence[int], servers: int) -> None:
        """Raises DescriptionError for what is at none of these nodes; servers come first."""
        system: Any = self
        ids = [machine.nodes[position].id for position in positions]
        for index, fault in enumerate(self.faults):
            try:
                fault.check(ids[:servers] if fault.kind == "stop" else ids, system.architecture)
            except DescriptionError as error:
                raise DescriptionError(("faults", index, *error.place), str(error)) from None

    def check_horizon(self, played_s: float) -> None:
        """Refuses a fault after the end: it would do nothing, without a word."""
        for index, fault in enumerate(self.faults):
            if fault.at is not None and fault.at.value >= played_s:
                raise DescriptionError(
                    ("faults", index, "at"),
                    f"{fault.subject} fails at {fault.at.value:g} s, after the horizon: expected "
                    f"less than {played_s:g} s",
                )

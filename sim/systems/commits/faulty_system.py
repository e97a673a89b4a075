"""The part of a scenario of commits that says what fails, and its checks.

Roles of a machine's nodes in a commit system, and nodes that have none yet.
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from ....inputs import DescriptionError
from ....inputs.quantities import Duration, format_quantity
from ....topologies import Machine
from ..descriptor import SystemSpec
from ..fields import Whole, able_positions, listed_positions
from .fault_spec import (
    VERBS,
    ClientFault,
    ClockFault,
    Fault,
    PathFault,
    Retransmission,
    ServerFault,
)
from .parameters import RELIABLE_ONCE


class FaultySystem(SystemSpec):
    """A system on a cluster whose servers stop, paths fail and clients die.

    ``faults``: which, and when. ``retransmission``: when what was lost is sent again; by default as
    the transport does. ``replicas``: copies of each record on the server after its own, locked and
    written with it: none, or one. ``failover``: of a storage server that is stopped for so long,
    replicas answer, for good.
    """

    UNSAID: ClassVar[tuple[str, ...]] = ("faults", "retransmission", "replicas", "failover")

    faults: Annotated[tuple[Fault, ...], Field(max_length=1_000)] = ()
    retransmission: Retransmission | None = None
    replicas: Annotated[Whole, Field(le=1)] = 0
    failover: Duration | None = None

    @model_serializer(mode="wrap")
    def _without_no_faults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A scenario without faults says nothing of them, as before there were any."""
        plain: dict[str, Any] = handler(self)
        unsaid = [name for name in self.UNSAID if not getattr(self, name)]
        return {name: value for name, value in plain.items() if name not in unsaid}

    def _fits(self) -> None:
        system: Any = self
        if self.retransmission is not None and not self.faults:
            raise DescriptionError(
                ("retransmission",), "nothing is lost without faults: expected some"
            )
        self._check_overlaps()
        self._check_replicas()
        self.check_clients("faults", self.faults)
        for index, fault in enumerate(self.faults):
            if not isinstance(fault, ClientFault) and system.layout == "host":
                raise DescriptionError(
                    ("faults", index, "kind"),
                    "layout host: expected client, as there is no network",
                )
        self._check_lease(system)
        self._check_times(system)

    def check_clients(self, field: str, listed: tuple[Any, ...]) -> None:
        """Whether clients that ``listed`` ones name exist, and none is named twice."""
        system: Any = self
        seen: set[int] = set()
        for index, one in enumerate(listed):
            client = getattr(one, "client", None)
            if client is None:
                continue
            place = (field, index, "client")
            if client >= system.clients:
                raise DescriptionError(
                    place,
                    f"client {client} does not exist: expected at most {system.clients - 1}, as "
                    "they count from 0",
                )
            if client in seen:
                raise DescriptionError(place, f"client {client} is listed twice")
            seen.add(client)

    def _check_times(self, system: Any) -> None:
        """Whether what is late may come twice, and whether anybody goes by a clock."""
        once = system.architecture in RELIABLE_ONCE
        timeout = (self.retransmission or VERBS).timeout.value
        for index, fault in enumerate(self.faults):
            delay = fault.delay if isinstance(fault, PathFault) else None
            if once and delay is not None and delay.value > timeout:
                raise DescriptionError(
                    ("faults", index, "delay"),
                    "reliable RDMA delivers each message once, as adapters drop a second copy: "
                    f"expected at most the transport's timeout, {format_quantity(timeout, 'time')}",
                )
            goes = system.lease is not None or system.skip_after is not None
            if isinstance(fault, ClockFault) and system.architecture == "rsi" and not goes:
                raise DescriptionError(
                    ("faults", index, "kind"),
                    "nobody goes by a clock: expected lease or skip_after",
                )

    def _check_overlaps(self) -> None:
        """A server does not stop while it is stopped."""
        ends: dict[int, float] = {}
        stops = [(k, f) for k, f in enumerate(self.faults) if isinstance(f, ServerFault)]
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

    def _check_replicas(self) -> None:
        system: Any = self
        stops = any(isinstance(fault, ServerFault) for fault in self.faults)
        if not self.replicas:
            if self.failover is not None:
                raise DescriptionError(("failover",), "expected replicas: 1, which then answer")
            return
        if stops and self.failover is None:
            raise DescriptionError(
                ("failover",), "expected a time, after which replicas answer for a stopped server"
            )
        if system.layout == "host" or system.managers != "timestamp-node":
            where = "layout host" if system.layout == "host" else "managers on storage nodes"
            raise DescriptionError(
                ("replicas",), f"{where}: expected 0, or storage servers on nodes of their own"
            )
        if system.storage_threads != "pool":
            raise DescriptionError(("replicas",), "expected 0, or storage_threads: pool")

    def _check_lease(self, system: Any) -> None:
        lasting = any(not isinstance(fault, ClientFault) for fault in self.faults)
        if not lasting or system.lease is None:
            return
        why = "where messages may take longer than a lease, and fencing undoes"
        if system.versions < 2:
            raise DescriptionError(("versions",), f"expected at least 2 {why}")
        if system.send_queue != 1:
            raise DescriptionError(("send_queue",), f"expected 1 {why}")

    def check_faults(self, machine: Machine, roles: "Roles") -> None:
        """Raises DescriptionError for a fault of what is at none of the nodes in use, and for
        replicas without a server for them."""
        system: Any = self
        ids = [machine.nodes[position].id for position in roles.positions]
        timestamps = machine.nodes[roles.timestamps].id
        for index, fault in enumerate(self.faults):
            stops = isinstance(fault, ServerFault)
            servers = len({*roles.storage, roles.timestamps})
            try:
                fault.check(ids[:servers] if stops else ids, system.architecture)
            except DescriptionError as error:
                raise DescriptionError(("faults", index, *error.place), str(error)) from None
            lost = isinstance(fault, ServerFault) and fault.memory == "lost"
            if lost and timestamps in fault.nodes:
                raise DescriptionError(
                    ("faults", index, "memory"),
                    "without timestamps nobody goes on: expected kept, or a server of records",
                )
        if self.replicas and len(roles.storage) < 2:
            raise DescriptionError(
                ("replicas",), "a replica on its own server: expected 0, or more storage_nodes"
            )


@dataclass(frozen=True)
class Roles:
    """Positions of nodes in the machine's order: of the clients', the storage servers, and the
    timestamp server."""

    clients: tuple[int, ...]
    storage: tuple[int, ...]
    timestamps: int

    @property
    def positions(self) -> tuple[int, ...]:
        """Every node in use, once: storage servers, the timestamp server, the clients' nodes."""
        return tuple(dict.fromkeys((*self.storage, self.timestamps, *self.clients)))


class FreeNodes:
    """Nodes with cores that have no role yet."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._able = able_positions(machine, "storage_nodes")
        self._role: dict[int, str] = {}

    @property
    def left(self) -> int:
        """How many."""
        return len(self._able) - len(self._role)

    def take_listed(self, nodes: int | tuple[int, ...] | None, field: str) -> tuple[int, ...]:
        """The nodes of these ids; none where a count, or nothing, is given."""
        if nodes is None or isinstance(nodes, int):
            return ()
        positions = listed_positions(self.machine, nodes, field)
        for position in positions:
            if position in self._role:
                node_id = self.machine.nodes[position].id
                together = ", or layout together" if "client_nodes" in self._role.values() else ""
                raise DescriptionError(
                    (field, nodes.index(node_id)),
                    f"node {node_id} is also in {self._role[position]}: expected "
                    f"disjoint nodes{together}",
                )
        self._role.update(dict.fromkeys(positions, field))
        return positions

    def take(self, count: int, field: str, role: str | None = None) -> tuple[int, ...]:
        """So many of the first nodes that are left, for ``role``, by default that of ``field``,
        which is at fault where they are too few.
        """
        role = role or field
        left = [position for position in self._able if position not in self._role]
        if count > len(left):
            roles = Counter(self._role.values())
            taken = " and ".join(
                f"{nodes} {'is' if nodes == 1 else 'are'} {one}" for one, nodes in roles.items()
            )
            expected = [f"at most {len(left)}"] if left else []
            expected += [f"fewer {one}" for one, nodes in roles.items() if nodes > 1]
            expected.append("a machine with more nodes")
            raise DescriptionError(
                (field,),
                f"{count} wanted as {role}, and of the {len(self._able)} nodes with cores of "
                f"machine '{self.machine.name}' {taken or 'all are free'}: "
                f"expected {' or '.join(expected)}",
            )
        self._role.update(dict.fromkeys(left[:count], role))
        return tuple(left[:count])

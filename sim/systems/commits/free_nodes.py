"""Roles of a machine's nodes in a commit system, and nodes that have none yet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ....inputs import DescriptionError
from ....topologies import Machine
from ..fields import able_positions, listed_positions


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
                index = () if field == "timestamp_node" else (nodes.index(node_id),)
                together = ", or layout together" if "client_nodes" in self._role.values() else ""
                raise DescriptionError(
                    (field, *index),
                    f"node {node_id} is also in {self._role[position]}: expected "
                    f"disjoint nodes{together}",
                )
        self._role.update(dict.fromkeys(positions, field))
        return positions

    def take(self, count: int, field: str, role: str | None = None) -> tuple[int, ...]:
        """So many of the first nodes that are left, for ``role``, by default that of ``field``,
        which is at fault where they are too few.
        """
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
                f"{count} wanted, and of the {len(self._able)} nodes with cores of machine "
                f"'{self.machine.name}' {taken or 'all are free'}: "
                f"expected {' or '.join(expected)}",
            )
        self._role.update(dict.fromkeys(left[:count], role or field))
        return tuple(left[:count])

"""Nodes of a machine that have no role in a commit system yet."""

from __future__ import annotations

from ....inputs import DescriptionError
from ....topologies import Machine
from ..fields import able_positions, listed_positions


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

    def take(self, count: int, field: str) -> tuple[int, ...]:
        """So many of the first nodes that are left."""
        left = [position for position in self._able if position not in self._role]
        if count > len(left):
            roles = list(self._role.values())
            several = [role for role in dict.fromkeys(roles) if roles.count(role) > 1]
            fewer = f", or fewer {' and '.join(several)}" if several else ""
            raise DescriptionError(
                (field,),
                f"machine '{self.machine.name}' has {len(self._able)} nodes with cores, of which "
                f"{len(self._role)} have another part: expected at most {len(left)}{fewer}",
            )
        self._role.update(dict.fromkeys(left[:count], field))
        return tuple(left[:count])

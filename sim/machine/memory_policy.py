"""Where Linux puts memory: policies of a process or an object, and nodes that are full.

Policies ``bind``, ``preferred``, ``interleave``, ``weighted`` and ``local`` are those of
``set_mempolicy(2)`` and ``numactl(8)``. A page that finds no room goes to the next node of the zone
list of the thread that touches it first (``build_zonelists`` and ``find_next_best_node`` of Linux's
``mm/page_alloc.c``): by SLIT distance, to which a node with processors adds 1, and one of a lower
number too; of equals, the one that was the first of its distance for fewer of the nodes before.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from ...inputs import DescriptionError, Strict
from ...inputs.names import Name
from ...topologies import Machine
from ..kernel.arrays import Flags, Floats
from .os_scheduler import firmware_distances

WEIGHT_MAX = 255  # of Linux, which keeps a byte for each node


def _ids(raw: Any) -> Any:
    ids = raw if isinstance(raw, (list, tuple)) else [raw]
    if not ids or any(isinstance(k, bool) or not isinstance(k, int) or k < 0 for k in ids):
        raise ValueError("expected node ids, such as 1 or [0, 1]")
    if len(set(ids)) < len(ids):
        raise ValueError("a node id is listed twice")
    return tuple(ids)


def _weights(raw: Any) -> Any:
    """``0:9,1:1`` and a mapping of node ids; or a list, in the order of the nodes."""
    if isinstance(raw, str):
        pairs = [part.split(":") for part in raw.split(",")]
        if any(len(pair) != 2 or not pair[0].strip().isdecimal() for pair in pairs):
            raise ValueError("expected weights by node id, such as 0:9,1:1")
        raw = {int(node): _number(weight) for node, weight in pairs}
    listed = isinstance(raw, (list, tuple))
    values = raw if listed else raw.values() if isinstance(raw, dict) else [None]
    if any(
        isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= WEIGHT_MAX
        for value in values
    ):
        raise ValueError(f"expected weights that are whole numbers from 0 to {WEIGHT_MAX}")
    if not any(values):
        raise ValueError("all weights are 0: expected at least one that is not")
    if listed:
        return tuple(raw)
    if any(not str(node).isdecimal() for node in raw):
        raise ValueError("expected weights by node id, such as {0: 9, 1: 1}")
    return {int(node): weight for node, weight in raw.items()}


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


class MemoryPolicy(Strict):
    """Where memory lies, in Linux's words.

    ``policy``: ``local``, on the node of the thread that touches it first; ``preferred``, on
    ``nodes`` while there is room; ``bind``, on ``nodes`` only, on the one nearest to the thread
    first; ``interleave``, page by page over ``nodes``; ``weighted``, likewise, so many pages at a
    time on each as ``weights`` say (by node id, or in the order of ``nodes``). ``nodes``: ids, with
    or without processors; all with memory by default. ``overflow``: whether what does not fit there
    goes to the next node, as ``local`` and ``preferred`` let it; without, it is refused.
    """

    policy: Literal["bind", "preferred", "interleave", "weighted", "local"]
    nodes: Annotated[tuple[int, ...], BeforeValidator(_ids)] | None = None
    weights: (
        Annotated[
            dict[int, int] | tuple[int, ...],
            BeforeValidator(_weights, json_schema_input_type=str | dict[str, int] | list[int]),
        ]
        | None
    ) = None
    overflow: bool = False

    def _fits(self) -> None:
        if self.policy in ("bind", "preferred") and self.nodes is None:
            raise ValueError(f"missing field 'nodes': what to {self.policy} to")
        if self.policy == "local" and self.nodes is not None:
            raise DescriptionError(("nodes",), "policy local: expected none")
        if (self.weights is None) == (self.policy == "weighted"):
            if self.weights is None:
                raise ValueError("missing field 'weights', such as {0: 9, 1: 1}")
            raise DescriptionError(("weights",), "only for policy weighted")
        if isinstance(self.weights, tuple) and self.nodes is not None:
            if len(self.weights) != len(self.nodes):
                raise DescriptionError(("weights",), f"expected {len(self.nodes)}, one a node")
        elif isinstance(self.weights, dict) and self.nodes is not None:
            raise DescriptionError(("nodes",), "weights by node say which: expected none")

    def shares(self, machine: Machine, first: int | None = None) -> Floats:
        """(n,) part of the pages that goes to each node while all have room.

        ``first``: position of the node of the thread that touches them, or None for threads of all
        nodes. Raises DescriptionError, below this field, for a node that does not have memory.
        """
        nodes, found = self._positions(machine), np.zeros(len(machine.nodes))
        if self.policy in ("interleave", "weighted"):
            found[nodes] = self._weight_of(machine, nodes)
        elif self.policy == "local" and first is None:
            found[[k for k in nodes if machine.nodes[k].cores] or nodes] = 1.0
        else:
            order = zone_list(machine, nodes[0] if first is None else first)
            found[min(nodes, key=order.index)] = 1.0
        return np.asarray(found / found.sum())

    def _positions(self, machine: Machine) -> list[int]:
        """Of the nodes that it names, or of all with memory."""
        able = memory_nodes(machine)
        field = "weights" if isinstance(self.weights, dict) else "nodes"
        ids = [*self.weights] if isinstance(self.weights, dict) else self.nodes
        if ids is None:
            return able
        position = {node.id: k for k, node in enumerate(machine.nodes)}
        for node in ids:
            if position.get(node) not in able:
                what = "has no memory" if node in position else "does not exist"
                listed = ", ".join(str(machine.nodes[k].id) for k in able)
                raise DescriptionError(
                    (field,),
                    f"node {node} of machine '{machine.name}' {what}: expected some of {listed}",
                )
        return [position[node] for node in ids]

    def _weight_of(self, machine: Machine, nodes: list[int]) -> list[float]:
        if self.weights is None:
            return [1.0] * len(nodes)
        values = [*self.weights.values()] if isinstance(self.weights, dict) else [*self.weights]
        if len(values) != len(nodes):
            raise DescriptionError(
                ("weights",),
                f"{len(values)} for {len(nodes)} nodes with memory of machine '{machine.name}': "
                "expected one for each",
            )
        return [float(value) for value in values]

    def overflows(self) -> bool:
        """Whether pages that find no room on the nodes go elsewhere."""
        return self.overflow or self.policy in ("local", "preferred")

    def may_use(self, machine: Machine) -> list[int]:
        """Positions of all nodes that pages may go to, beginning with those that it names."""
        own = self._positions(machine)
        if self.policy == "weighted":
            own = [k for k in own if self.shares(machine)[k] > 0]
        rest = [k for k in memory_nodes(machine) if k not in own]
        return own + rest if self.overflows() else own


class MemoryField(MemoryPolicy):
    """The memory of a system: a policy of the process, and of ``objects`` by name.

    Without ``policy``, objects that are not named lie as the system's ``placement`` says.
    """

    policy: Literal["bind", "preferred", "interleave", "weighted", "local"] | None = None  # type: ignore[assignment]
    objects: dict[Name, MemoryPolicy] = Field(default_factory=dict)

    def _fits(self) -> None:
        super()._fits()
        if self.policy is None:
            for field in ("nodes", "weights"):
                if getattr(self, field) is not None:
                    raise ValueError(f"missing field 'policy': what {field} are for")
            if not self.objects:
                raise ValueError("missing field 'policy'")

    def of(self, name: str) -> MemoryPolicy | None:
        """The policy of an object; None where none is said."""
        return self.objects.get(name) or (self if self.policy else None)

    def place(self, name: str) -> tuple[str, ...]:
        """Where in a scenario's system that policy stands."""
        return ("memory", "objects", name) if name in self.objects else ("memory",)

    def check_objects(self, known: Iterable[str]) -> None:
        """Raises DescriptionError for an object that is not there."""
        names = tuple(known)
        for name in self.objects:
            if name not in names:
                raise DescriptionError(
                    ("memory", "objects", name),
                    f"no such object: expected one of {', '.join(names)}",
                )


def memory_nodes(machine: Machine) -> list[int]:
    """Positions of the nodes with memory, of whatever size. Raises DescriptionError for none."""
    found = [k for k, node in enumerate(machine.nodes) if not node.memory_bytes <= 0]
    if not found:
        raise DescriptionError((), f"no node of machine '{machine.name}' has memory")
    return found


def zone_list(machine: Machine, position: int) -> list[int]:
    """Nodes with memory in the order in which Linux looks for a page for a thread of that node."""
    able = np.array(memory_nodes(machine))
    distance = firmware_distances(machine, range(len(machine.nodes)))
    with_cores = np.array([bool(machine.nodes[k].cores) for k in able])
    taken, found = np.zeros(len(able)), able
    for node in range(position + 1):
        far = distance[node, able]
        order = np.lexsort((taken, far + with_cores + (able < node), able != node))
        first = np.diff(far[order], prepend=distance[node, node]) != 0
        taken[order[first]] += 1
        found = able[order]
    return [int(k) for k in found]


class Room:
    """What is left of each node's memory as objects are placed, one after the other.

    ``moved``: a sentence for each object that did not fit where its policy puts it first.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        sizes = [float(node.memory_bytes) for node in machine.nodes]
        self.left = np.nan_to_num(np.maximum(sizes, 0.0), nan=np.inf)
        self.moved: dict[str, Floats] = {}

    def put(
        self,
        name: str,
        size: float,
        policy: MemoryPolicy,
        first: int | None = None,
        whole: float | None = None,
    ) -> Floats:
        """(n,) part of ``size`` bytes on each node, of an object of ``whole`` bytes.

        Raises DescriptionError where there is no room.
        """
        wanted, found = policy.shares(self.machine, first), np.zeros(len(self.left))
        most, rest = wanted > 0, size
        while rest > 1e-9 * size and (wanted > 0).any():
            wanted = wanted / wanted.sum()
            # Until the first of these nodes is full.
            fits = np.divide(self.left, wanted, out=np.full(len(wanted), np.inf), where=wanted > 0)
            step = min(rest, float(fits.min()))
            found, rest = found + step * wanted, rest - step
            self.left = self.left - step * wanted
            wanted = np.where(fits > step * (1 + 1e-12), wanted, 0.0)
            if not wanted.any() and rest > 1e-9 * size:
                wanted = self._next(policy, most, first)
        if rest > 1e-9 * size:
            raise DescriptionError((), self._refused(name, whole or size, policy))
        elsewhere = np.where(most, 0.0, found)
        if elsewhere.any():
            self.moved[name] = self.moved.get(name, 0.0) + elsewhere
        return np.asarray(found / size if size else policy.shares(self.machine, first))

    def _next(self, policy: MemoryPolicy, most: Flags, first: int | None) -> Floats:
        """(n,) 1 for the next node with room, 0 for all where there is none."""
        allowed = policy.may_use(self.machine)
        begin = int(np.flatnonzero(most)[0]) if first is None else first
        found = np.zeros(len(self.left))
        for k in zone_list(self.machine, begin):
            if k in allowed and self.left[k] > 0:
                found[k] = 1.0
                break
        return found

    def _refused(self, name: str, size: float, policy: MemoryPolicy) -> str:
        allowed = policy.may_use(self.machine)
        ids = ", ".join(str(self.machine.nodes[k].id) for k in allowed)
        held = sum(max(float(self.machine.nodes[k].memory_bytes), 0.0) for k in allowed)
        elsewhere = "" if policy.overflows() else ", or overflow: yes"
        return (
            f"object '{name}' of {size / 1e9:.4g} GB finds no room: nodes {ids} of machine "
            f"'{self.machine.name}' hold {held / 1e9:.4g} GB: expected a smaller one, other "
            f"nodes{elsewhere}"
        )

    def notes(self) -> list[str]:
        """A sentence for each object that did not fit where its policy puts it first."""
        return [
            f"memory: {name}: "
            + ", ".join(
                f"{amount / 1e9:.3g} GB went to node {self.machine.nodes[k].id}"
                for k, amount in enumerate(amounts)
                if amount > 0
            )
            + ", as the nodes before it in the zone list were full"
            for name, amounts in self.moved.items()
        ]


@contextmanager
def described_at(place: tuple[str | int, ...]) -> Iterator[None]:
    """Says of faults within where in the system they are."""
    try:
        yield
    except DescriptionError as failure:
        raise DescriptionError((*place, *failure.place), str(failure)) from None

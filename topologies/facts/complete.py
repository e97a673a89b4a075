"""A description with what its source does not tell filled in from the catalogue of facts."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...inputs import Quantity
from ...inputs.grouping import by_key
from ...inputs.number_sets import format_list
from ..build import build_machine
from ..machine import Floats, Machine, Node
from ..schema import Coherence, MachineDescription, NodeType, ProcessorIdentity
from .catalogue import Entry, find, guess_for, named, with_modules
from .joins import Joined, Situation, join
from .nodes import Place, memory_only, origin_of, with_cpus
from .schema import Guess

SLIT_LOCAL = 10
# Sockets that snoop each other over their own links: 8 of Xeon E7 and Opteron 8000, 16 of POWER.
SNOOPED_SOCKETS_MAX = 16


@dataclass(frozen=True)
class Completed:
    """The description, and lines for people: what was taken or guessed, and what is not known."""

    description: MachineDescription
    taken: tuple[str, ...]
    unknown: tuple[str, ...]


def complete(
    description: MachineDescription,
    processor: str | None = None,
    cores: int | None = None,
    modules: str | None = None,
) -> Completed:
    """``description`` with all that the catalogue knows and the source does not tell.

    What stands in the description stays. ``processor``: the name of its processors, where the
    source does not tell it; ``cores``: of one; ``modules``: of a socket. The result builds.
    Raises InputError where it is not in the catalogue.
    """
    added: tuple[str, ...] = ()
    if processor is not None:
        description = _named(known := description, named(processor, cores), processor)
        added = description.notes[len(known.notes) :]
    done = _Completer(description, build_machine(description), modules).completed()
    return replace(done, taken=(*added, *done.taken))


def _named(description: MachineDescription, entry: Entry, processor: str) -> MachineDescription:
    """With the processor's name, and its cores where they are unknown.

    A node is then a socket, or a part of one where latencies or the number of CPUs say so.
    """
    machine, groups, threads = build_machine(description), None, entry.threads_per_core
    kinds_with_cpus = [kind for kind in description.node_types.values() if kind.cores != 0]
    bare = all(kind.processor is None and not kind.caches for kind in kinds_with_cpus)
    if bare and all(kind.cores is None for kind in kinds_with_cpus):
        groups = sockets_by_latency(machine, entry)
    elif bare and (found := sockets_by_cpus(machine, entry)):
        groups, threads = found
    size = len(groups[0]) if groups else 1
    kinds = {}
    for name, kind in description.node_types.items():
        if kind.cores != 0:
            old = kind.processor or ProcessorIdentity()
            update: dict[str, object] = {
                "processor": old.model_copy(update={"model_name": processor})
            }
            if (kind.cores is None or groups) and entry.model.cores is not None:
                update |= {"cores": entry.model.cores // size, "threads_per_core": threads}
            kind = kind.model_copy(update=update)
        kinds[name] = kind
    changed: dict[str, object] = {"node_types": kinds}
    if groups is not None and all(g.id is not None and g.group is None for g in description.nodes):
        package = {machine.nodes[k].id: n for n, group in enumerate(groups) for k in group}
        changed["nodes"] = tuple(
            group.model_copy(update={"group": f"package{package[group.id]}"})
            if group.id in package
            else group
            for group in description.nodes
        )
        note = (
            f"By the processor's name, a socket is {size} node{'s' if size > 1 else ''}, and a "
            f"core has {threads} hardware thread{'s' if threads > 1 else ''}."
        )
        changed["notes"] = (*description.notes, note)
    return description.model_copy(update=changed)


@dataclass
class _Completer:
    description: MachineDescription
    machine: Machine
    modules: str | None = None
    unplaced: set[int] = field(default_factory=set)  # memory as near to several nodes with CPUs

    def completed(self) -> Completed:
        self.type_of = self.description.type_of_node()
        self.packages = self._packages()
        self.entries = {
            name: self._entry(kind.processor) for name, kind in self.description.node_types.items()
        }
        kinds = {
            name: self._filled(name, kind) for name, kind in self.description.node_types.items()
        }
        update: dict[str, object] = {"node_types": kinds}
        joined = self._joined(kinds)
        if joined is not None:
            update |= {
                "hubs": tuple(joined.hubs),
                "link_types": joined.link_types,
                "links": tuple(joined.links),
            }
        coherence = self._coherence()
        if coherence is not None:
            update["coherence"] = coherence
        taken = tuple(self._taken(joined, coherence))
        update["notes"] = (*self.description.notes, *taken)
        description = self.description.model_copy(update=update)
        build_machine(description)
        return Completed(description, taken, tuple(self._unknown(description)))

    def _entry(self, identity: ProcessorIdentity | None) -> Entry | Guess:
        found = find(identity)
        if found is None:
            return guess_for(identity)
        return found if self.modules is None else with_modules(found, self.modules)

    def _packages(self) -> dict[str, list[int]]:
        """Nodes with CPUs (or of which it is not known) by package; alone where it has none."""
        nodes = (node for node in self.machine.nodes if self._has_cpus(node))
        return by_key((node.group or f"node{node.id}", node.id) for node in nodes)

    def _has_cpus(self, node: Node) -> bool:
        return self.description.node_types[self.type_of[node.id]].cores != 0

    def _filled(self, name: str, kind: NodeType) -> NodeType:
        positions = [
            k for k, node in enumerate(self.machine.nodes) if self.type_of[node.id] == name
        ]
        if not positions or kind.cores is None:
            return kind
        if kind.cores == 0:
            drawn = [-_smallest(-self.machine.bandwidth_Bps[:, k], math.nan) for k in positions]
            return memory_only(
                kind,
                None if any(map(math.isnan, drawn)) else min(drawn),
                latency_known=bool(
                    (~np.isnan(self.machine.latency_ns[:, positions])).any(axis=0).all()
                ),
            )
        own = [(k, k) for k in positions]
        first = self.machine.nodes[positions[0]]
        place = Place(
            nodes_per_package=max(1, len(self.packages.get(first.group or f"node{first.id}", ()))),
            bandwidth_known=all(not math.isnan(self.machine.bandwidth_Bps[k]) for k in own),
            latency_known=all(not math.isnan(self.machine.latency_ns[k]) for k in own),
        )
        return with_cpus(kind, self.entries[name], place)

    def _main(self) -> Entry | Guess:
        """The entry of the first node with CPUs, whose links join the machine."""
        for node in self.machine.nodes:
            if self._has_cpus(node):
                return self.entries[self.type_of[node.id]]
        return guess_for(None)

    def _joined(self, kinds: Mapping[str, NodeType]) -> Joined | None:
        described, machine = self.description, self.machine
        if described.links or described.hubs or described.generate or len(machine.nodes) < 2:
            return None
        entry = self._main()
        measured = described.pair_bandwidth is not None and all(
            self._has_cpus(node) for node in machine.nodes
        )
        if not self.packages or (isinstance(entry, Guess) and measured):
            return None  # measured pairs say more than a guess about their links
        values = [self._figures(node, kinds) for node in machine.nodes if self._has_cpus(node)]
        local, node_Bps = values[0]
        return join(
            Situation(
                self.packages,
                self._distances(),
                local,
                node_Bps,
                {
                    node.id: (self._nearest(k), self._figures(node, kinds)[1])
                    for k, node in enumerate(machine.nodes)
                    if not self._has_cpus(node)
                },
            ),
            entry,
        )

    def _figures(self, node: Node, kinds: Mapping[str, NodeType]) -> tuple[Quantity, Quantity]:
        """Latency (s) and bandwidth of a node's memory: filled in, or from the tables of pairs."""
        memory = kinds[self.type_of[node.id]].memory
        k = self.machine.nodes.index(node)
        latency, bandwidth = memory.latency, memory.bandwidth
        if latency is None:
            ns = float(_smallest(self.machine.latency_ns[:, k], 100.0))
            latency = Quantity.exact(ns * 1e-9)
        if bandwidth is None:
            Bps = float(-_smallest(-self.machine.bandwidth_Bps[:, k], -20e9))
            bandwidth = Quantity.exact(Bps)
        return latency, bandwidth

    def _distances(self) -> dict[tuple[int, int], float]:
        slit, nodes = self.machine.slit, self.machine.nodes
        if slit is None:
            return {}
        return {
            # Nothing is nearer than a node's own memory, whatever firmware says.
            (a.id, b.id): float(max(min(slit[i, j], slit[j, i]), SLIT_LOCAL))
            for i, a in enumerate(nodes)
            for j, b in enumerate(nodes)
            if a.id < b.id
        }

    def _nearest(self, k: int) -> int:
        """The node with CPUs that is nearest to the k-th: by SLIT, tables of pairs, package."""
        machine = self.machine

        def nearness(other: int) -> tuple[float, ...]:
            node, own = machine.nodes[other], machine.nodes[k]
            return (
                machine.slit[other, k] if machine.slit is not None else 0.0,
                0.0 if not math.isnan(machine.bandwidth_Bps[other, k]) else 1.0,
                0.0 if own.group is not None and node.group == own.group else 1.0,
                abs(node.id - own.id),
            )

        with_cpus = [i for i, node in enumerate(machine.nodes) if self._has_cpus(node)]
        nearest = min(with_cpus, key=nearness)
        # By number alone is a guess.
        tied = [i for i in with_cpus if nearness(i)[:-1] == nearness(nearest)[:-1]]
        if len(tied) > 1:
            self.unplaced.add(machine.nodes[k].id)
        return machine.nodes[nearest].id

    def _coherence(self) -> Coherence | None:
        entry = self._main()
        if self.description.coherence or len(self.packages) < 2 or isinstance(entry, Guess):
            return None
        known, sockets = entry.processor.coherence, len(self.packages)
        if known.protocol == "snoop" and sockets > SNOOPED_SOCKETS_MAX:
            source = f"guessed: node controllers join {sockets} sockets, and keep directories"
            return Coherence(protocol="directory", source=source)
        if known.doubtful and any(len(nodes) > 1 for nodes in self.packages.values()):
            source = "several nodes per socket: cluster-on-die, in which firmware keeps a directory"
            return Coherence(protocol="directory", source=origin_of(entry).text(source))
        source = origin_of(entry).text(known.source)
        return known.model_copy(update={"source": source})

    def _taken(self, joined: Joined | None, coherence: Coherence | None) -> Iterator[str]:
        lines = []
        for name, entry in self.entries.items():
            if not self.description.node_types[name].cores:
                continue
            if isinstance(entry, Entry):
                lines.append(
                    f"Taken from the catalogue of facts, entry {entry.label} "
                    f"({entry.processor.title}): values whose source begins with 'catalogue'; "
                    "uncertain where it knows a range only."
                )
                if lacking := _lacking(entry, self.description.node_types[name], self.description):
                    lines.append(
                        f"Not known of this model, so its family's: {' and '.join(lacking)}."
                    )
            else:
                lines.append(
                    f"Guessed, as for {entry.title}: values whose source begins with 'guessed', "
                    "with wide ranges."
                )
        yield from dict.fromkeys(lines)
        for note in joined.notes if joined is not None else ():
            yield note[0].upper() + note[1:] + "."
        if self.unplaced:
            yield (
                "At which node memory without CPUs is attached is a guess, as its distances to "
                f"several are the same: {format_list(self.unplaced)}."
            )
        if coherence is not None and coherence.doubtful:
            yield (
                "Whether sockets snoop each other is chosen in firmware: assumed that they do; "
                "with a directory links carry less ('coherence' in the machine file)."
            )

    def _unknown(self, description: MachineDescription) -> Iterator[str]:
        machine, kinds = build_machine(description), description.node_types
        if any(kind.cores is None for kind in kinds.values()):
            said = next((k.processor.model_name for k in kinds.values() if k.processor), None)
            yield "cores and CPUs of the nodes " + (
                f"(the catalogue does not know the cores of '{said}': set --cores)"
                if said
                else "(set --processor)"
            )
        elif any(isinstance(self.entries[name], Guess) and kinds[name].cores for name in kinds):
            yield "which processor it is (set --processor)"
        if any(math.isnan(node.memory_bytes) for node in machine.nodes):
            yield "size of the memory"
        if any(kind.cores and not kind.caches for kind in kinds.values()):
            yield "caches"
        where = "between nodes" if len(machine.nodes) > 1 else "of the memory"
        for what, known in (
            (f"bandwidth {where}", description.pair_bandwidth),
            (f"latency {where}", description.pair_latency),
            ("latency under load", description.loaded_latency),
        ):
            if not known:
                yield f"measured {what}"


def _lacking(entry: Entry, kind: NodeType, described: MachineDescription) -> list[str]:
    """What neither the source nor the catalogue knows of a model."""
    found = []
    listed = any(group.cpus for group in described.nodes)
    if entry.model.cores is None and kind.threads_per_core > 1 and not listed:
        found.append("threads per core")
    if (
        entry.model.clock is None
        and kind.clock is None
        and entry.processor.clock.low < (entry.processor.clock.high)
    ):
        found.append("clock")
    last = entry.processor.last_level
    if entry.model.cache is None and not kind.caches and last and last.size.low < last.size.high:
        found.append("last-level cache")
    return found


def _smallest(values: Floats, missing: float) -> float:
    known = values[~np.isnan(values)]
    return float(known.min()) if known.size else missing


Groups = tuple[tuple[int, ...], ...]
"""Positions of nodes, by socket."""


# Intel MLC and ``numactl -H`` list nodes. Firmware may split a socket into several (cluster-on-die,
# sub-NUMA clusters, NPS2 and NPS4): then a node has a part of its cores, cache and channels.


def sockets_by_latency(machine: Machine, entry: Entry) -> Groups | None:
    """Sockets of several nodes, if measured latencies have two levels; None where they do not.

    Nodes of a socket add less to the latency than the middle between the catalogue's for another
    node of the socket and for another socket.
    """
    known, ns = entry.processor.latency, machine.latency_ns
    if known.neighbour is None or np.isnan(ns).any():
        return None
    far = known.remote or known.neighbour
    if known.remote is not None:
        limit_s = (known.neighbour.value + far.value) / 2 - known.local.value
        near = ns - np.diag(ns)[:, None] < limit_s * 1e9
    else:
        near = np.ones_like(ns, dtype=bool)
    near = near & near.T
    groups = tuple(dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in near))
    return groups if _are_sockets(groups, entry) else None


def sockets_by_cpus(machine: Machine, entry: Entry) -> tuple[Groups, int] | None:
    """Sockets by how many CPUs a node has, and hardware threads of a core; None if it is no part.

    Linux numbers second threads after all first ones: a node then has two runs of numbers.
    """
    lists = {node.cpus for node in machine.nodes if node.cpus}
    counts = {len(cpus) for cpus in lists}
    if len(counts) != 1 or entry.model.cores is None:
        return None
    gaps = all(cpus[-1] - cpus[0] + 1 > len(cpus) for cpus in map(sorted, lists))
    threads, each = entry.threads_per_core if gaps else 1, counts.pop()
    size, rest = divmod(entry.model.cores * threads, each)
    able = [k for k, node in enumerate(machine.nodes) if node.cpus]
    if rest or not size or len(able) % size:
        return None
    groups = tuple(tuple(able[k : k + size]) for k in range(0, len(able), size))
    if size == 1:
        return groups, threads
    slit = machine.slit
    for group in groups:
        others = [k for k in able if k not in group]
        if slit is None or not others:
            break
        if slit[np.ix_(group, group)].max() > slit[np.ix_(group, others)].min():
            return None
    return (groups, threads) if _are_sockets(groups, entry) else None


def _are_sockets(groups: Groups, entry: Entry) -> bool:
    size = len(groups[0])
    return (
        size in entry.processor.nodes_per_socket
        and size > 1
        and all(len(group) == size for group in groups)
        and len({k for group in groups for k in group}) == size * len(groups)
        and len(groups) <= entry.processor.sockets_max
    )

"""Linux' /sys: of this host, or saved as a folder or archive (as hwloc-gather-topology does).

The files are those of the kernel's ABI documents (sysfs-devices-node, sysfs-devices-system-cpu,
numaperf, numa memory-side caches), with the older names and formats that they replaced.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...inputs import InputError, Quantity
from ..schema import MachineDescription
from ..schema_types import NODES_MAX
from .inventory import Inventory, NodeFacts, Pair, machine_title, quantity
from .source import Source
from .sysfs_cpus import Cpus, read_cpus
from .tree import Tree

NODE_FOLDER = "sys/devices/system/node"
MEMORY = "proc/meminfo"
_NODES = r"node(\d{1,6})"

_ATTRIBUTES = (("ns", "time", "latency"), ("MB/s", "bandwidth", "bandwidth"))  # of reads


def recognises(source: Source) -> bool:
    """Any tree of files is a sysfs tree; whatever opened it made sure."""
    return source.tree is not None


def read(source: Source) -> MachineDescription:
    """The machine in the tree; raises InputError."""
    assert source.tree is not None
    return _Reader(source, source.tree).inventory().description()


@dataclass
class _Reader:
    source: Source
    tree: Tree

    def inventory(self) -> Inventory:
        cpus = read_cpus(self.tree)
        inventory = Inventory(
            self.source.machine,
            source=f"sysfs of {self.source.label()}",
            cores=cpus.cores,
            caches=cpus.caches,
        )
        ids = self._node_ids()
        if len(ids) > NODES_MAX:
            raise self.source.error(f"more than {NODES_MAX:,} nodes")
        if not ids:
            inventory.nodes = [NodeFacts(0, cpus.online, self._memory(MEMORY), "DRAM")]
            inventory.notes.append("The kernel reports no NUMA nodes: assumed to be one.")
        else:
            cpus_of = self._cpus_of(ids, cpus, inventory.notes)
            inventory.nodes = [self._node(n, own, len(ids) == 1) for n, own in cpus_of.items()]
            inventory.slit = self._slit(ids)
            if not self._read_tables(ids, frozenset(cpus_of), inventory):
                for node in cpus_of:
                    self._read_attributes(node, frozenset(cpus_of), inventory)
        if not inventory.nodes[0].cpus and not any(
            n.cpus or n.memory_bytes for n in inventory.nodes
        ):
            raise self.source.error(
                "no node with CPUs or memory", expected="a sysfs tree with node or cpu folders"
            )
        packages = len({core.package for core in cpus.cores} - {None})
        inventory.title = machine_title(cpus.models, packages, len(inventory.nodes))
        return inventory

    def _node_ids(self) -> list[int]:
        ids = self.tree.numbered(NODE_FOLDER, _NODES)
        online = self.tree.numbers(f"{NODE_FOLDER}/online")
        return sorted(ids if online is None else ids & online)

    def _cpus_of(self, ids: list[int], cpus: Cpus, notes: list[str]) -> dict[int, frozenset[int]]:
        """The online CPUs of each node.

        Some firmware lists a CPU in several nodes, most often all CPUs in all nodes. As in hwloc,
        the first such node counts, and the others are left out.
        """
        found: dict[int, frozenset[int]] = {}
        taken: set[int] = set()
        for node in ids:
            folder = f"{NODE_FOLDER}/node{node}"
            listed = self.tree.numbers(f"{folder}/cpumap")
            if listed is None:
                listed = self.tree.numbers(f"{folder}/cpulist") or frozenset()
            own = listed & cpus.online if cpus.known else listed
            if own & taken:
                notes.append(f"Node {node} is left out: it lists CPUs of an earlier node.")
                continue
            found[node] = own
            taken |= own
        homeless = cpus.online - taken
        if homeless:
            notes.append(f"{len(homeless)} CPUs are in no node: left out.")
        if not cpus.known:
            cpus.assume(taken)
            notes += cpus.notes
        return found

    def _node(self, node: int, cpus: frozenset[int], alone: bool) -> NodeFacts:
        path = f"{NODE_FOLDER}/node{node}/meminfo"
        # A node alone has all of it: some kernels count memory to a node bit by bit.
        sizes = [self._memory(path), self._memory(MEMORY) if alone else None]
        return NodeFacts(
            node,
            cpus,
            max((size for size in sizes if size is not None), default=None),
            side_caches=self._side_caches(node),
        )

    def _memory(self, path: str) -> int | None:
        """MemTotal in bytes."""
        text = self.tree.read(path)
        if text is None:
            return None
        for number, line in enumerate(text.splitlines(), 1):
            if "MemTotal:" in line:
                match = re.search(r"MemTotal:\s*(\d{1,15}) kB", line, re.ASCII)
                if match is None:
                    expected = "'MemTotal: 32768 kB'"
                    raise self.tree.error(path, "not a size of memory", line, expected, number)
                return int(match[1]) * 1024
        return None

    def _side_caches(self, node: int) -> tuple[tuple[int, int | None], ...]:
        folder = f"{NODE_FOLDER}/node{node}/memory_side_cache"
        found = []
        for name in self.tree.names(folder):
            if re.fullmatch(r"index\d{1,3}", name, re.ASCII):
                size = self._whole(f"{folder}/{name}/size")
                line = self._whole(f"{folder}/{name}/line_size")
                if size:
                    found.append((size, line or None))
        return tuple(found)

    def _whole(self, path: str) -> int | None:
        text = self.tree.read(path)
        if text is None:
            return None
        if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
            raise self.tree.error(path, "not a whole number", text, "such as 64")
        return int(text)

    def _slit(self, ids: list[int]) -> dict[Pair, int] | None:
        """Each node's file has one distance per node; None where a file is missing.

        Newer kernels write a column per online node, some a column per possible node.
        """
        possible = sorted(self.tree.numbers(f"{NODE_FOLDER}/possible") or ())
        columns = {len(homes): homes for homes in (possible, ids) if set(ids) <= set(homes)}
        found: dict[Pair, int] = {}
        for node in ids:
            path = f"{NODE_FOLDER}/node{node}/distance"
            text = self.tree.read(path)
            if text is None:
                return None
            values = text.split()
            for value in values:
                if not re.fullmatch(r"\d{1,3}", value, re.ASCII) or int(value) > 255:
                    expected = "a whole number from 0 to 255"
                    raise self.tree.error(path, "no distance", value, expected)
            if len(values) not in columns:
                expected = f"{len(ids)}, one per node"
                raise self.tree.error(path, f"{len(values)} distances", None, expected)
            distances = zip(columns[len(values)], values, strict=True)
            found |= {(node, home): int(value) for home, value in distances}
        return found

    def _read_tables(self, ids: list[int], kept: frozenset[int], found: Inventory) -> bool:
        """The figures of all pairs from the firmware's own table; False where it is not there.

        Only the superuser may read it. Linux numbers the table's domains in the order of another.
        """
        hmat, srat = self.tree.data(HMAT), self.tree.data(SRAT)
        if hmat is None or srat is None:
            return False
        path = SRAT
        try:
            domains = read_srat_order(srat)
            path = HMAT
            pairs = read_hmat(hmat)
        except ValueError as failure:
            raise InputError(f"damaged: {failure}", self.tree.full_path(path)) from None
        node_of = dict(zip(domains, ids, strict=False)) if len(domains) == len(ids) else {}
        for unit, dimension, fact in _ATTRIBUTES:
            values: dict[Pair, float] = getattr(pairs, fact)
            table: dict[Pair, Quantity] = getattr(found, fact)
            for (initiator, home), value in values.items():
                pair = node_of.get(initiator, -1), node_of.get(home, -1)
                read = quantity(f"{value:.12g} {unit}", dimension)
                if kept.issuperset(pair) and read is not None:
                    table[pair] = read
        return bool(found.latency or found.bandwidth)

    def _read_attributes(self, home: int, ids: frozenset[int], found: Inventory) -> None:
        """HMAT's figures, which hold for the initiators that the kernel links to.

        Class 0 has the nearest initiators of any kind, class 1 the nearest with CPUs: the latter
        counts where both give a value. 0 stands for unknown.
        """
        for access in ("access0", "access1"):
            folder = f"{NODE_FOLDER}/node{home}/{access}/initiators"
            names = self.tree.names(folder)
            initiators = self.tree.numbered(folder, _NODES)
            for unit, dimension, fact in _ATTRIBUTES:
                if f"read_{fact}" not in names:
                    continue
                value = self._attribute(f"{folder}/read_{fact}", unit, dimension)
                if value is not None:
                    table: dict[Pair, Quantity] = getattr(found, fact)
                    table.update({(initiator, home): value for initiator in initiators & ids})

    def _attribute(self, path: str, unit: str, dimension: str) -> Quantity | None:
        value = self._whole(path)
        return quantity(f"{value} {unit}", dimension) if value else None


HMAT, SRAT = "sys/firmware/acpi/tables/HMAT", "sys/firmware/acpi/tables/SRAT"

# The firmware's table of memory attributes (ACPI's HMAT), as the kernel hands it out. sysfs tells
# of each memory the figures of its nearest initiators alone; the table has all pairs. ACPI 6.5,
# 5.2.16 (SRAT) and 5.2.27 (HMAT).
_HEADER_BYTES = 36
_HMAT_HEADER_BYTES, _SRAT_HEADER_BYTES = _HEADER_BYTES + 4, _HEADER_BYTES + 12
_PAIRS = 1  # the kind of structure that holds latencies or bandwidths
_PAIRS_BYTES = 32
_UNKNOWN = (0, 0xFFFF)
_LATENCIES, _BANDWIDTHS = (0, 1), (3, 4)  # of any access, of reads
_UNIT_OF_REVISION_1 = 10  # as Linux reads the table of ACPI 6.2
_MEMORY = 1
# Of structures of an SRAT by their kind, the domain and the flags: of memory, of processors (with
# a long number, of ARM), of other initiators.
_DOMAINS = {_MEMORY: "<2xI22xI", 2: "<4xI4xI", 3: "<2xI4xI", 5: "<4xI16xI"}


@dataclass
class PairValues:
    """Latencies in ns and bandwidths in MB/s, by initiator and target (proximity domains)."""

    latency: dict[Pair, float] = field(default_factory=dict)
    bandwidth: dict[Pair, float] = field(default_factory=dict)


def read_hmat(table: bytes) -> PairValues:
    """The figures of memory itself in an HMAT; raises ValueError where it is damaged.

    Caches of memory, which may have figures of their own, are left out.
    """
    pair_values = PairValues()
    for kind, part in _structures(table, b"HMAT", _HMAT_HEADER_BYTES, "<HxxI"):
        if kind == _PAIRS:
            _read_pairs(part, table[8], pair_values)
    return pair_values


def _read_pairs(part: bytes, revision: int, found: PairValues) -> None:
    flags, data_type, initiators, targets, base = _unpack("<8xBBxxIIxxxxQ", part, 0)
    need = _PAIRS_BYTES + 4 * (initiators + targets) + 2 * initiators * targets
    if need > len(part):
        raise ValueError(f"{initiators} initiators and {targets} targets in {len(part)} bytes")
    if flags & 0xF or data_type not in _LATENCIES + _BANDWIDTHS:
        return
    domains = _unpack(f"<{initiators + targets}I", part, _PAIRS_BYTES)
    entries = _unpack(f"<{initiators * targets}H", part, _PAIRS_BYTES + 4 * (initiators + targets))
    picoseconds = data_type in _LATENCIES and revision >= 2
    divisor = 1000 if picoseconds else 1 if revision >= 2 else _UNIT_OF_REVISION_1
    values = found.latency if data_type in _LATENCIES else found.bandwidth
    for k, entry in enumerate(entries):
        if entry not in _UNKNOWN:
            row, column = divmod(k, targets)
            values[domains[row], domains[initiators + column]] = entry * base / divisor


def read_srat_order(table: bytes) -> list[int]:
    """The proximity domains of an SRAT in the order in which Linux numbers them as nodes.

    Those of processors (and other initiators) come first, in the order of the table, then those of
    memory alone. Raises ValueError where the table is damaged.
    """
    of_processors: list[int] = []
    of_memory: list[int] = []
    for kind, part in _structures(table, b"SRAT", _SRAT_HEADER_BYTES, "<BB"):
        if kind == 0:  # a processor, its domain in two places
            low, flags, *high = _unpack("<2xBxIx3B", part, 0)
            domain = int.from_bytes(bytes((low, *high)), "little")
        else:
            domain, flags = _unpack(_DOMAINS[kind], part, 0) if kind in _DOMAINS else (0, 0)
        if flags & 1:
            (of_memory if kind == _MEMORY else of_processors).append(domain)
    return list(dict.fromkeys(of_processors + of_memory))


def _structures(
    table: bytes, signature: bytes, header_bytes: int, form: str
) -> Iterator[tuple[int, bytes]]:
    """What follows the header: kind and bytes of each, which begin with kind and length."""
    if table[:4] != signature:
        raise ValueError(f"begins with {table[:4]!r}, expected {signature!r}")
    (length,) = _unpack("<I", table, 4)
    if length != len(table):
        raise ValueError(f"{len(table)} bytes, expected {length}")
    offset = header_bytes
    while offset < len(table):
        kind, length = _unpack(form, table, offset)
        if length < struct.calcsize(form) or offset + length > len(table):
            raise ValueError(f"a structure of {length} bytes at byte {offset}")
        yield kind, table[offset : offset + length]
        offset += length


def _unpack(form: str, data: bytes, offset: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, offset)
    except struct.error:
        raise ValueError(f"ends at byte {len(data)}, within a structure") from None

"""hwloc's XML (``lstopo machine.xml``), formats 2 and 3.

The meaning of each attribute is that of hwloc's own documents (hwloc2.dtd, memattrs.h,
distances.h). NUMA nodes are read wherever they hang; I/O devices are left out.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ...inputs import InputError, Quantity
from ...inputs.number_sets import NUMBER_MAX, parse_mask
from ..schema import MachineDescription
from ..schema_types import NODES_MAX
from .hwloc_values import Distances, read_attributes, read_clocks, read_distances
from .inventory import (
    CacheFacts,
    Core,
    Inventory,
    NodeFacts,
    clock_of_model,
    identity_of,
    machine_title,
)
from .source import Source
from .xml_elements import Element, Wanted, read_elements

_START = re.compile(r"\s*<(?:\?xml\b|!DOCTYPE\b|!--|topology\b|root\b)")
_CACHE = re.compile(r"L([1-9])Cache")
_INFINITE = "0xf...f"  # hwloc's mark of a set that goes on forever
_OWN_CPUS = ("", "DRAM")  # subtypes of a node that CPUs belong to, where several are as near
_NEAR_MEMORY = ("HBM", "MCDRAM")  # is itself the fast memory, so never behind a cache made of it

_WANTED = Wanted(
    attributes={
        "topology": ("version",),
        "object": (
            "type",
            "subtype",
            "os_index",
            "gp_index",
            "cpuset",
            "local_memory",
            "cache_size",
            "cache_associativity",
            "cache_linesize",
            "cache_type",
        ),
        "info": ("name", "value"),
        "distances2": ("type", "nbobjs", "kind", "name", "indexing"),
        "indexes": (),
        "u64values": (),
        "memattr": ("name",),
        "memattr_value": (
            "target_obj_type",
            "target_obj_gp_index",
            "value",
            "initiator_cpuset",
            "initiator_obj_type",
            "initiator_obj_gp_index",
        ),
        "cpukind": ("cpuset",),
    },
    texts=("indexes", "u64values"),
    types_left_out=("Bridge", "PCIDev", "OSDev", "Misc"),
)


def recognises(source: Source) -> bool:
    """Anything that begins as XML does, but for a domain of libvirt."""
    head = "" if source.tree is not None else source.head_text()[:4096]
    return _START.match(head) is not None and "<domain" not in head


def read(source: Source) -> MachineDescription:
    """The machine in the XML; raises InputError."""
    root = read_elements(source, _WANTED)
    if root.tag != "topology":
        raise source.error(
            "no hwloc XML", root.line, token=root.tag, expected="a 'topology' as the root"
        )
    version = root.attributes.get("version", "1.0")
    if not re.fullmatch(r"[23](\.\d{1,3})?", version, re.ASCII):
        raise source.error(
            "unknown format of hwloc XML",
            root.line,
            token=version,
            expected="2 or 3 (lstopo of hwloc 2 converts format 1: lstopo -i old.xml new.xml)",
        )
    return _Reader(source).inventory(root).description()


@dataclass
class _Numa:
    """A NUMA node as it stands in the XML; ``cpuset`` holds all CPUs that it is local to."""

    id: int
    gp_index: str
    cpuset: frozenset[int]
    memory_bytes: int | None
    subtype: str
    package: str | None
    side_caches: tuple[tuple[int, int | None], ...]


@dataclass
class _Place:
    """What an object inherits from those around it."""

    cpuset: str = ""
    package: int | None = None
    core: int | None = None
    side_caches: tuple[tuple[int, int | None], ...] = ()


@dataclass
class _Reader:
    source: Source
    numas: list[tuple[Element, _Place]] = field(default_factory=list)
    caches: list[tuple[Element, _Place, int]] = field(default_factory=list)
    threads: dict[int, _Place] = field(default_factory=dict)  # by CPU number
    packages: list[Element] = field(default_factory=list)
    cpusets: dict[str, str] = field(default_factory=dict)  # by the gp_index of the object
    cores: int = 0

    def inventory(self, root: Element) -> Inventory:
        self._walk(root)
        inventory = Inventory(self.source.machine, source=f"hwloc XML {self.source.label()}")
        numas = self._numas()
        homes = self._homes(numas)
        if len(homes) < len(self.threads):
            left = len(self.threads) - len(homes)
            inventory.notes.append(f"{left} CPUs are in no node: left out.")
        inventory.nodes = [self._node(numa, homes) for numa in numas]
        clocks = read_clocks(root, lambda one: self._set(one, one.attributes.get("cpuset", "")))
        inventory.cores = self._found_cores(set(homes), clocks, next(root.each("object"), None))
        caches = [
            self._cache(element, place, level)
            for element, place, level in self.caches
            if element.attributes.get("subtype") != "MemorySideCache"
        ]
        # Those of unknown size are no facts, as virtual machines have them.
        inventory.caches = [cache for cache in caches if cache.size_bytes]
        models = [model for package in self.packages if (model := _info(package, "CPUModel"))]
        models = models or [m for o in root.each("object") if (m := _info(o, "CPUModel"))]
        inventory.title = machine_title(models, len(self.packages), len(numas))
        by_gp_index = {numa.gp_index: numa.id for numa in numas}
        ids = [numa.id for numa in numas]
        inventory.slit = read_distances(
            root, Distances(self.source, ids, by_gp_index, inventory.notes)
        )
        cpus_of = {node.id: node.cpus or frozenset() for node in inventory.nodes}
        read_attributes(root, inventory, self.source, by_gp_index, cpus_of, self._initiators)
        return inventory

    def _walk(self, root: Element) -> None:
        waiting = [(child, _Place()) for child in reversed(list(root.each("object")))]
        while waiting:
            element, place = waiting.pop()
            place = self._entered(element, place)
            waiting += [(child, place) for child in reversed(list(element.each("object")))]

    def _entered(self, element: Element, place: _Place) -> _Place:
        """Notes what the object is; returns the place of those inside it."""
        attributes = element.attributes
        kind = attributes.get("type", "")
        place = replace(place, cpuset=attributes.get("cpuset", place.cpuset))
        if "gp_index" in attributes:
            self.cpusets[attributes["gp_index"]] = place.cpuset
        if kind == "Package":
            place.package = len(self.packages)
            self.packages.append(element)
        elif kind == "Core":
            place.core = self.cores
            self.cores += 1
        elif kind == "PU":
            cpu = self._number(element, "os_index")
            if cpu in self.threads:
                raise self._error(element, f"PU {cpu} is listed twice")
            if place.core is None:  # older kernels tell no cores
                place.core = self.cores
                self.cores += 1
            self.threads[cpu] = place
        elif kind == "NUMANode":
            self.numas.append((element, place))
        elif kind == "MemCache":
            place.side_caches = (*place.side_caches, *self._side_cache(element))
        elif match := _CACHE.fullmatch(kind):
            self.caches.append((element, place, int(match[1])))
        return place

    def _numas(self) -> list[_Numa]:
        """The NUMA nodes by rising number."""
        if not self.numas:
            raise self.source.error("no NUMA node", expected="hwloc XML of a whole machine")
        if len(self.numas) > NODES_MAX:
            raise self.source.error(f"more than {NODES_MAX:,} nodes")
        # hwloc leaves a size of 0 out: an empty node among others, unknown where no node has one.
        has_sizes = any("local_memory" in element.attributes for element, _ in self.numas)
        found: dict[int, _Numa] = {}
        for element, place in self.numas:
            node = self._number(element, "os_index")
            if node in found:
                raise self._error(element, f"NUMA node {node} is listed twice")
            attributes = element.attributes
            found[node] = _Numa(
                node,
                attributes.get("gp_index", f"node {node}"),
                self._set(element, place.cpuset),
                self._number(element, "local_memory", bound=1 << 60, missing=0)
                if has_sizes
                else None,
                attributes.get("subtype") or _info(element, "DAXType") or "",
                self._package(place),
                place.side_caches,
            )
        self._add_cpu_side_caches(found.values())
        return [found[node] for node in sorted(found)]

    def _add_cpu_side_caches(self, numas: Collection[_Numa]) -> None:
        """Memory-side caches that hwloc puts among those of the CPUs (Xeon Phi's MCDRAM, as L3)."""
        for element, place, _ in self.caches:
            if element.attributes.get("subtype") != "MemorySideCache":
                continue
            cpus = self._set(element, place.cpuset)
            for numa in numas:
                if numa.cpuset and numa.cpuset <= cpus and numa.subtype not in _NEAR_MEMORY:
                    numa.side_caches += self._side_cache(element)

    def _homes(self, numas: list[_Numa]) -> dict[int, int]:
        """The node of each CPU: the one local to the fewest CPUs, an ordinary one before others."""
        order = sorted(
            numas, key=lambda numa: (len(numa.cpuset), numa.subtype not in _OWN_CPUS, numa.id)
        )
        homes: dict[int, int] = {}
        for numa in order:
            for cpu in numa.cpuset & self.threads.keys():
                homes.setdefault(cpu, numa.id)
        return homes

    def _node(self, numa: _Numa, homes: dict[int, int]) -> NodeFacts:
        cpus = frozenset(cpu for cpu in numa.cpuset if homes.get(cpu) == numa.id)
        return NodeFacts(
            numa.id,
            cpus,
            numa.memory_bytes,
            memory_kind=numa.subtype[:32],
            side_caches=numa.side_caches,
            package=None if cpus else numa.package,
        )

    def _found_cores(
        self, cpus: set[int], clocks: dict[int, Quantity], machine_object: Element | None
    ) -> list[Core]:
        members: dict[int, set[int]] = {}
        for cpu in sorted(cpus):
            core = self.threads[cpu].core
            assert core is not None
            members.setdefault(core, set()).add(cpu)
        board = _infos(machine_object).get("DMISysVendor")
        machine = identity_of(_infos(machine_object), board)
        identities = [identity_of(_infos(package), board) for package in self.packages]
        nominal = [clock_of_model(_info(package, "CPUModel") or "") for package in self.packages]
        cores = []
        for threads in members.values():
            first = min(threads)
            package = self.threads[first].package
            clock = clocks.get(first) or (None if package is None else nominal[package])
            identity = machine if package is None else identities[package] or machine
            name = self._package(self.threads[first])
            cores.append(Core(frozenset(threads), name, clock, identity))
        return cores

    def _package(self, place: _Place) -> str | None:
        """The package's name, after its number where it has one of its own."""
        if place.package is None:
            return None
        numbers = [package.attributes.get("os_index") for package in self.packages]
        own = numbers[place.package]
        if own is None or not re.fullmatch(r"\d{1,6}", own, re.ASCII) or numbers.count(own) > 1:
            return f"package{place.package}"
        return f"package{own}"

    def _cache(self, element: Element, place: _Place, level: int) -> CacheFacts:
        size = self._number(element, "cache_size", bound=1 << 60, missing=0)
        line = self._number(element, "cache_linesize", missing=0)
        # 0 where hwloc does not know, -1 where any way may hold any line.
        ways = element.attributes.get("cache_associativity", "")
        known = int(ways) or None if re.fullmatch(r"\d{1,5}", ways, re.ASCII) else None
        return CacheFacts(level, size, line or None, self._set(element, place.cpuset), known)

    def _side_cache(self, element: Element) -> tuple[tuple[int, int | None], ...]:
        size = self._number(element, "cache_size", bound=1 << 60, missing=0)
        line = self._number(element, "cache_linesize", missing=0)
        return ((size, line or None),) if size else ()

    def _number(
        self, element: Element, name: str, *, bound: int = NUMBER_MAX, missing: int | None = None
    ) -> int:
        text = element.attributes.get(name)
        if text is None and missing is not None:
            return missing
        if text is None or not re.fullmatch(r"\d{1,19}", text, re.ASCII) or int(text) > bound:
            kind = element.attributes.get("type", element.tag)
            raise self._error(
                element, f"no {name} of a {kind}", text or "", f"a whole number up to {bound:,}"
            )
        return int(text)

    def _initiators(self, value: Element) -> frozenset[int] | None:
        """The CPUs of a memattr_value's initiator, None where none is named."""
        attributes = value.attributes
        if "initiator_cpuset" in attributes:
            return self._set(value, attributes["initiator_cpuset"])
        if "initiator_obj_gp_index" in attributes:
            return self._set(value, self.cpusets.get(attributes["initiator_obj_gp_index"], ""))
        return None

    def _set(self, element: Element, text: str) -> frozenset[int]:
        """The CPUs in hwloc's text of a set; an endless one ends with the machine's last CPU."""
        infinite = text.startswith(_INFINITE)
        mask = text.removeprefix(_INFINITE).removeprefix(",")
        try:
            found = parse_mask(mask)
        except ValueError as failure:
            raise self._error(element, str(failure), text) from None
        if infinite:
            first = 32 * (mask.count(",") + 1) if mask else 0
            found |= {cpu for cpu in self.threads if cpu >= first}
        return found

    def _error(
        self, element: Element, message: str, token: str | None = None, expected: str | None = None
    ) -> InputError:
        return self.source.error(message, element.line, token=token, expected=expected)


def _infos(element: Element | None) -> dict[str, str]:
    """The element's infos by name; the first of several with the same name."""
    found: dict[str, str] = {}
    for info in element.each("info") if element is not None else ():
        name = info.attributes.get("name", "")
        found.setdefault(name, info.attributes.get("value", ""))
    return found


def _info(element: Element, name: str) -> str | None:
    """The value of the element's info of that name."""
    return _infos(element).get(name)

"""The tables in hwloc's XML: distances, memory attributes, kinds of CPUs."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...inputs import Quantity
from .inventory import Inventory, Pair, quantity
from .source import Source
from .xml_elements import Element

_FROM_SYSTEM, _MEANS_LATENCY = 1, 4  # hwloc_distances_kind_e
_SLIT_MAX = 255

# hwloc's attribute -> the inventory's table, dimension, unit. Those of reads come last, since they
# are the better ones where both are there. memattrs.h gives MiB/s; on Linux the kernel's MB/s are
# passed on as they are, hence the range.
_ATTRIBUTES = {
    "Bandwidth": ("bandwidth", "bandwidth", "MiB/s", "MB/s"),
    "Latency": ("latency", "time", "ns", "ns"),
    "ReadBandwidth": ("bandwidth", "bandwidth", "MiB/s", "MB/s"),
    "ReadLatency": ("latency", "time", "ns", "ns"),
}
_UNIT_NOTE = (
    "Bandwidths are in MiB/s, as hwloc documents; ranges begin at the same number of MB/s, "
    "which is what Linux gives hwloc."
)


@dataclass
class Distances:
    """What the reading of distances needs to know: the nodes, and where to put its notes."""

    source: Source
    ids: Sequence[int]
    by_gp_index: Mapping[str, int]
    notes: list[str]


def read_distances(root: Element, known: Distances) -> dict[Pair, int] | None:
    """The SLIT: the first matrix of latencies between all NUMA nodes from the system itself."""
    for element in root.each("distances2"):
        attributes = element.attributes
        if attributes.get("type") != "NUMANode":
            continue
        name = attributes.get("name", "of no name")
        kind = attributes.get("kind", "")
        bits = int(kind) if re.fullmatch(r"\d{1,6}", kind, re.ASCII) else 0
        if bits & _FROM_SYSTEM == 0 or bits & _MEANS_LATENCY == 0:
            known.notes.append(f"The distances {name[:40]} are left out: their unit is unknown.")
            continue
        values = _matrix(element, known)
        if any((a, b) not in values for a in known.ids for b in known.ids):
            known.notes.append(f"The distances {name[:40]} are left out: they lack a node.")
        elif max(values.values()) > _SLIT_MAX:
            known.notes.append(f"The distances {name[:40]} are left out: they are no SLIT.")
        else:
            return values
    return None


def _matrix(element: Element, known: Distances) -> dict[Pair, int]:
    """Row by row, as in hwloc: from the first node to all, from the second to all …"""
    indexes = " ".join(child.text for child in element.each("indexes")).split()
    values = " ".join(child.text for child in element.each("u64values")).split()
    if len(values) != len(indexes) ** 2:
        raise known.source.error(
            f"{len(values)} distances between {len(indexes)} objects",
            element.line,
            expected=f"{len(indexes) ** 2}",
        )
    for value in values:
        if not re.fullmatch(r"\d{1,20}", value, re.ASCII):
            raise known.source.error(
                "no distance", element.line, token=value, expected="a whole number"
            )
    by_gp_index = element.attributes.get("indexing") == "gp"
    by_number = {str(node): node for node in known.ids}
    nodes = [(known.by_gp_index if by_gp_index else by_number).get(index) for index in indexes]
    rows = iter(values)
    return {
        (a, b): int(value)
        for a in nodes
        for b, value in zip(nodes, rows, strict=False)
        if a is not None and b is not None
    }


def read_attributes(
    root: Element,
    found: Inventory,
    source: Source,
    by_gp_index: Mapping[str, int],
    cpus_of: Mapping[int, frozenset[int]],
    initiators: Callable[[Element], frozenset[int] | None],
) -> None:
    """Latencies and bandwidths between the CPUs of one node and the memory of another.

    A value holds for every node whose CPUs are among its initiator's; of several, the one whose
    initiator covers the node best.
    """
    elements = {element.attributes.get("name"): element for element in root.each("memattr")}
    for name, (table_name, dimension, unit, low_unit) in _ATTRIBUTES.items():
        if name not in elements:
            continue
        table: dict[Pair, Quantity] = getattr(found, table_name)
        covered: dict[Pair, int] = {}
        for element in elements[name].each("memattr_value"):
            home = by_gp_index.get(element.attributes.get("target_obj_gp_index", ""))
            value = _value(element, dimension, unit, low_unit, source)
            if home is None or value is None:
                continue
            cpus = initiators(element)
            starts = by_gp_index.get(element.attributes.get("initiator_obj_gp_index", ""))
            for node, own in cpus_of.items():
                overlap = len(own if cpus is None else own & cpus) or int(node == starts)
                if overlap > covered.get((node, home), 0):
                    covered[node, home] = overlap
                    table[node, home] = value
        if covered and unit != low_unit and _UNIT_NOTE not in found.notes:
            found.notes.append(_UNIT_NOTE)


def _value(
    element: Element, dimension: str, unit: str, low_unit: str, source: Source
) -> Quantity | None:
    text = element.attributes.get("value", "")
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise source.error(
            "no value of a memory attribute", element.line, token=text, expected="a whole number"
        )
    value = quantity(f"{text} {unit}", dimension)
    low = quantity(f"{text} {low_unit}", dimension)
    if value is None or low is None:
        return None
    return Quantity(value.value, low.value, value.value)


def read_clocks(root: Element, cpus_of: Callable[[Element], frozenset[int]]) -> dict[int, Quantity]:
    """The highest clock of each CPU, ranging from its base clock, from the kinds of CPUs."""
    clocks: dict[int, Quantity] = {}
    for element in root.each("cpukind"):
        frequencies = {
            info.attributes.get("name"): info.attributes.get("value", "")
            for info in element.each("info")
        }
        highest = _megahertz(frequencies.get("FrequencyMaxMHz"))
        base = _megahertz(frequencies.get("FrequencyBaseMHz"))
        value = highest or base
        if value is None:
            continue
        low = min(value.value, base.value) if base else value.value
        clock = Quantity(
            value.value,
            low,
            value.value,
            source="hwloc's kind of CPU, turbo included" if highest else "hwloc's kind of CPU",
        )
        clocks |= dict.fromkeys(cpus_of(element), clock)
    return clocks


def _megahertz(text: str | None) -> Quantity | None:
    if text is None or not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        return None
    return quantity(f"{text} MHz", "frequency")

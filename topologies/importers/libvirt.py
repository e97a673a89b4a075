"""libvirt's domain XML: the cells of a guest, their distances, caches and HMAT attributes.

Units are those of libvirt's documents: memory and caches in KiB, latency in ns, bandwidth in KiB/s,
if none is given. A distance that is told one way holds both ways; cells without any are 10 from
themselves and 20 from others.
"""

import re
from collections.abc import Iterable

from ...inputs import Quantity
from ...inputs.number_sets import NUMBER_MAX
from ..schema import MachineDescription
from .inventory import Core, Inventory, NodeFacts, Pair, quantity
from .source import Source
from .xml_elements import Element, Wanted, read_elements

_BYTES = {"b": 0, "bytes": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30}
_BYTES |= {"t": 40, "tib": 40}
_OF_READS = ("access", "read")
_HMAT = ("initiator", "target", "cache", "type", "value", "unit")
_WANTED = Wanted(
    attributes={
        "domain": (),
        "cpu": (),
        "topology": ("threads", "cores", "dies", "clusters"),
        "numa": (),
        "cell": ("id", "cpus", "memory", "unit"),
        "distances": (),
        "sibling": ("id", "value"),
        "cache": ("level",),
        "size": ("value", "unit"),
        "line": ("value", "unit"),
        "interconnects": (),
        "latency": _HMAT,
        "bandwidth": _HMAT,
    },
    texts=(),
    types_left_out=(),
)


def recognises(source: Source) -> bool:
    """Whether its root is a domain."""
    head = "" if source.tree is not None else source.head_text()[:4096]
    return head.lstrip("\ufeff \r\n\t").startswith("<") and "<domain" in head


def read(source: Source) -> MachineDescription:
    """The machine that a guest sees; raises InputError."""
    root = read_elements(source, _WANTED)
    cpus = list(root.each("cpu"))
    numa = next((n for cpu in cpus for n in cpu.each("numa")), None)
    cells = list(numa.each("cell")) if numa else []
    if numa is None or not cells:
        raise source.error("no cells", root.line, expected="'cpu' with 'numa' and its cells")
    shape = next((t.attributes for cpu in cpus for t in cpu.each("topology")), {})
    threads, size = int(_digits(shape, "threads")), 1
    for name in ("dies", "clusters", "cores", "threads"):
        size *= int(_digits(shape, name))
    found = Inventory(source.machine, source=f"libvirt domain, {source.label()}")
    slit: dict[Pair, int] = {}
    for k, cell in enumerate(cells):
        node = _number(source, cell, "id", str(k))
        own = source.numbers(cell.attributes.get("cpus", ""), cell.line)
        memory = _bytes(source, cell, "memory")
        caches = sorted(cell.each("cache"), key=lambda cache: cache.attributes.get("level", ""))
        side_caches = tuple(
            (
                _bytes(source, size, "value"),
                next((_bytes(source, line, "value", "B") for line in cache.each("line")), None),
            )
            for cache in caches
            for size in cache.each("size")
        )
        found.nodes.append(NodeFacts(node, own, memory, side_caches=side_caches))
        siblings = (s for d in cell.each("distances") for s in d.each("sibling"))
        slit |= {(node, _number(source, s, "id")): _number(source, s, "value") for s in siblings}
    members: dict[int, set[int]] = {}
    for node_facts in found.nodes:
        for cpu in node_facts.cpus or ():
            members.setdefault(cpu // threads, set()).add(cpu)
    # QEMU numbers the threads of a core, then the cores of a socket.
    found.cores = [
        Core(frozenset(own), f"package{min(own) // size}" if shape else None)
        for own in members.values()
    ]
    ids = [node.id for node in found.nodes]
    found.slit = {
        (a, b): slit.get((a, b), slit.get((b, a), 10 if a == b else 20)) for a in ids for b in ids
    }
    found.title = f"guest with {len(ids)} nodes"
    for values in numa.each("interconnects"):
        _read_hmat(source, [*values.each("latency"), *values.each("bandwidth")], found)
    return found.description()


def _read_hmat(source: Source, elements: Iterable[Element], found: Inventory) -> None:
    for element in elements:
        if element.attributes.get("type", "access") not in _OF_READS:
            continue
        if "cache" in element.attributes:
            continue  # of a cache in front of the memory
        pair = _number(source, element, "initiator"), _number(source, element, "target")
        known: Quantity | None = (
            quantity(f"{_number(source, element, 'value', bound=1 << 40)} ns", "time")
            if element.tag == "latency"
            else quantity(f"{_bytes(source, element, 'value')} B/s", "bandwidth")
        )
        if known is not None:
            getattr(found, element.tag)[pair] = known


def _digits(attributes: dict[str, str], name: str) -> str:
    text = attributes.get(name, "1")
    return text if re.fullmatch(r"[1-9]\d{0,3}", text, re.ASCII) else "1"


def _bytes(source: Source, element: Element, name: str, usual: str = "KiB") -> int:
    """A size with its unit."""
    unit = element.attributes.get("unit", usual)
    if unit.lower() not in _BYTES:
        raise source.error("unknown unit", element.line, token=unit, expected="such as 'KiB'")
    return _number(source, element, name, bound=1 << 50) << _BYTES[unit.lower()]


def _number(
    source: Source, element: Element, name: str, missing: str = "", *, bound: int = NUMBER_MAX
) -> int:
    text = element.attributes.get(name, missing)
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII) or int(text) > bound:
        raise source.error(
            f"no {name} of a {element.tag}", element.line, token=text, expected="a whole number"
        )
    return int(text)

"""The text that ``lscpu`` prints, alone or with ``numactl -H``: nodes, cores, sockets, caches."""

import re

from ..schema import MachineDescription
from . import numactl
from .inventory import Inventory, NodeFacts
from .lscpu_fields import FIELD, add_cores
from .source import Source

_BEGINNING = re.compile(r"^.*\bNUMA node\d{1,4} CPU\(s\):|^.*\bCore\(s\) per socket: ", re.M | re.A)
_OTHERS = re.compile(r"\bnode \d{1,6} cpus:|Memory Latency Checker|^Measuring ", re.M | re.A)
_NODE = re.compile(r"NUMA node(\d{1,4}) CPU\(s\)", re.ASCII)


def recognises(source: Source) -> bool:
    """Whether its fields are there alone: numactl and Intel MLC have more to say."""
    return lists_cores(source) and not _OTHERS.search(source.head_text())


def lists_cores(source: Source) -> bool:
    """Whether its fields are there."""
    return source.tree is None and _BEGINNING.search(source.head_text()) is not None


def read(source: Source) -> MachineDescription:
    """The machine in the text; raises InputError."""
    return inventory(source).description()


def inventory(source: Source) -> Inventory:
    """What the text says, with the distances of numactl behind it; raises InputError."""
    cpus: dict[int, frozenset[int]] = {}
    for number, line in enumerate(source.lines, 1):
        match = FIELD.fullmatch(line)
        node = _NODE.fullmatch(match[1]) if match else None
        if match is None or node is None:
            continue
        if int(node[1]) in cpus:
            raise source.error("a second machine in the same text", number, expected="one")
        cpus[int(node[1])] = source.numbers(match[2], number)
    if not cpus:
        raise source.error(
            "no nodes",
            expected="the lines 'NUMA node0 CPU(s):' of lscpu, or the output of numactl -H",
        )
    found = Inventory(source.machine, source=f"lscpu, {source.label()}")
    found.nodes = [NodeFacts(node, own, None) for node, own in sorted(cpus.items())]
    distances = numactl.distances(source)
    if all((a, b) in distances for a in cpus for b in cpus):
        found.slit = distances
    if not add_cores(found, source):
        numactl.take_cpus_as_cores(found, "lscpu")
    return found

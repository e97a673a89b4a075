"""Sizes of data relative to the host: ``1/2 L2``, ``10 LLC``, ``1/8 memory``, ``64 MiB``."""

import re
from fractions import Fraction

from ...inputs import InputError
from ...inputs.quantities import parse_quantity
from ...topologies import Machine
from ...workloads.schema import TABLE_BY_COLUMN, DataObject
from ..systems.registry import validations

# No object takes more of a host's memory, whatever a suite says.
MEMORY_PART = 0.25
FORMS = "a size such as '1/2 L2', '10 LLC' (the last level), '1/8 memory' or '64 MiB'"

_RELATIVE = re.compile(r"(\d+(?:\.\d+)?)(?:/(\d+))?\s*(L[1-9]|LLC|memory)", re.ASCII)


def size_bytes(text: str, machine: Machine) -> float:
    """What ``text`` is on ``machine``, a quarter of its memory at most.

    A cache counts once, however many of its kind there are. Raises InputError for a text of no such
    form, and for a cache that the machine does not have.
    """
    memory_bytes = float(sum(node.memory_bytes or 0 for node in machine.nodes))
    found = _RELATIVE.fullmatch(text.strip())
    if found is None:
        try:
            size = parse_quantity(text, "size")
        except ValueError:
            raise InputError("no size", token=text, expected=FORMS) from None
    else:
        if found[2] is not None and int(found[2]) == 0:
            raise InputError("no size", token=text, expected=FORMS)
        factor = Fraction(found[1]) / int(found[2] or 1)
        size = float(factor) * _unit_bytes(found[3], machine, memory_bytes)
    if size <= 0:
        raise InputError("no size", token=text, expected="more than nothing")
    return min(size, MEMORY_PART * memory_bytes) if memory_bytes else size


def _unit_bytes(unit: str, machine: Machine, memory_bytes: float) -> float:
    if unit == "memory":
        return memory_bytes
    caches = {cache.level: cache.size_bytes for node in machine.nodes for cache in node.caches}
    level = max(caches, default=0) if unit == "LLC" else int(unit[1:])
    if level not in caches:
        known = ", ".join(f"L{cache}" for cache in sorted(caches)) or "none"
        raise InputError(f"machine '{machine.name}' has no cache {unit}", expected=f"of {known}")
    return float(caches[level])


def entries_of(stored: DataObject, size: float) -> tuple[str, int]:
    """The field that says how large an object is, and its value for ``size`` bytes."""
    field = {"index": "keys", "column": "entries", "table": "records", TABLE_BY_COLUMN: "rows"}
    return field[_kind(stored)], max(round(size / _entry_bytes(stored)), 1)


def bytes_of(stored: DataObject) -> float:
    """What the data of an object take."""
    count = stored.keys or stored.entries or stored.records or stored.rows or 0
    return count * _entry_bytes(stored)


def _kind(stored: DataObject) -> str:
    return stored.kind if stored.columns is None else TABLE_BY_COLUMN


def _entry_bytes(stored: DataObject) -> float:
    for validation in validations():
        if _kind(stored) in validation.entry_bytes:
            return float(validation.entry_bytes[_kind(stored)](stored))
    size = stored.entry_size if stored.kind == "column" else stored.record_size
    assert size is not None, "tables must have it"
    return size.value

"""The firmware's table of memory attributes (ACPI's HMAT), as the kernel hands it out.

sysfs tells of each memory the figures of its nearest initiators alone; the table has all pairs.
ACPI 6.5, 5.2.16 (SRAT) and 5.2.27 (HMAT).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

HMAT, SRAT = "sys/firmware/acpi/tables/HMAT", "sys/firmware/acpi/tables/SRAT"

_HEADER_BYTES = 36
_HMAT_HEADER_BYTES, _SRAT_HEADER_BYTES = _HEADER_BYTES + 4, _HEADER_BYTES + 12
_PAIRS = 1  # the kind of structure that holds latencies or bandwidths
_PAIRS_BYTES = 32
_UNKNOWN = (0, 0xFFFF)
_LATENCIES = {0: "latency", 1: "latency", 2: "write_latency"}
_BANDWIDTHS = {3: "bandwidth", 4: "bandwidth", 5: "write_bandwidth"}
_UNIT_OF_REVISION_1 = 10  # as Linux reads the table of ACPI 6.2

Pair = tuple[int, int]


@dataclass
class PairValues:
    """Latencies in ns and bandwidths in MB/s, by initiator and target (proximity domains)."""

    latency: dict[Pair, float] = field(default_factory=dict)
    write_latency: dict[Pair, float] = field(default_factory=dict)
    bandwidth: dict[Pair, float] = field(default_factory=dict)
    write_bandwidth: dict[Pair, float] = field(default_factory=dict)


def read_hmat(table: bytes) -> PairValues:
    """The figures of memory itself in an HMAT; raises ValueError where it is damaged.

    Caches of memory, which may have figures of their own, are left out.
    """
    _check(table, b"HMAT")
    revision = table[8]
    pair_values = PairValues()
    offset = _HMAT_HEADER_BYTES
    while offset < len(table):
        kind, length = _unpack("<HxxI", table, offset)
        if length < 8 or offset + length > len(table):
            raise ValueError(f"a structure of {length} bytes at byte {offset}")
        if kind == _PAIRS:
            _read_pairs(table[offset : offset + length], revision, pair_values)
        offset += length
    return pair_values


def _read_pairs(part: bytes, revision: int, found: PairValues) -> None:
    flags, data_type, initiators, targets, base = _unpack("<8xBBxxIIxxxxQ", part, 0)
    need = _PAIRS_BYTES + 4 * (initiators + targets) + 2 * initiators * targets
    if need > len(part):
        raise ValueError(f"{initiators} initiators and {targets} targets in {len(part)} bytes")
    name = (_LATENCIES | _BANDWIDTHS).get(data_type)
    if flags & 0xF or name is None:
        return
    domains = _unpack(f"<{initiators + targets}I", part, _PAIRS_BYTES)
    entries = _unpack(f"<{initiators * targets}H", part, _PAIRS_BYTES + 4 * (initiators + targets))
    picoseconds = data_type in _LATENCIES and revision >= 2
    divisor = 1000 if picoseconds else 1 if revision >= 2 else _UNIT_OF_REVISION_1
    values: dict[Pair, float] = getattr(found, name)
    for k, entry in enumerate(entries):
        if entry not in _UNKNOWN:
            row, column = divmod(k, targets)
            values[domains[row], domains[initiators + column]] = entry * base / divisor


def read_srat_order(table: bytes) -> list[int]:
    """The proximity domains of an SRAT in the order in which Linux numbers them as nodes.

    Those of processors (and other initiators) come first, in the order of the table, then those of
    memory alone. Raises ValueError where the table is damaged.
    """
    _check(table, b"SRAT")
    of_processors, of_memory = [], []
    offset = _SRAT_HEADER_BYTES
    while offset < len(table):
        kind, length = _unpack("<BB", table, offset)
        if length < 2 or offset + length > len(table):
            raise ValueError(f"a structure of {length} bytes at byte {offset}")
        part = table[offset : offset + length]
        if kind == 0:  # a processor, its domain in two places
            low, flags, *high = _unpack("<2xBxIx3B", part, 0)
            if flags & 1:
                of_processors.append(int.from_bytes(bytes((low, *high)), "little"))
        elif kind == 1:
            domain, flags = _unpack("<2xI22xI", part, 0)
            if flags & 1:
                of_memory.append(domain)
        elif kind == 2:  # a processor with a long number
            domain, flags = _unpack("<4xI4xI", part, 0)
            if flags & 1:
                of_processors.append(domain)
        elif kind == 3:  # a processor of ARM
            domain, flags = _unpack("<2xI4xI", part, 0)
            if flags & 1:
                of_processors.append(domain)
        elif kind == 5:  # another initiator
            domain, flags = _unpack("<4xI16xI", part, 0)
            if flags & 1:
                of_processors.append(domain)
        offset += length
    return list(dict.fromkeys(of_processors + of_memory))


def _check(table: bytes, signature: bytes) -> None:
    if table[:4] != signature:
        raise ValueError(f"begins with {table[:4]!r}, expected {signature!r}")
    (length,) = _unpack("<I", table, 4)
    if length != len(table):
        raise ValueError(f"{len(table)} bytes, expected {length}")


def _unpack(form: str, data: bytes, offset: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, offset)
    except struct.error:
        raise ValueError(f"ends at byte {len(data)}, within a structure") from None

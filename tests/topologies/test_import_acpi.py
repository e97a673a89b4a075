"""The firmware's table of memory attributes, and the order of its domains."""

import contextlib
import re
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by
from saved_trees import NODE, write_folder

from numatwin.topologies.importers import import_machine
from numatwin.topologies.importers.sysfs import read_hmat, read_srat_order


def table(signature: bytes, revision: int, head: bytes, body: bytes) -> bytes:
    length = 36 + len(head) + len(body)
    return struct.pack("<4sIB27x", signature, length, revision) + head + body


def pairs(
    data_type: int, unit: int, domains: list[int], entries: list[int], flags: int = 0
) -> bytes:
    n = len(domains)
    body = struct.pack(f"<{2 * n}I{n * n}H", *domains, *domains, *entries)
    head = struct.pack("<BBBxIIIQ", flags, data_type, 0, n, n, 0, unit)
    return struct.pack("<HxxI", 1, 8 + len(head) + len(body)) + head + body


def hmat(*parts: bytes, revision: int = 2) -> bytes:
    memory = struct.pack("<HxxIHxxII20x", 0, 40, 1, 0, 0)  # the initiator of a memory: skipped
    return table(b"HMAT", revision, bytes(4), memory + b"".join(parts))


def processor(domain: int, enabled: bool = True) -> bytes:
    number = domain.to_bytes(4, "little")
    return struct.pack("<BBBBIB3sI", 0, 16, number[0], 7, enabled, 0, number[1:], 0)


def memory(domain: int, enabled: bool = True) -> bytes:
    return struct.pack("<BBIHQQIIQ", 1, 40, domain, 0, 0, 1 << 30, 0, enabled, 0)


def srat(*parts: bytes) -> bytes:
    return table(b"SRAT", 3, bytes(12), b"".join(parts))


def test_values_by_pair() -> None:
    found = read_hmat(
        hmat(
            pairs(1, 1000, [4, 9], [80, 140, 0xFFFF, 0]),
            pairs(2, 100, [4, 9], [900, 1500, 1501, 901]),
            pairs(3, 4, [4, 9], [20_000, 5_000, 5_001, 20_001]),
            pairs(0, 1000, [4, 9], [1, 1, 1, 1], flags=1),  # of a cache of the memory
        )
    )
    assert found.latency == {(4, 4): 80.0, (4, 9): 140.0}
    assert found.bandwidth == {(4, 4): 8e4, (4, 9): 2e4, (9, 4): 20_004.0, (9, 9): 80_004.0}
    first = read_hmat(hmat(pairs(0, 10, [0], [85]), revision=1))  # whose unit is as Linux takes it
    assert first.latency == {(0, 0): 85.0}


def test_domains_are_numbered_as_linux_does() -> None:
    order = srat(memory(9), processor(5), processor(300), processor(2, enabled=False), memory(7),
                 memory(5), memory(3, enabled=False))  # fmt: skip
    assert read_srat_order(order) == [5, 300, 9, 7]


def test_the_table_gives_a_tree_s_pairs(tmp_path: Path) -> None:
    tables = tmp_path / "sys/firmware/acpi/tables"
    files = {f"{NODE}/node{k}/cpumap": f"{1 << k:08x}\n" for k in range(2)}
    tree = write_folder(tmp_path, files | {f"{NODE}/online": "0-1\n"})
    tables.mkdir(parents=True)
    (tables / "SRAT").write_bytes(srat(processor(8), processor(1), memory(1), memory(8)))
    (tables / "HMAT").write_bytes(hmat(pairs(1, 1000, [1, 8], [81, 142, 141, 82])))
    found = import_machine(tree)
    assert found.pair_latency is not None
    values = [[round(cell.value * 1e9) for cell in row if cell] for row in found.pair_latency]
    assert values == [[82, 141], [142, 81]]  # node 0 is domain 8
    (tables / "HMAT").write_bytes(hmat(pairs(1, 1000, [1, 8], [81, 142, 141, 82]))[:-1])
    assert re.search(r"HMAT: damaged: .* bytes, expected", told_by(import_machine, tree))


@given(st.binary(max_size=200), st.sampled_from([b"HMAT", b"SRAT"]))
def test_damaged_tables_are_refused(body: bytes, signature: bytes) -> None:
    reader = read_hmat if signature == b"HMAT" else read_srat_order
    head = bytes(4 if signature == b"HMAT" else 12)
    for data in (body, table(signature, 2, head, body)):
        with contextlib.suppress(ValueError):
            reader(data)

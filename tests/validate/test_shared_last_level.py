"""A last-level cache that others use too: its size by the latency of working sets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_hosts import figure, measured

from numatwin.inputs import Quantity
from numatwin.topologies import build_machine
from numatwin.topologies.measurements import Measurement
from numatwin.topologies.schema import Cache, MachineDescription
from numatwin.validate.crossvalidate.primitives import primitive_rows
from numatwin.validate.measure import measured_description

MIB = 2**20
HIT_NS, MEMORY_NS = 25.0, 140.0
SIZES_MIB = tuple(2.0 ** (k / 2) for k in range(-8, 17))  # 64 KiB to 256 MiB


def curve(room_MiB: float, *, sizes_MiB: tuple[float, ...] = SIZES_MIB) -> list[Measurement]:
    """Dependent loads of random replacement in so much of the last level, above 1 MiB of L2."""
    found = []
    for size in sizes_MiB:
        hit = min(1.0, room_MiB / size) ** 2
        ns = 4.0 if size <= 1.0 else hit * HIT_NS + (1 - hit) * MEMORY_NS
        found.append(figure("latency", ns * 1e-9, "time", size=f"{int(size * MIB)} B"))
    return [
        *found,
        figure("cache.latency", HIT_NS * 1e-9, "time", level=3, size="3 MiB"),
        figure("memory.latency", MEMORY_NS * 1e-9, "time"),
    ]


def described(
    figures: list[Measurement], last_MiB: float = 260.0, virtual: bool = True
) -> MachineDescription:
    """A host that was measured so, whose kernel tells 1 MiB of L2 and this last level."""
    found = measured(figures, virtualisation="virtual machine" if virtual else "none")
    base = found.layout.description
    sizes = {2: 1.0 * MIB, 3: last_MiB * MIB}
    caches = tuple(Cache(level=k, size=Quantity(s, s, s)) for k, s in sizes.items())
    kind = base.node_types["node"].model_copy(update={"caches": caches})
    layout = replace(
        found.layout, description=base.model_copy(update={"node_types": {"node": kind}})
    )
    return measured_description(replace(found, layout=layout))


def size_MiB(description: MachineDescription) -> tuple[float, float, float]:
    size = description.node_types["node"].caches[-1].size
    return size.value / MIB, size.low / MIB, size.high / MIB


def test_the_guest_of_a_large_cache() -> None:
    """260 MiB that the guest shares; loads are near memory's from 12 MiB on."""
    description = described(curve(6.0))
    value, low, high = size_MiB(description)
    assert low < 6.0 * 2**0.5 < 12.0 < high * 1.1
    assert value == pytest.approx(6.0 * 2**0.5, rel=0.1)
    (told,) = [text for text in description.warnings if ".size: " in text]
    assert told.startswith("node_types.node.caches.1.size: the L3 cache of 260 MiB holds about 8.")
    # Half of the working sets that were 45 ns by the size that the kernel tells are memory's.
    rows = {row.size_bytes: row for row in primitive_rows(build_machine(description))}
    for size in (64, 128, 256):
        assert rows[size * MIB].error < 0.05


@pytest.mark.parametrize("virtual", [False, True])
def test_a_cache_of_its_own_keeps_its_size(virtual: bool) -> None:
    assert size_MiB(described(curve(32.0), last_MiB=32.0, virtual=virtual)) == (32.0, 32.0, 32.0)


def test_other_programs_on_real_hardware_count_too() -> None:
    value, _, _ = size_MiB(described(curve(4.0), last_MiB=32.0, virtual=False))
    assert value == pytest.approx(4.0 * 2**0.5, rel=0.1)


def test_working_sets_that_end_within_the_cache() -> None:
    """On real hardware the kernel is believed; of a guest's cache more than that is doubtful."""
    short = curve(64.0, sizes_MiB=(2.0, 8.0, 32.0))
    assert size_MiB(described(short, virtual=False)) == (260.0, 260.0, 260.0)
    guest = described(short)
    assert size_MiB(guest) == (260.0, 32.0, 260.0)
    assert guest.node_types["node"].caches[-1].size.doubtful
    # The largest working set is what memory's latency is of: none may have reached memory.
    inside = [*short[:-1], figure("memory.latency", HIT_NS * 1e-9, "time")]
    assert size_MiB(described(inside)) == (260.0, 32.0, 260.0)


def test_where_no_working_set_fits() -> None:
    """The last level is taken by others: the private caches are all."""
    value, low, high = size_MiB(described(curve(0.1)[:-2] + curve(0.1)[-1:], 128.0))
    assert (value, low) == (1.0, 1.0)
    assert high == pytest.approx(2**0.5, rel=1e-3)


@given(st.floats(1.5, 100.0))
def test_what_half_of_the_loads_miss(room_MiB: float) -> None:
    value, low, high = size_MiB(described(curve(room_MiB)))
    assert low <= value <= high
    assert value == pytest.approx(room_MiB * 2**0.5, rel=0.15)


def test_nothing_is_said_without_the_curve() -> None:
    assert size_MiB(described(curve(6.0)[-2:])) == (260.0, 260.0, 260.0)
    assert size_MiB(described(curve(6.0)[:-1])) == (260.0, 260.0, 260.0)

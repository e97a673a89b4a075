"""Measured facts that cannot be are not written; those that hardly say anything are doubtful."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_hosts import figure, measured

from numatwin.inputs import Quantity
from numatwin.topologies import build_machine, load_machine
from numatwin.topologies.measurements import Measurement
from numatwin.topologies.schema import Cache, MachineDescription, NodeType
from numatwin.topologies.schema_types import ProcessorIdentity
from numatwin.validate.measure import Result, measured_description, merged
from numatwin.validate.measure.plausible import OF_CORES, plausible

ICE_LAKE = ProcessorIdentity(vendor="GenuineIntel", model_name="Intel(R) Xeon(R) Platinum 8380")
LATENCY = figure("memory.latency", 100e-9, "time")


def lines(under_way: float, spread: float = 0.0) -> Measurement:
    """Independent loads of one core at 100 ns that have so many lines under way."""
    return figure("random_reads", under_way / 100e-9, "rate", spread=spread)


def host(*figures: Measurement, processor: ProcessorIdentity | None = ICE_LAKE) -> Result:
    """A measured host of that processor."""
    found = measured([LATENCY, *figures])
    description = found.layout.description
    kind = description.node_types["node"].model_copy(update={"processor": processor})
    described = description.model_copy(update={"node_types": {"node": kind}})
    return replace(found, layout=replace(found.layout, description=described))


def kind(description: MachineDescription) -> NodeType:
    return description.node_types["node"]


def test_half_a_line_under_way_is_not_written_but_the_catalogues() -> None:
    """The figures of a busy host: 0.5 lines between passes, one with 11.8."""
    found = measured_description(merged([host(lines(x)) for x in (0.5069, 0.05, 11.8)]))
    fact = kind(found).outstanding_misses
    assert fact is not None
    assert fact.value > 1.0
    assert (fact.source or "").startswith("catalogue (xeon-scalable-3")
    assert fact.range is None or fact.range[0] >= 1.0
    (told,) = [text for text in found.warnings if text.startswith("not written")]
    assert "node_types.node.outstanding_misses: found 0.5069, expected 1 to 1000" in told
    assert not any(text.startswith("doubtful") for text in found.warnings)
    assert f"taken instead: {fact.value:g}, catalogue (xeon-scalable-3" in told


def test_what_the_catalogue_does_not_have_is_left_out() -> None:
    together = figure("random_reads_together", 0.4 / 100e-9, "rate", threads=2)
    found = measured_description(host(together, figure("system_call", 1e-9, "time")))
    assert kind(found).outstanding_misses_together is None
    (told, of_lines) = sorted(w for w in found.warnings if w.startswith("not written"))[::-1]
    assert "system_call: found 1e-09, expected 1e-08 to 0.001" in told
    assert "0.2" in of_lines
    assert "left out, the catalogue has none" in of_lines


def test_a_possible_fact_whose_passes_are_far_apart_is_doubtful_and_told() -> None:
    """Quartiles of 2, 6 and 12: from 4 to 9. Of 9, 10 and 11: 9.5 to 10.5."""
    apart = measured_description(merged([host(lines(x)) for x in (2, 6, 12)]))
    near = measured_description(merged([host(lines(x)) for x in (9, 10, 11)]))
    for found, doubtful in ((apart, True), (near, False)):
        fact = kind(found).outstanding_misses
        assert fact is not None
        assert fact.doubtful == doubtful
        told = [text for text in found.warnings if text.startswith("doubtful: ")]
        assert len(told) == doubtful
    assert "node_types.node.outstanding_misses (quartiles a factor of 2 apart" in (
        "".join(w for w in apart.warnings if w.startswith("doubtful"))
    )


def test_ranges_end_where_the_bounds_do() -> None:
    found = measured_description(host(lines(1.5, spread=0.8)))
    fact = kind(found).outstanding_misses
    assert fact is not None
    assert fact.range == pytest.approx((1.0, 2.7))
    assert fact.doubtful


def with_caches(*latencies_ns: float, memory_ns: float = 100.0) -> MachineDescription:
    """Levels of cache, and memory, as fast as this."""
    seconds = [ns * 1e-9 for ns in (*latencies_ns, memory_ns)]
    time = [Quantity(s, s, s, "measured") for s in seconds]
    size = Quantity(2**20, 2**20, 2**20)
    caches = tuple(
        Cache(level=k + 1, size=size, latency=latency) for k, latency in enumerate(time[:-1])
    )
    description = host().layout.description
    memory = kind(description).memory.model_copy(update={"latency": time[-1]})
    kept = kind(description).model_copy(update={"caches": caches, "memory": memory})
    return description.model_copy(update={"node_types": {"node": kept}})


@pytest.mark.parametrize(
    ("description", "wrong"),
    [
        (with_caches(1.5, 5.0, 20.0), []),
        (with_caches(1.5, 1.0, 20.0), ["caches.1.latency"]),
        (with_caches(1.5, 5.0, 137.0), ["caches.2.latency"]),
        (with_caches(1.5, 5.0, 20.0, memory_ns=3.0), ["memory.latency"]),
    ],
)
def test_caches_and_memory_stand_in_their_order(
    description: MachineDescription, wrong: list[str]
) -> None:
    found, told = plausible(description)
    assert [text.split(": ")[1].removeprefix("node_types.node.") for text in told] == wrong
    known = [cache.latency for cache in kind(found).caches]
    values = [latency.value for latency in known if latency is not None]
    assert values == sorted(values)
    assert plausible(found) == (found, [])


@given(st.floats(1e-3, 1e6))
def test_whatever_is_measured_what_is_written_can_be(under_way: float) -> None:
    found = measured_description(host(lines(under_way), processor=None))
    fact, bounds = kind(found).outstanding_misses, OF_CORES["outstanding_misses"]
    assert fact is None or bounds.low <= fact.value <= bounds.high
    told = [text for text in found.warnings if text.startswith("not written")]
    possible = bounds.low <= float(f"{under_way:.4g}") <= bounds.high
    assert len(told) == (not possible)
    build_machine(found)


def test_bundled_machines_are_within_bounds() -> None:
    from numatwin.topologies.catalogue import CATALOGUE

    for name in CATALOGUE.names():
        assert plausible(load_machine(name).description)[1] == [], name

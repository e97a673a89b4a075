"""The catalogue of facts: every entry is plausible, and is found by the names that it lists."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from numatwin.inputs import Quantity, parse_yaml
from numatwin.topologies import MachineDescription, build_machine, load_machine
from numatwin.topologies.facts import Entry, complete, facts, find, guess_for
from numatwin.topologies.facts.catalogue import FOLDER
from numatwin.topologies.facts.schema import Processor
from numatwin.topologies.importers import import_machine
from numatwin.topologies.schema import ProcessorIdentity
from numatwin.topologies.schema_types import Fact

PROCESSORS = sorted(facts().processors)
WANTED = (
    "xeon-5500 xeon-7500 xeon-5600 xeon-e7 xeon-e5 xeon-e5-v2 xeon-e7-v2 xeon-e5-v3 "
    "xeon-e7-v3 xeon-e5-v4 xeon-e7-v4 xeon-scalable-1 xeon-scalable-2 xeon-scalable-3h "
    "xeon-scalable-3 xeon-scalable-4 xeon-scalable-5 xeon-6900p xeon-6700p opteron-6100 "
    "opteron-6200 epyc-7001 epyc-7002 epyc-7003 epyc-9004 epyc-9005 graviton-2 graviton-3 "
    "graviton-4 ampere-altra power8 power9 power10 itanium-2 "
)


def named(model_name: str) -> Entry:
    found = find(ProcessorIdentity(model_name=model_name))
    assert found is not None
    return found


def processor(name: str) -> Processor:
    return facts().processors[name]


def values(part: object) -> Iterator[Quantity | Fact]:
    """All numbers with a range in an entry."""
    if isinstance(part, (Quantity, Fact)):
        yield part
    elif isinstance(part, dict):
        for inner in part.values():
            yield from values(inner)
    elif isinstance(part, tuple):
        for inner in part:
            yield from values(inner)
    elif isinstance(part, BaseModel):
        for name in type(part).model_fields:
            yield from values(getattr(part, name))


def test_the_generations_that_matter_are_there() -> None:
    assert set(WANTED.split()) <= set(PROCESSORS)


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_pattern_matches_its_example_and_no_other(name: str) -> None:
    for other, entry in facts().processors.items():
        for known in entry.names:
            for pattern in processor(name).names:
                found = re.search(pattern.pattern, known.example, re.IGNORECASE)
                assert bool(found) == (other == name), (pattern.pattern, known.example)
    for known in processor(name).names:
        assert named(known.example).name == name


@pytest.mark.parametrize("name", PROCESSORS)
def test_peak_bandwidth_is_that_of_the_data_sheet(name: str) -> None:
    """Channels × transfers × width, within what data sheets round."""
    memory = processor(name).memory
    if memory.data_sheet is None:
        pytest.skip("no data sheet tells it")
    peak_Bps = memory.channels * facts().memory_types[memory.type].channel_Bps
    assert peak_Bps == pytest.approx(memory.data_sheet.value, rel=0.01)


@pytest.mark.parametrize("name", PROCESSORS)
def test_an_entry_is_plausible(name: str) -> None:
    one = processor(name)
    latency, share = one.latency, one.memory.share
    assert one.source
    assert 50e-9 <= latency.local.value <= 250e-9
    if latency.neighbour is not None:
        assert latency.local.value < latency.neighbour.value
    if latency.remote is not None:
        assert latency.local.value + 15e-9 < latency.remote.value <= 450e-9
        if latency.neighbour is not None:
            assert latency.neighbour.value < latency.remote.value
    assert 0.3 <= share.value <= 0.95
    assert share.range is not None
    assert 0.8e9 <= one.clock.value <= 4e9
    low, high = share.range
    assert low < share.value < high <= 0.96
    assert share.source
    for each in (latency.local, latency.remote, latency.neighbour):
        assert each is None or (each.source and each.low < each.value < each.high)
    if one.links is not None:
        rate_Bps = one.links.rate.value * facts().interconnects[one.links.type].width.value
        assert 1e9 <= rate_Bps <= 130e9
        assert one.links.io < one.links.count
    if max(one.nodes_per_socket) > 1:
        assert latency.neighbour is not None
    else:
        assert one.within == "mesh"


@pytest.mark.parametrize("name", PROCESSORS)
def test_models_are_within_their_family(name: str) -> None:
    one = processor(name)
    for text, model in one.models.items():
        assert model.cores is None or model.cores <= one.cores, text
        if model.clock is not None:
            assert one.clock.low <= model.clock.value <= one.clock.high, text
            assert model.turbo is None or model.turbo.value >= model.clock.value, text
        if model.cache is not None:
            assert one.last_level is not None
            assert one.last_level.size.low <= model.cache.value <= one.last_level.size.high, text
        if model.link_rate is not None and one.links is not None:
            assert one.links.rate.low <= model.link_rate.value <= one.links.rate.high, text


@pytest.mark.parametrize(
    ("model", "count", "GBps"),
    [
        ("Platinum 8180", 3, 50.9),
        ("Gold 6252N", 3, 51.3),
        ("Silver 4416+", 2, 63.2),
        ("Max 9462", 3, 92.0),
        ("Gold 6548Y+", 3, 122.0),
    ],
)
def test_links_reach_what_was_measured_over_them(model: str, count: int, GBps: float) -> None:
    """Lines that a socket's cores read of the other's memory, by Intel MLC, with their headers."""
    links = named(model).links
    assert links is not None
    assert (links.fewest or links.count) <= count <= links.count
    known = facts().interconnects[links.type]
    assert known.data_header is not None
    rated_Bps = count * links.rate.value * known.width.value
    reached = GBps * 1e9 * (64.0 + known.data_header.value) / 64.0 / rated_Bps
    assert reached == pytest.approx(known.reached.value, rel=0.04)


@pytest.mark.parametrize("name", sorted(facts().cores))
def test_a_core_is_plausible(name: str) -> None:
    core = facts().cores[name]
    assert 0.5 <= core.ipc.value <= 3
    assert core.ipc.range is not None  # nobody publishes it
    assert 4 <= core.outstanding_misses.value <= 32
    if core.streaming_misses is not None:
        assert core.streaming_misses.value >= core.outstanding_misses.value
    if core.reorder_window is not None:
        assert 60 <= core.reorder_window.value <= 600
    cycles = [cache.cycles.value for cache in core.caches]
    assert cycles == sorted(cycles)
    sizes = [cache.size.value for cache in core.caches]
    assert sizes == sorted(sizes)


def test_every_range_holds_its_value() -> None:
    for part in ("memory_types", "memory_nodes", "interconnects", "cores", "processors"):
        for value in values(getattr(facts(), part)):
            if isinstance(value, Quantity):
                assert value.low <= value.value <= value.high
                assert math.isfinite(value.high)


def test_what_numbers_say() -> None:
    """One entry for each set of numbers, but for cores that several makers use."""
    seen: dict[object, str] = {}
    for name, one in facts().processors.items():
        numbers: list[object] = [
            (c.vendor, c.family, model, c.steppings)
            for c in one.cpuid
            for model in c.models or (-1,)
        ]
        numbers += [("arm", m.implementer, part, one.board) for m in one.midr for part in m.parts]
        numbers += list(one.pvr)
        for number in numbers:
            assert number not in seen, (name, seen.get(number))
            seen[number] = name


INTEL = {"vendor": "GenuineIntel", "family": 6}


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ({**INTEL, "model": 47}, "xeon-e7"),
        ({**INTEL, "model": 85, "stepping": 4}, "xeon-scalable-1"),
        ({**INTEL, "model": 85, "stepping": 7}, "xeon-scalable-2"),
        # What QEMU calls it.
        (
            {**INTEL, "model": 106, "model_name": "Intel Xeon Processor (Icelake)"},
            "xeon-scalable-3",
        ),
        ({"vendor": "AuthenticAMD", "family": 26, "model": 17}, "epyc-9005"),
        ({"implementer": 0x41, "part": 0xD0C}, "ampere-altra"),
        ({"implementer": 0x41, "part": 0xD0C, "board": "Amazon EC2"}, "graviton-2"),
        ({"implementer": 0x41, "part": 0xD4F, "board": "Amazon EC2"}, "graviton-4"),
        ({"implementer": 0x41, "part": 0xD4F}, "nvidia-grace"),
        ({"pvr": 0x4D}, "power8"),
        ({"pvr": 0x80}, "power10"),
        ({"vendor": "GenuineIntel", "family": 31, "model": 2}, "itanium-2"),
    ],
)
def test_found_by_numbers(identity: dict[str, object], name: str) -> None:
    found = find(ProcessorIdentity.model_validate(identity))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("text", "entry", "model"),
    [
        ("Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz", "xeon-e7", "E7-4870"),
        ("Intel(R) Xeon(R) CPU E5-2660 0 @ 2.20GHz", "xeon-e5", "E5-2660"),
        ("Intel(R) Xeon(R) CPU E5-2660 v2 @ 2.20GHz", "xeon-e5-v2", "E5-2660 v2"),
        ("Intel(R) Xeon(R) CPU E5-2699 v3 @ 2.30GHz", "xeon-e5-v3", "E5-2699 v3"),
        ("Xeon Gold 6148", "xeon-scalable-1", "Gold 6148"),
        ("Intel(R) Xeon(R) Platinum 8480+", "xeon-scalable-4", "Platinum 8480+"),
        ("Intel(R) Xeon(R) Platinum 8360H CPU @ 3.00GHz", "xeon-scalable-3h", "Platinum 8360H"),
        ("AMD EPYC 7763 64-Core Processor", "epyc-7003", "7763"),
        ("AMD EPYC 7773X 64-Core Processor", "epyc-7003", "7773X"),
        ("AMD EPYC 9R14 96-Core Processor", "epyc-9004", "9R14"),
        ("Opteron 6174", "opteron-6100", "6174"),
        ("Opteron 6276", "opteron-6200", "6276"),
        ("Opteron 8356", "opteron-k10", "8356"),
    ],
)
def test_models_by_name(text: str, entry: str, model: str | None) -> None:
    found = named(text)
    assert (found.name, found.model_name) == (entry, model)


def test_what_is_not_there_is_a_guess_by_its_maker() -> None:
    assert find(None) is None
    strange = ProcessorIdentity(vendor="GenuineIntel", family=6, model=1)
    assert find(strange) is None
    assert guess_for(strange).vendors == ("GenuineIntel",)
    assert guess_for(ProcessorIdentity(vendor="IBM/S390")).vendors == ()
    assert guess_for(None).vendors == ()


@pytest.mark.parametrize("guess", facts().guesses, ids=lambda guess: guess.title)
def test_guesses_hold_what_is_known(guess: object) -> None:
    """Their ranges hold the typical values of the processors they stand for."""
    from numatwin.topologies.facts.schema import Guess

    assert isinstance(guess, Guess)
    assert guess.clock.low < guess.clock.high
    for name, one in facts().processors.items():
        vendors = {cpu.vendor for cpu in one.cpuid} | ({"Arm"} if one.midr else set())
        if not guess.vendors or vendors & set(guess.vendors):
            if name == "itanium-2":
                continue  # no kin of today's
            assert guess.latency.local.low <= one.latency.local.value <= guess.latency.local.high


UNVERIFIED = "Estimate, not verified: "


def test_what_was_not_verified_says_so() -> None:
    """Every estimate says that nobody checked it; a latency among them has a wide range."""
    for path in FOLDER.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'"Estimate(?!, not verified: )', text), path.name
    for name, one in facts().processors.items():
        latencies = [one.latency.local, one.latency.remote, one.latency.neighbour]
        for latency in latencies:
            if latency is not None and (latency.source or "").startswith(UNVERIFIED):
                assert latency.low <= 0.87 * latency.value, name
                assert latency.high >= 1.22 * latency.value, name


@pytest.mark.parametrize(
    ("text", "entry", "channels"),
    [
        ("Intel(R) Xeon(R) W-2145 CPU @ 3.70GHz", "xeon-w-2100", 4),
        ("Intel(R) Xeon(R) W-2295 CPU @ 3.00GHz", "xeon-w-2100", 4),
        ("Intel(R) Xeon(R) W-3175X CPU @ 3.10GHz", "xeon-w-3200", 6),
        ("Intel(R) Xeon(R) W-3223 CPU @ 3.50GHz", "xeon-w-3200", 6),
        ("Intel(R) Xeon(R) W-3345 CPU @ 3.00GHz", "xeon-w-3300", 8),
        ("Intel(R) Xeon(R) w5-2465X", "xeon-w-2400", 4),
        ("Intel(R) Xeon(R) w7-3565X", "xeon-w-3400", 8),
        ("Intel(R) Xeon(R) CPU D-1541 @ 2.10GHz", "xeon-d-1500", 2),
        ("Intel(R) Xeon(R) D-2123IT CPU @ 2.20GHz", "xeon-d-2100", 4),
        ("Intel(R) Xeon(R) D-1718T CPU @ 2.60GHz", "xeon-d-1700", 3),
        ("Intel(R) Xeon(R) D-2776NT CPU @ 2.10GHz", "xeon-d-2700", 4),
    ],
)
def test_one_socket_processors_have_their_own_channels(
    text: str, entry: str, channels: int
) -> None:
    """By CPUID they are servers, which have six or eight."""
    for numbers in ({}, {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 7}):
        found = find(ProcessorIdentity(model_name=text, **numbers))
        assert found is not None
        assert (found.name, found.processor.memory.channels) == (entry, channels)


# Measured machines: processor, nodes of a socket. Those with node controllers have
# their own distances between sockets.
MEASURED = {
    "amd-8n-ht": ("Opteron 6274", 2),
    "epyc-2s-nps4": ("EPYC 9654", 4),
    "epyc-2s-cxl": ("EPYC 9224", 2),
    "ib-fdr-8n": ("E5-2660 v2", 1),
    "intel-4s-qpi": ("E7-4860", 1),
    "opteron-4n": ("Opteron 8356", 1),
    "sgi-uv2000-64n": ("E5-4650L", 1),
    "sgi-uv300h-8s": ("E7-8890 v2", 1),
    "xeon-2s-spr-snc4": ("Platinum 8480+", 4),
    "xeon-32s-hsw": ("E7-8890 v3", 1),
    "xeon-4s-ivb": ("E7-4880 v2", 1),
    "xeon-8s-ivb": ("E7-8880 v2", 1),
    "mlc/ivybridge-2s.txt": ("E5-2680 v2", 1),
    "mlc/skylake-2s.txt": ("Gold 6140", 1),
    "mlc/icelake-2s.txt": ("Platinum 8360Y", 1),
}
APART = ("sgi", "ib", "xeon-32s")
SHARED = Path(__file__).parents[3] / "shared" / "data"


def test_ranges_hold_nine_of_ten_measured_values() -> None:
    """Of the machine epyc-2s-cxl half of the channels have modules: its bandwidth is below."""
    outside, count = [], 0
    for name, (model, parts) in MEASURED.items():
        path = SHARED / name
        if "/" in name and not path.exists():
            continue
        machine = build_machine(import_machine(path)) if "/" in name else load_machine(name)
        one = named(model).processor
        memory, types, latency = one.memory, facts().memory_types, one.latency
        assert memory.share.range is not None
        slow = types[memory.slowest or memory.type].channel_Bps
        bounds = [share * memory.channels / parts for share in memory.share.range]
        Bps = (bounds[0] * slow, bounds[1] * types[memory.type].channel_Bps)
        ranges = [(machine.bandwidth_Bps[0, 0], *Bps)]
        ranges.append((machine.latency_ns[0, 0] / 1e9, latency.local.low, latency.local.high))
        if latency.remote is not None and not name.startswith(APART):
            ns = machine.latency_ns[0, parts]
            ranges.append((ns / 1e9, latency.remote.low, latency.remote.high))
        for value, low, high in ranges:
            count += 1
            if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
                outside.append((name, value, low, high))
    assert count >= 32
    assert len(outside) <= 0.1 * count, outside


def test_sockets_on_node_controllers_draw_what_was_measured() -> None:
    """Of the SGI UV 2000: 6.5 to 9.5 GB/s between sockets of two QPI links each."""
    slit = [[10 if a == b else 50 if a // 2 == b // 2 else 65 for b in range(8)] for a in range(8)]
    nodes = "".join(f"  - {{id: {k}, type: node, group: p{k}}}\n" for k in range(8))
    text = (
        "name: glued\nnode_types: {node: {processor: {model_name: Xeon E5-4640}, cores: 8, "
        f"memory: {{size: 1 GiB}}}}}}\nnodes:\n{nodes}slit: {slit}\n"
    )
    described = complete(parse_yaml(text, "glued.yaml").read_as(MachineDescription)).description
    bandwidth = described.link_types["socket"].bandwidth
    assert bandwidth.low < 6.5e9
    assert bandwidth.high > 9.5e9
    assert 6e9 < bandwidth.value < 10e9


def test_guessed_bandwidth_of_a_core_holds_that_of_the_catalogue() -> None:
    """90% of the families, and several processors on one front-side bus."""
    (guess,) = [one for one in facts().guesses if not one.vendors]
    each, inside = guess.bandwidth_per_core, 0
    for one in facts().processors.values():
        peak_Bps = one.memory.channels * facts().memory_types[one.memory.type].channel_Bps
        inside += each.low <= one.memory.share.value * peak_Bps / one.cores <= each.high
    assert inside >= 0.9 * len(PROCESSORS)
    assert each.low <= 5.1e9 / 24

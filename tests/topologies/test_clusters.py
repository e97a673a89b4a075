"""Adapters of the catalogue, and clusters made with them."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from numatwin.inputs import InputError, Quantity
from numatwin.topologies import build_machine, load_machine
from numatwin.topologies.facts import facts, find
from numatwin.topologies.facts.clusters import Cluster, Server, build_cluster, build_server
from numatwin.topologies.schema import ProcessorIdentity

GIB = 2.0**30
MEMORY = Quantity(256 * GIB, 256 * GIB, 256 * GIB)
ADAPTERS = sorted(facts().adapters)


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_is_plausible(name: str) -> None:
    one = facts().adapters[name]
    speed = int(name.rsplit("-", 1)[1]) if name[-1].isdigit() else None
    if speed is not None:
        assert one.bandwidth.value == speed * 1e9 / 8
    fast = name.startswith(("roce", "infiniband"))
    assert (0.5e-6 <= one.latency.value <= 2e-6) == fast
    assert one.latency.low < one.latency.value < one.latency.high
    assert one.latency.source
    if one.read_latency is not None:
        assert one.latency.value < one.read_latency.value <= 2.2 * one.latency.value
    assert (one.transport == "TCP") == (one.read_latency is None)
    assert (one.transport == "TCP") == (one.message_rate is None)
    packet, header = one.packet.value, one.header.value
    assert one.payload.value <= packet / (packet + header) + 0.02


def test_faster_generations_are_faster() -> None:
    order = ["infiniband-fdr", "infiniband-edr", "infiniband-hdr", "infiniband-ndr"]
    known = [facts().adapters[name] for name in order]
    assert [one.bandwidth.value for one in known] == sorted(one.bandwidth.value for one in known)
    rates = [one.message_rate.value for one in known if one.message_rate is not None]
    assert rates == sorted(rates)


def test_a_cluster() -> None:
    description = build_cluster(Cluster("c", 8, "EPYC 7763", "roce-100", MEMORY, sockets=2))
    machine = build_machine(description)
    assert len(machine.nodes) == 8
    assert machine.nodes[0].cores == 128
    # 85% of both sockets' eight channels.
    assert machine.nodes[0].memory_bandwidth_Bps == pytest.approx(0.85 * 2 * 204.8e9, rel=1e-3)
    assert machine.latency_ns[0, 1] == pytest.approx(100 + 2800)
    assert machine.hops[0, 1] == 2
    (nic,) = description.nics
    assert nic.bandwidth.value == 12.5e9
    assert nic.message_rate is not None
    assert nic.message_rate.value == 200e6
    assert "nics.0.message_rate" in machine.doubtful


@pytest.mark.parametrize(
    ("processor", "most"),
    [
        ("Xeon Platinum 8480+", 8),
        ("Xeon Platinum 8380", 2),
        ("Xeon E7-8890 v3", 8),
        ("EPYC 7763", 2),
        ("AWS Graviton3", 1),
        ("POWER9", 16),
        ("EPYC 8534P", 1),
    ],
)
def test_no_more_sockets_than_there_are_servers_of(processor: str, most: int) -> None:
    build_cluster(Cluster("c", 2, processor, "roce-100", MEMORY, sockets=most, cores=8))
    expected = f"1 to {most}" if most > 1 else "1"
    with pytest.raises(InputError, match=f"found '{most + 1}', expected {expected}$"):
        build_cluster(Cluster("c", 2, processor, "roce-100", MEMORY, sockets=most + 1, cores=8))


@pytest.mark.parametrize(
    ("processor", "mebibytes", "cores"),
    [
        ("EPYC 7763", 32, 8),
        ("EPYC 7773X", 96, 8),
        ("EPYC 7543", 32, 4),
        ("EPYC 7502", 16, 4),
        ("EPYC 9224", 16, 6),
        ("EPYC 9354", 32, 4),
        ("EPYC 7313P", 32, 4),
        ("EPYC 7281", 4, 2),
        ("EPYC 9754", 16, 8),
        ("EPYC 9965", 32, 16),
    ],
)
def test_cores_of_a_complex_share_a_last_level(processor: str, mebibytes: int, cores: int) -> None:
    """What a socket has is divided among its core complexes."""
    made = build_machine(build_cluster(Cluster("c", 2, processor, "roce-100", MEMORY)))
    last = made.nodes[0].caches[-1]
    assert (last.level, last.shared_by_cores) == (3, cores)
    assert last.size_bytes == pytest.approx(mebibytes << 20, rel=1e-3)


MODELS = [
    (entry, model) for entry, one in sorted(facts().processors.items()) for model in one.models
]
TABLE = Path(__file__).parents[3] / "shared" / "data" / "server-processors.csv"
# Where the crowd-sourced table seems wrong: what a cloud shows, or two sockets in one.
CORRECTED = {"EPYC 9R14": (96, 192), "Xeon Platinum 8272CL": (26, 52)}


@pytest.mark.parametrize(("entry", "model"), MODELS)
def test_every_model_has_its_own_cores_and_threads(entry: str, model: str) -> None:
    """As its name alone says, with what stands before it in its family's example."""
    known = facts().processors[entry]
    prefix = known.names[0].example.split(model.split("-")[0])[0].split("  ")[0]
    words = ("EPYC ", "Xeon ", "Opteron ", "Xeon Max ", "AWS ", "Ampere Altra ", "NVIDIA ", prefix)
    found = [e for e in map(find, map(identity, [w + model for w in words])) if e is not None]
    made = [e for e in found if (e.name, e.model_name) == (entry, model)]
    assert made, (entry, model)
    assert made[0].cores == known.models[model].cores
    assert made[0].threads_per_core in (1, 2)


def identity(text: str) -> ProcessorIdentity:
    return ProcessorIdentity(model_name=text)


def test_models_of_the_crowd_sourced_table() -> None:
    if not TABLE.exists():
        pytest.skip("no ../shared/data/server-processors.csv")
    left_out = []
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = find(identity(row["model"]))
            if entry is None or entry.model.cores is None:
                left_out.append(row["model"])
                continue
            told = CORRECTED.get(row["model"], (int(row["cores"]), int(row["threads"])))
            assert (entry.cores, entry.cores * entry.threads_per_core) == told, row["model"]
    assert len(left_out) <= 11, left_out


def test_a_server_has_the_cores_of_its_model() -> None:
    machine = build_machine(
        build_cluster(Cluster("c", 2, "EPYC 9354", "roce-100", MEMORY, sockets=2))
    )
    assert (machine.nodes[0].cores, machine.threads) == (64, 2 * 128)
    with pytest.raises(InputError, match=r"cores unknown: .*'EPYC 8534P', expected --cores N"):
        build_cluster(Cluster("c", 2, "EPYC 8534P", "roce-100", MEMORY))
    told = build_cluster(Cluster("c", 2, "EPYC 8534P", "roce-100", MEMORY, cores=64))
    assert told.node_types["server"].cores == 64
    assert "threads per core and clock and last-level cache" in told.notes[-1]


def test_like_the_bundled_one() -> None:
    """The cluster of the NAM study, but for its second port and what was measured of it."""
    made = build_machine(build_cluster(Cluster("c", 8, "E5-2660 v2", "infiniband-fdr", MEMORY)))
    assert made.nodes[0].cores == 10
    assert made.nodes[0].clock_Hz == 2.2e9
    assert made.latency_ns[0, 1] == pytest.approx(2000, rel=0.05)


@pytest.mark.parametrize("bundled", ["epyc-2s-nps1", "epyc-2s-nps4"])
def test_a_server_like_the_bundled_one(bundled: str) -> None:
    """Its nodes and sockets are those of the bundled machine; bandwidths agree within ranges."""
    known = load_machine(bundled)
    each = len(known.nodes) // 2
    made = build_machine(build_server(Server("s", "EPYC 9654", MEMORY, 2, each)))
    assert [node.cores for node in made.nodes] == [node.cores for node in known.nodes]
    assert [node.group for node in made.nodes] == [node.group for node in known.nodes]
    assert made.threads == known.threads
    assert sum(node.memory_bytes for node in made.nodes) == MEMORY.value
    drawn = made.description.node_types["node"].memory.bandwidth
    measured = known.nodes[0].memory_bandwidth_Bps
    assert drawn is not None
    assert measured is not None
    assert drawn.low <= measured <= drawn.high


def test_a_server_of_what_its_owner_knows() -> None:
    """The modules that are fitted; the model's dies and links, not its family's most."""
    known = Server("s", "EPYC 7452", MEMORY, 2, modules="DDR4-2666")
    node = build_machine(build_server(known)).nodes[0]
    assert node.memory_bandwidth_Bps == pytest.approx(0.85 * 8 * 21.33e9, rel=1e-3)
    assert (node.die_Bps, node.die_cores) == (40e9, 8)  # two complexes of four cores
    dense = build_machine(build_server(replace(known, processor="EPYC 9754", modules=None)))
    assert (dense.nodes[0].die_Bps, dense.nodes[0].die_cores) == (50.4e9, 16)
    half = replace(known, processor="EPYC 9654", nodes_per_socket=2, modules="6xDDR5-4400")
    node = build_machine(build_server(half)).nodes[0]
    assert node.memory_bandwidth_Bps == pytest.approx(0.87 * 6 * 35.2e9 / 2, rel=1e-3)
    one, two = (
        build_machine(build_server(Server("s", model, MEMORY, 2))).links[0].bandwidth_Bps
        for model in ("Xeon Gold 6230", "Xeon Silver 4214")
    )
    assert two < 0.7 * one


def test_a_server_with_an_expander() -> None:
    machine = build_machine(build_server(Server("s", "Xeon 6979P", MEMORY, 1, 3, expander=MEMORY)))
    assert [node.cores for node in machine.nodes] == [40, 40, 40, 0]
    assert machine.nodes[3].memory_kind == "CXL"
    assert machine.nodes[3].memory_bytes == MEMORY.value
    assert machine.latency_ns[0, 3] > 1.5 * machine.latency_ns[0, 1]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Server("s", "EPYC 9554", MEMORY, 2, 3), "'3', expected 1 or 2 or 4"),
        (Server("s", "EPYC 9554", MEMORY, 3), "'3', expected 1 to 2"),
        (Server("s", "Xeon Gold 6148", MEMORY, 2, 4), "'4', expected 1 or 2"),
        (Server("s", "EPYC 9554", MEMORY, modules="9xDDR9"), "expected a type, such as DDR5-4800"),
        (Server("s", "EPYC 9554", MEMORY, modules="13xDDR5-4800"), "so many of 12 channels"),
        (Server("s", "EPYC 9554", MEMORY, modules="DDR4-3200"), "expected a type, such as DDR5"),
        (Server("s", "EPYC 9354P", MEMORY, 2), "wrong number of sockets of 9354P: found '2'"),
        (Server("s", "EPYC 9354", MEMORY, cores=48), "more cores than 9354 has: found '48'"),
        (Cluster("c", 8, "Z80", "roce-100", MEMORY), "'Z80'"),
        (Cluster("c", 8, "EPYC 7763", "arcnet", MEMORY), "'arcnet', expected one of ethernet-10"),
        (Cluster("c", 1, "EPYC 7763", "roce-100", MEMORY), "'1', expected 2 to 1,024"),
    ],
)
def test_refused(wanted: Cluster | Server, message: str) -> None:
    with pytest.raises(InputError) as refused:
        build_cluster(wanted) if isinstance(wanted, Cluster) else build_server(wanted)
    assert message in str(refused.value)

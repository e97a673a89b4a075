"""Real machines' files: every one imports, and says what is known of its machine."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from known import known
from refusals import told_by

from numatwin.inputs import parse_yaml
from numatwin.topologies import Machine, MachineDescription, build_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.importers import import_machine

DATA = Path(__file__).parents[3] / "shared" / "data"
DOCUMENTS = {"COPYING", "SOURCES.md"}
FILES = sorted(path for path in DATA.glob("*/*") if path.is_file() and path.name not in DOCUMENTS)

# Unpacking a tree takes seconds.
imported = cache(import_machine)

pytestmark = pytest.mark.skipif(not FILES, reason="no folder ../shared/data with real inputs")


def machine(name: str) -> Machine:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {name} in ../shared/data")
    return build_machine(imported(path))


def test_ways_of_a_xeon_e5_4640() -> None:
    (caches,) = {node.caches for node in machine("hwloc/192em64t-24n8c2t.xml").nodes}
    assert [(cache.level, cache.ways) for cache in caches] == [(1, 8), (2, 8), (3, 20)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_imports_and_exports(path: Path) -> None:
    description = imported(path)
    text = machine_yaml(description)
    assert parse_yaml(text, path.name).read_as(MachineDescription) == description
    again = build_machine(description).as_json()
    assert len(again["nodes"]) == len(description.nodes)


@pytest.mark.parametrize(
    ("name", "nodes", "cores", "threads", "distances"),
    [
        ("hwloc/64amd64-4s2n4ca2co.tar.bz2", 8, 64, 64, {10, 16, 22}),
        ("hwloc/40intel64-2g2n4c+pcilocality.tar.bz2", 4, 40, 40, {10, 20}),
        ("hwloc/192em64t-24n8c2t.xml", 24, 192, 384, {10, 50, 65, 79}),
        ("hwloc/16ia64-8n2s.tar.bz2", 8, 16, 16, {10, 25, 29}),
        ("hwloc/memorysidecaches.tar.bz2", 4, 40, 80, {10, 11, 21}),
        ("hwloc/64intel64-heteromem.xml", 8, 16, 64, None),
    ],
)
def test_shapes(
    name: str, nodes: int, cores: int, threads: int, distances: set[int] | None
) -> None:
    made = machine(name)
    assert len(made.nodes) == nodes
    assert sum(node.cores for node in made.nodes) == cores
    assert made.threads == threads
    if distances is None:
        assert made.slit is None
    else:
        assert set(known(made.slit).ravel().tolist()) == distances


def test_modules_share_a_cache() -> None:
    """An Opteron's module: two cores, one L2 of 2 MiB; a node's L3 has 6 MiB."""
    first = machine("hwloc/64amd64-4s2n4ca2co.tar.bz2").nodes[0]
    caches = [(c.level, c.size_bytes, c.shared_by_cores) for c in first.caches]
    assert caches == [(1, 16 << 10, 1), (2, 2 << 20, 2), (3, 6 << 20, 8)]


def test_memory_side_caches() -> None:
    made = machine("hwloc/memorysidecaches.tar.bz2")
    assert {node.side_cache_bytes for node in made.nodes} == {(96 << 30,)}
    assert [node.group for node in made.nodes] == ["package0", "package1"] * 2


def test_fast_and_slow_memory() -> None:
    """Four nodes with CPUs, each with a fast one beside it; hwloc's figures are in MiB/s."""
    made = machine("hwloc/64intel64-heteromem.xml")
    assert [node.cores for node in made.nodes] == [4] * 4 + [0] * 4
    assert [node.memory_kind for node in made.nodes] == ["DRAM"] * 4 + ["HBM"] * 4
    assert [bool(node.side_cache_bytes) for node in made.nodes] == [True] * 4 + [False] * 4
    assert np.diag(made.bandwidth_Bps)[:4].tolist() == [22_500 * 2**20] * 4
    fast = made.bandwidth_Bps[:4, 4:]
    assert np.nansum(fast, axis=1).tolist() == [90_000 * 2**20] * 4
    assert (~np.isnan(fast)).sum() == 4


def test_measured_by_mlc() -> None:
    made = machine("mlc/skylake-2s.txt")
    assert made.latency_ns.ravel().tolist() == pytest.approx([90.2, 144.3, 143.2, 89.1])
    assert made.bandwidth_Bps.ravel().tolist() == [104362.2e6, 34290.6e6, 34283.3e6, 106028.4e6]
    assert len(made.loaded_latency) == 19
    assert made.loaded_latency[0] == pytest.approx((2027.6e6, 91.66))
    assert made.loaded_latency[-1] == pytest.approx((210643.1e6, 166.18))
    mixes = {mix.name: mix.bandwidth.value for mix in made.description.read_write_mixes}
    assert mixes == {
        "ALL Reads": 211194.2e6,
        "3:1 Reads-Writes": 193422.0e6,
        "2:1 Reads-Writes": 192554.0e6,
        "1:1 Reads-Writes": 185556.1e6,
        "Stream-triad like": 172770.4e6,
    }


# CPUs and cores by node ("8*16": 16 nodes of 8), SLIT between two nodes; or the error's words.
@pytest.mark.parametrize(
    ("name", "cpus", "distances"),
    [
        ("21-numactl-cpu-compress/numactl", "16*2", {(0, 1): 32}),
        ("21-numactl-cpu-compress/virtme-ng-wide-columns", "8*2", {(0, 1): 20}),
        ("22-gh200-fake-numa/lscpu-unmodified-gh200", "72 0*8", {}),
        ("22-gh200-fake-numa/numactl", "CPU 0 is listed twice: expected each CPU in one", {}),
        ("23-power9-gpu-nodes/numactl-unwrapped", "64*2 0*4", {(0, 1): 40, (0, 2): 80}),
        ("23-power9-gpu-nodes/numactl-wrapped", "64*2 0*4", {(0, 1): 40, (1, 5): 80}),
        ("23-power9-gpu-nodes/power8-smt-off", "5*2", {(0, 1): 20}),
        ("24-memoryless-nodes/epyc7551-2s-two-dimms", "16*8", {(0, 1): 16, (0, 4): 32}),
        ("24-memoryless-nodes/threadripper-nps4", "12*4", {(0, 1): 12}),
        ("25-a64fx-assistant-cores/numactl", "1*2 0*2 12*4", {(0, 4): 40, (4, 7): 30}),
        ("26-cxl-on-socket-1/lscpu", "no nodes: expected the lines 'NUMA node0", {}),
        ("26-cxl-on-socket-1/numactl-as-posted-partial", "node 0 has distances only", {}),
        ("26-cxl-on-socket-1/numactl-completed", "96*2 0*2", {(0, 2): 24, (1, 2): 14}),
        ("27-asymmetric-slit/gnr-snc3-distances-as-posted", "node 0 has distances only", {}),
        ("27-asymmetric-slit/gnr-snc3-numactl-constructed-cpus", "40*6", {(0, 4): 28, (4, 0): 23}),
        ("27-asymmetric-slit/hpe-8s-snc2-numactl-constructed-cpus", "22*16", {(0, 8): 40}),
        ("28-phytium-kunpeng-hygon/ft2500-lscpu-and-distances-as-posted", "8*16", {(0, 8): 100}),
        ("28-phytium-kunpeng-hygon/ft2500-numactl-constructed-sizes", "8*16", {(0, 2): 40}),
        ("28-phytium-kunpeng-hygon/hygon-2s-numactl", "16*4", {(0, 2): 28}),
        ("28-phytium-kunpeng-hygon/kunpeng920-4826-numactl", "24*4", {(1, 3): 24}),
        ("28-phytium-kunpeng-hygon/xeon8269-numa-off-numactl", "104", {(0, 0): 10}),
        ("29-numactl-in-a-log/clickhouse-perf-log", "40*2", {(0, 1): 21}),
        ("30-4s-square/numactl", "56*4", {(0, 1): 16, (0, 3): 24}),
        ("34-mlc-traps/mlc-w5-only", "no measurement of reads", {}),
    ],
)
def test_machines_of_every_kind(
    name: str, cpus: str, distances: dict[tuple[int, int], int]
) -> None:
    if not cpus[0].isdigit():
        assert cpus in told_by(machine, f"machines/{name}.txt")
        return
    made = machine(f"machines/{name}.txt")
    parts = [part.partition("*") for part in cpus.split()]
    expected = [int(size) for size, _, count in parts for _ in range(int(count or 1))]
    assert [len(node.cpus) for node in made.nodes] == expected
    for (a, b), distance in distances.items():
        assert known(made.slit)[a, b] == distance


@pytest.mark.parametrize(
    ("name", "GBps"),
    [
        ("mlc-reads-then-w5", (161.3122, 55.3893)),
        ("mlc-cxl-one-row", (30.5628, 4.7953)),
        ("mlc-v3.5-in-an-issue", (90.9357, 34.4574)),
        ("mlc-2s-smt-on", (111.388, 51.0857)),
        ("mlc-2s-smt-off", (113.2272, 51.3428)),
    ],
)
def test_read_bandwidths_of_mlc(name: str, GBps: tuple[float, float]) -> None:
    made = machine(f"machines/34-mlc-traps/{name}.txt")
    assert (made.bandwidth_Bps[0, :2] / 1e9).tolist() == pytest.approx(GBps)

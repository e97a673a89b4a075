"""The bundled machines against the tables that they are made from."""

import tarfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from numatwin.inputs import load_yaml
from numatwin.topologies import Machine, load_machine, machine_from_document, machine_names
from numatwin.topologies.catalogue import BUNDLED


def graph_of(machine: Machine) -> nx.Graph:
    """Vertices are node ids and hub names."""
    graph = nx.Graph()
    vertices = range(len(machine.nodes) + len(machine.hubs))
    graph.add_nodes_from(map(machine.vertex_name, vertices))
    graph.add_edges_from(tuple(map(machine.vertex_name, link.ends)) for link in machine.links)
    return graph


DATA = Path(__file__).parents[3] / "shared" / "data" / "hwloc"

# Published tables: machine -> class -> (GB/s, ns, links on the route, ordered pairs).
TABLES: dict[str, dict[str, tuple[float, float, int, int]]] = {
    "intel-4s-qpi": {"local": (26.7, 129, 0, 4), "1 hop QPI": (10.7, 193, 1, 12)},
    "amd-8n-ht": {
        "local": (16.4, 85, 0, 8),
        "1 hop, full link": (5.8, 136, 1, 8),
        "1 hop, split, single": (4.2, 152, 1, 12),
        "1 hop, split, dual": (2.9, 152, 1, 16),
        "2 hops, split, single": (3.7, 196, 2, 12),
        "2 hops, split, dual": (1.8, 196, 2, 8),
    },
    "sgi-uv2000-64n": {
        "local": (36.2, 81, 0, 64),
        "other socket of the blade": (9.5, 400, 2, 64),
        "1 hop NUMAlink": (7.5, 510, 3, 896),
        "2 hops NUMAlink": (7.5, 630, 4, 1664),
        "3 hops NUMAlink": (7.1, 750, 5, 1152),
        "4 hops NUMAlink": (6.5, 870, 6, 256),
    },
    "sgi-uv300h-8s": {
        "local": (50, 100, 0, 8),
        "1 hop QPI": (12.5, 200, 1, 16),
        "2 hops QPI": (12.5, 300, 2, 8),
        "other blade": (11.5, 500, 3, 32),
    },
    "xeon-4s-ivb": {"local": (67.5, 100, 0, 4), "1 hop QPI": (12.5, 205, 1, 12)},
    "xeon-8s-ivb": {
        "local": (67.5, 100, 0, 8),
        "1 hop QPI": (5.0, 320, 1, 24),
        "2 hops QPI": (8.5, 390, 2, 32),
    },
    "xeon-32s-hsw": {
        "local": (42.6, 120, 0, 32),
        "1 hop QPI": (15, 320, 1, 64),
        "2 hops QPI": (11, 400, 2, 32),
        "other blade": (7.5, 590, 3, 896),
    },
    "ib-fdr-8n": {"local": (51.2, 80, 0, 8), "other server, one-sided READ": (13.8, 2000, 2, 56)},
}

CHECKED_PAIRS = [(name, row) for name, table in TABLES.items() for row in table]


@pytest.mark.parametrize(("name", "row"), CHECKED_PAIRS)
def test_each_distance_class_has_its_published_values(name: str, row: str) -> None:
    machine = load_machine(name)
    names = [wanted.name for wanted in machine.description.distance_classes]
    pairs = machine.distance_class == names.index(row)
    gigabytes, nanoseconds, hops, count = TABLES[name][row]
    assert pairs.sum() == count
    assert machine.bandwidth_Bps[pairs] == pytest.approx(gigabytes * 1e9)
    assert machine.latency_ns[pairs] == pytest.approx(nanoseconds)
    assert set(machine.hops[pairs]) == {hops}


@pytest.mark.parametrize("name", list(TABLES))
def test_the_classes_are_those_of_the_table_and_hold_every_pair(name: str) -> None:
    machine = load_machine(name)
    assert [row.name for row in machine.description.distance_classes] == list(TABLES[name])
    assert (machine.distance_class >= 0).all()


@pytest.mark.parametrize("name", machine_names())
def test_hops_are_shortest_paths_of_the_graph(name: str) -> None:
    machine = load_machine(name)
    some = [node.id for node in machine.nodes[:: max(1, len(machine.nodes) // 64)]]
    position = {node.id: k for k, node in enumerate(machine.nodes)}
    graph = graph_of(machine)
    for start in some:
        lengths = nx.single_source_shortest_path_length(graph, start)
        for end in position:
            assert machine.hops[position[start], position[end]] == lengths[end]


@pytest.mark.parametrize("name", machine_names())
def test_own_memory_is_the_nearest_and_fastest(name: str) -> None:
    """Of nodes with cores, that is: high-bandwidth memory without cores is faster."""
    machine = load_machine(name)
    own = [k for k, node in enumerate(machine.nodes) if node.cores and node.memory_bytes]
    for k in own:
        assert machine.latency_ns[k, k] == np.nanmin(machine.latency_ns[k])
        assert machine.bandwidth_Bps[k, k] == np.nanmax(machine.bandwidth_Bps[k, own])


@pytest.mark.parametrize("name", machine_names())
def test_the_facts_that_a_prediction_needs_are_there(name: str) -> None:
    machine = load_machine(name)
    assert machine.name == name
    assert machine.description.title
    assert machine.description.calibrated_on == ()  # nothing is fitted to an end result
    assert machine.description.coherence is not None or name == "ib-fdr-8n"
    for node in (node for node in machine.nodes if node.cores):
        assert node.clock_Hz is not None
        assert node.outstanding_misses is not None
        if machine.description.engines.keys() & {"eris", "joins"}:
            continue  # a measured host: the times of its engine stand in for what tools don't tell
        assert node.ipc is not None
        assert node.reorder_window is not None
        assert node.core_active_W is not None
        assert [cache.level for cache in node.caches] == [1, 2, 3]
        assert all(cache.latency_ns is not None for cache in node.caches)
        sizes = [cache.size_bytes / cache.shared_by_cores for cache in node.caches]
        assert sizes[0] < sizes[1] < node.caches[2].size_bytes


@pytest.mark.parametrize("name", machine_names())
def test_every_value_of_a_real_machine_has_a_source(name: str) -> None:
    document = load_yaml(BUNDLED / f"{name}.yaml")
    if any("No real machine" in note for note in document.value.get("notes", [])):
        assert document.value.get("generate")
        return
    parts = ("node_types", "link_types", "distance_classes", "nics", "coherence")
    unsourced = [
        path
        for part in parts
        for path in _unsourced(document.value.get(part), part)
        if not path.endswith((".cores", ".threads_per_core", ".ports", ".level"))
    ]
    assert unsourced == []


def _unsourced(value: Any, path: str) -> list[str]:
    """Paths of the numbers and quantities for which neither they nor what holds them say whence."""
    if isinstance(value, dict):
        if "source" in value:
            return []
        return [p for key, part in value.items() for p in _unsourced(part, f"{path}.{key}")]
    if isinstance(value, list):
        return [p for key, part in enumerate(value) for p in _unsourced(part, f"{path}.{key}")]
    number = isinstance(value, (int, float)) or (
        isinstance(value, str) and value[:1].isdigit() and " " in value
    )
    is_route = ".route." in path or path.endswith((".shared_by_cores", ".hops", ".name", ".nodes"))
    return [path] if number and not is_route and not isinstance(value, bool) else []


@pytest.mark.parametrize("name", machine_names())
def test_doubtful_values_stay_ranges(name: str) -> None:
    machine = load_machine(name)
    dumped = machine.description.model_dump(round_trip=True)
    for path in machine.doubtful:
        part: Any = dumped
        for key in path.split("."):
            part = part[int(key)] if isinstance(part, (list, tuple)) else part[key]
        assert len(set(part["range"])) == 2, path


@pytest.mark.parametrize("name", ["xeon-4s-ivb", "xeon-8s-ivb", "xeon-32s-hsw", "opteron-4n"])
def test_machines_whose_source_is_in_doubt_say_so(name: str) -> None:
    assert load_machine(name).doubtful


@pytest.mark.parametrize("name", list(TABLES))
def test_links_carry_what_was_measured_between_pairs(name: str) -> None:
    """The narrowest link of each route, less its headers, holds the pair's bandwidth.

    Of the InfiniBand adapter's ports the source tells a little more than their signalling rate.
    """
    machine = load_machine(name)
    line_share = [64 / (64 + link.data_header_bytes) for link in machine.links]
    payload = [
        link.bandwidth_Bps * share for link, share in zip(machine.links, line_share, strict=True)
    ]
    for i in range(len(machine.nodes)):
        for j in range(len(machine.nodes)):
            route = machine.routes.links_of(i, j)
            if route:
                narrowest = min(payload[directed // 2] for directed in route)
                assert machine.bandwidth_Bps[i, j] <= narrowest * (1.02 if "ib-" in name else 1)


class TestAmd:
    def test_no_node_has_more_ports_than_it_has(self) -> None:
        links = load_machine("amd-8n-ht").description.links
        used: dict[tuple[Any, Any], list[str]] = {}
        for link in links:
            assert link.ports is not None
            for end, port in zip(link.ends, link.ports, strict=True):
                used.setdefault((end, port), []).append(link.type)
        assert max(Counter(end for end, _ in used).values()) <= 4
        assert all(types in (["ht-full"], ["ht-half"], ["ht-half"] * 2) for types in used.values())
        # Somewhere a port stays for input and output.
        assert min(Counter(end for end, _ in used).values()) == 3

    def test_links_are_those_of_a_real_board(self) -> None:
        """The SLIT of the same platform: 16 is a link, 22 two hops."""
        archive = DATA / "64amd64-4s2n4ca2co.tar.bz2"
        if not archive.exists():
            pytest.skip("needs ../shared/data/hwloc")
        with tarfile.open(archive) as tar:
            rows = []
            for node in range(8):
                path = f"64amd64-4s2n4ca2co/sys/devices/system/node/node{node}/distance"
                member = tar.extractfile(path)
                assert member is not None
                rows.append([int(word) for word in member.read().split()])
        assert (np.searchsorted([10, 16, 22], rows) == load_machine("amd-8n-ht").hops).all()


class TestSgi:
    def test_harps_are_at_most_four_hops_apart(self) -> None:
        machine = load_machine("sgi-uv2000-64n")
        harps = graph_of(machine).subgraph(hub.id for hub in machine.hubs)
        assert len(harps) == 32
        assert nx.diameter(harps) == 4

    def test_each_blade_has_eight_connections_six_of_them_in_its_iru(self) -> None:
        machine = load_machine("sgi-uv2000-64n")
        hubs = dict(enumerate(machine.hubs, len(machine.nodes)))
        connections = defaultdict[tuple[int, bool], float](float)
        for link in machine.links:
            a, b = (hubs.get(end) for end in link.ends)
            if a is not None and b is not None:
                for end in link.ends:
                    connections[end, a.group == b.group] += link.bandwidth_Bps / 13.4e9
        for hub in hubs:
            assert (connections[hub, True], connections[hub, False]) == pytest.approx((6, 2))

    def test_an_iru_is_wired_as_a_real_one(self) -> None:
        """Blades one hop apart on an SGI with 24 nodes: SLIT 65, two hops 79."""
        export = DATA / "192em64t-24n8c2t.xml"
        if not export.exists():
            pytest.skip("needs ../shared/data/hwloc")
        values = [
            int(word)
            for part in ElementTree.parse(export).iter("u64values")
            for word in (part.text or "").split()
        ]
        slit = np.array(values[-24 * 24 :]).reshape(24, 24)
        hops = np.searchsorted([10, 50, 65, 79], slit[:16, :16])
        numalink_hops = np.maximum(load_machine("sgi-uv2000-64n").hops[:16, :16] - 2, 0)
        assert (numalink_hops == np.maximum(hops - 1, 0)).all()


def test_a_machine_of_1024_nodes_is_quick_to_load() -> None:
    start = time.process_time()
    machine = machine_from_document(load_yaml(BUNDLED / "hypercube-1024n.yaml"))
    assert time.process_time() - start < 2.0
    assert machine.hops.max() == 10
    assert machine.latency_ns.max() == pytest.approx(90 + 10 * 60)


def test_a_node_without_cpus_has_memory_that_others_reach() -> None:
    machine = load_machine("epyc-2s-cxl")
    expander = machine.nodes[4]
    assert (expander.cores, expander.cpus, expander.memory_kind) == (0, (), "CXL")
    measured = [279.4, 278.8, 363.8, 363.5]  # from each node that has CPUs
    assert machine.latency_ns[:4, 4] == pytest.approx(measured, rel=2e-3)
    assert machine.bandwidth_Bps[:4, 4] == pytest.approx(17.6e9)

"""Routes: known answers on small graphs, sums over routes against a plain walk, determinism."""

import networkx as nx
import numpy as np
import pytest
from fresh_processes import printed_alike
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim._kernel import route_means
from numatwin.topologies import load_machine
from numatwin.topologies import routes as routes_module
from numatwin.topologies.routes import LinkEdge, Routes


def link(
    a: int, b: int, gigabytes: float = 1.0, kind: str = "wire", dimension: int = 0
) -> LinkEdge:
    return LinkEdge((a, b), kind, gigabytes * 1e9, 10.0, 0.0, 0.0, 0.0, None, dimension)


def walk(routes: Routes, links: list[LinkEdge], initiator: int, home: int) -> list[int]:
    """The vertices on a route, from its directed links alone."""
    at = initiator
    visited = [at]
    for directed in routes.links_of(initiator, home):
        start, end = links[directed // 2].ends[:: 1 if directed % 2 == 0 else -1]
        assert start == at
        at = end
        visited.append(at)
    assert at == home
    return visited


def test_a_chain_has_one_way() -> None:
    # 0 - 1 - 2, the second link written backwards
    routes = Routes(3, 0, [link(0, 1), link(2, 1)])
    assert routes.links_of(0, 2) == [0, 3]
    assert routes.links_of(2, 0) == [2, 1]
    assert routes.links_of(1, 1) == []
    assert routes.hops.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_parallel_links_share_the_traffic() -> None:
    # Two nodes at each of two hubs, which are joined twice; one of the links is of a regular graph.
    ends = [(0, 4), (1, 4), (2, 5), (3, 5)]
    links = [*(link(a, b) for a, b in ends), link(4, 5, dimension=1), link(4, 5)]
    routes = Routes(4, 2, links)
    across = np.zeros((4, 4))
    across[:2, 2:] = 1.0
    sums = routes.link_sums(across)
    assert sums[[8, 10]].tolist() == [2.0, 2.0]
    assert routes.hops[0, 3] == 3


def test_fewest_links_come_before_width() -> None:
    # 0 - 1 narrow; 0 - 2 - 1 a hundred times as wide
    links = [link(0, 1, 1), link(0, 2, 100), link(2, 1, 100)]
    assert walk(Routes(3, 0, links), links, 0, 1) == [0, 1]


def test_of_equally_long_ways_the_widest_is_taken() -> None:
    # 0 - 1 - 3 narrow, 0 - 2 - 3 wide
    links = [link(0, 1, 5), link(1, 3, 5), link(0, 2, 6), link(2, 3, 6)]
    assert walk(Routes(4, 0, links), links, 0, 3) == [0, 2, 3]


def test_of_equally_wide_ways_the_one_without_a_shared_port_is_taken() -> None:
    links = [link(0, 1, kind="half-dual"), link(1, 3), link(0, 2, kind="half-single"), link(2, 3)]
    assert walk(Routes(4, 0, links), links, 0, 3) == [0, 2, 3]


def test_the_widest_of_parallel_links_is_taken() -> None:
    links = [link(0, 1, 1), link(1, 0, 3), link(0, 1, 2)]
    routes = Routes(2, 0, links)
    assert (routes.links_of(0, 1), routes.links_of(1, 0)) == ([3], [2])


def test_length_is_counted_right_on_a_long_narrow_way() -> None:
    # A line of 1,024 nodes with narrow and shared links, and one wide link elsewhere.
    links = [link(k, k + 1, 1, "half-dual") for k in range(1023)] + [link(0, 1, 1000)]
    assert Routes(1024, 0, links).hops[0].tolist() == list(range(1024))


def test_hubs_are_crossed_but_are_no_ends() -> None:
    links = [link(0, 2), link(1, 2)]  # vertex 2 is a hub
    routes = Routes(2, 1, links)
    assert routes.hops.shape == (2, 2)
    assert walk(routes, links, 0, 1) == [0, 2, 1]


def test_apart_nodes_are_seen() -> None:
    routes = Routes(4, 0, [link(0, 1), link(2, 3)])
    assert not routes.connected
    assert routes.reachable.tolist() == [
        [True, True, False, False],
        [True, True, False, False],
        [False, False, True, True],
        [False, False, True, True],
    ]
    with pytest.raises(ValueError, match="no route from node 0 to node 2"):
        routes.links_of(0, 2)


def test_without_links_hops_are_unknown() -> None:
    hops = Routes(2, 0, []).hops
    assert np.isnan(hops[0, 1])
    assert hops[0, 0] == 0
    assert Routes(1, 0, []).hops.tolist() == [[0]]


def hypercube(bits: int) -> list[LinkEdge]:
    return [
        link(v, v ^ (1 << bit), dimension=bit)
        for bit in range(bits)
        for v in range(2**bits)
        if not v >> bit & 1
    ]


@pytest.mark.parametrize("bits", [3, 6, 8])
def test_uniform_traffic_loads_a_hypercube_evenly(bits: int) -> None:
    """Each directed link carries N/2 of the N² pairs: N² × n/2 hops over N × n links."""
    routes = Routes(2**bits, 0, hypercube(bits))
    loads = routes.link_sums(np.ones((2**bits, 2**bits)))
    assert (loads == 2**bits / 2).all()


def test_uniform_traffic_takes_all_spines_of_a_fat_tree() -> None:
    machine = load_machine("fat-tree-64n")
    loads = machine.routes.link_sums(np.ones((64, 64)))
    up = np.repeat([min(edge.ends) >= 64 for edge in machine.links], 2)
    # 8 leaves, 56 × 8 pairs leave each, over 4 spines
    assert set(loads[up]) == {8 * 56 / 4}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, int, list[LinkEdge]]:
    """A connected graph of a few nodes and hubs, with parallel links and differing widths."""
    nodes, hubs = draw(st.integers(1, 9)), draw(st.integers(0, 3))
    total = nodes + hubs
    ends = [(draw(st.integers(0, k - 1)), k) for k in range(1, total)]
    if total > 1:
        pair = st.tuples(st.integers(0, total - 1), st.integers(0, total - 1))
        ends += draw(st.lists(pair.filter(lambda p: p[0] != p[1]), max_size=12))
    facts = st.tuples(
        st.sampled_from([1.0, 2.0, 3.7]), st.sampled_from(["a", "b-dual"]), st.integers(0, 2)
    )
    return nodes, hubs, [link(a, b, *draw(facts)) for a, b in ends]


@given(graphs())
def test_routes_are_shortest_and_loop_free(graph: tuple[int, int, list[LinkEdge]]) -> None:
    nodes, hubs, links = graph
    routes = Routes(nodes, hubs, links)
    plain = nx.Graph([edge.ends for edge in links])
    plain.add_nodes_from(range(nodes + hubs))
    assert routes.connected
    for i in range(nodes):
        lengths = nx.single_source_shortest_path_length(plain, i)
        for j in range(nodes):
            visited = walk(routes, links, i, j)
            assert len(visited) - 1 == lengths[j]
            assert len(set(visited)) == len(visited)
            if links or nodes == 1:
                assert routes.hops[i, j] == lengths[j]


@given(graphs(), st.integers(0, 2**32 - 1))
def test_sums_agree_with_a_walk_over_every_route(
    graph: tuple[int, int, list[LinkEdge]], seed: int
) -> None:
    nodes, hubs, links = graph
    rng = np.random.default_rng(seed)
    traffic = rng.random((nodes, nodes)) * (rng.random((nodes, nodes)) < 0.7)
    per_link = rng.random(2 * len(links))
    of_row, of_column = np.zeros((2, nodes, 2 * len(links)))
    of_route = np.zeros((nodes, nodes))
    routes = Routes(nodes, hubs, links)
    for i in range(nodes):
        for j in range(nodes):
            for directed in routes.links_of(i, j):
                of_row[i, directed] += traffic[i, j]
                of_column[j, directed] += traffic[i, j]
                of_route[i, j] += per_link[directed]
    for listed_nodes_max in (128, 0):  # once by the list of uses, once over the trees
        routes = Routes(nodes, hubs, links)
        routes.listed_nodes_max = listed_nodes_max
        assert routes.link_sums(traffic) == pytest.approx(of_row.sum(axis=0))
        assert routes.link_rows(traffic) == pytest.approx(of_row)
        assert routes.link_columns(traffic) == pytest.approx(of_column)
        assert routes.route_sums(per_link) == pytest.approx(of_route)
    weight, three = rng.random(nodes), per_link[:, None] * [1.0, 2.0, 3.0]
    means = route_means(routes.entering.ravel(), routes.predecessor.ravel(), three.ravel(), weight)
    there, back = means.reshape(2, nodes, 3)
    assert there == pytest.approx(np.outer(of_route @ weight, [1.0, 2.0, 3.0]))
    assert back == pytest.approx(np.outer(weight @ of_route, [1.0, 2.0, 3.0]))


@given(graphs())
def test_small_and_large_machines_have_the_same_routes(
    graph: tuple[int, int, list[LinkEdge]],
) -> None:
    """Distances by relaxation, and by SciPy's Dijkstra."""
    nodes, hubs, links = graph
    small = Routes(nodes, hubs, links)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes_module, "RELAXED_MAX", -1)
        large = Routes(nodes, hubs, links)
    assert small.depth.tolist() == large.depth.tolist()
    assert small.entering.tolist() == large.entering.tolist()
    assert small.predecessor.tolist() == large.predecessor.tolist()


def test_a_large_machine_sums_over_its_trees() -> None:
    """130 nodes on a ring: uniform traffic takes each directed link k times for distances k."""
    links = [link(k, (k + 1) % 130) for k in range(130)]
    routes = Routes(130, 0, links)
    loads = routes.link_sums(np.ones((130, 130)))
    assert loads.sum() == routes.hops.sum() == 130 * (2 * sum(range(65)) + 65)
    assert routes.route_sums(np.ones(260)) == pytest.approx(routes.hops)


def test_routes_are_the_same_in_every_process() -> None:
    script = (
        "import hashlib; from numatwin.topologies import load_machine;"
        "r = load_machine('sgi-uv2000-64n').routes;"
        "print(hashlib.sha256(r.entering.tobytes()).hexdigest())"
    )
    assert printed_alike(script)

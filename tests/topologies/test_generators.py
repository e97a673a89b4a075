"""Generated graphs: counts, degrees, diameters and symmetry of each shape, and bad parameters."""

from math import ceil, comb, prod
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.inputs import InputError, parse_yaml
from numatwin.topologies import DescriptionError, machine_from_document
from numatwin.topologies.generators import generate
from numatwin.topologies.schema import Generator

DIMENSIONS = st.lists(st.integers(1, 6), min_size=1, max_size=4).filter(lambda d: prod(d) <= 300)
BITS = st.integers(1, 7)


def graph_of(count: int, hubs: tuple[str, ...] = (), **fields: Any) -> nx.MultiGraph:
    """The graph of a generator over ``count`` nodes; parallel links would show."""
    generator = Generator.model_validate({"link": "wire", **fields})
    made = generate(generator, range(count), hubs)
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(count))
    graph.add_nodes_from(hub.id for hub in made.hubs)
    graph.add_edges_from(ends for ends, _, _ in made.links)
    assert not any(a == b for a, b in graph.edges())
    assert graph.number_of_edges() == nx.Graph(graph).number_of_edges(), "a link is listed twice"
    return graph


def degrees(graph: nx.MultiGraph) -> set[int]:
    return {degree for _, degree in graph.degree()}


@given(DIMENSIONS)
def test_mesh_is_the_grid(dimensions: list[int]) -> None:
    graph = graph_of(prod(dimensions), shape="mesh", dimensions=dimensions)
    assert nx.is_connected(graph)
    assert nx.diameter(graph) == sum(size - 1 for size in dimensions)
    assert graph.number_of_edges() == sum(
        prod(dimensions) // size * (size - 1) for size in dimensions
    )
    assert nx.utils.graphs_equal(
        nx.Graph(graph), nx.relabel_nodes(nx.grid_graph(dimensions[::-1]), index_in(dimensions))
    )


def index_in(dimensions: list[int]) -> Any:
    """Row-major position of a grid point, the last dimension running fastest."""

    def index(point: Any) -> int:
        position = 0
        for size, x in zip(
            dimensions, point if isinstance(point, tuple) else (point,), strict=True
        ):
            position = position * size + x
        return position

    return index


@given(DIMENSIONS)
def test_torus_is_regular_and_half_as_wide(dimensions: list[int]) -> None:
    graph = graph_of(prod(dimensions), shape="torus", dimensions=dimensions)
    assert nx.is_connected(graph)
    assert degrees(graph) == {sum(min(size - 1, 2) for size in dimensions)}
    assert nx.diameter(graph) == sum(size // 2 for size in dimensions)


@given(st.integers(3, 64))
def test_ring(count: int) -> None:
    graph = graph_of(count, shape="ring")
    assert nx.is_connected(graph)
    assert degrees(graph) == {2}
    assert (graph.number_of_edges(), nx.diameter(graph)) == (count, count // 2)


@given(BITS)
def test_hypercube(bits: int) -> None:
    graph = graph_of(2**bits, shape="hypercube")
    assert degrees(graph) == {bits}
    assert nx.diameter(graph) == bits
    for a, b in graph.edges():
        assert (a ^ b).bit_count() == 1


@given(st.integers(2, 7))
def test_folded_hypercube_is_half_as_wide(bits: int) -> None:
    """Diameter ⌈n/2⌉ and degree n + 1: El-Amawy and Latifi (1991)."""
    graph = graph_of(2**bits, shape="enhanced_hypercube")
    assert degrees(graph) == {bits + 1}
    assert nx.diameter(graph) == ceil(bits / 2)
    assert graph.number_of_edges() == (bits + 1) * 2 ** (bits - 1)


@given(st.integers(2, 6), st.data())
def test_enhanced_hypercube_is_vertex_symmetric(bits: int, data: st.DataObject) -> None:
    masks = st.integers(0, 2**bits - 1).filter(lambda mask: mask.bit_count() >= 2)
    chosen = data.draw(st.lists(masks, min_size=1, max_size=4, unique=True))
    diagonals = [f"{mask:0{bits}b}" for mask in chosen]
    graph = graph_of(2**bits, shape="enhanced_hypercube", diagonals=diagonals)
    assert degrees(graph) == {bits + len(chosen)}
    shift = data.draw(st.integers(0, 2**bits - 1))
    assert all(graph.has_edge(a ^ shift, b ^ shift) for a, b in graph.edges())


@given(st.integers(1, 40))
def test_all_to_all(count: int) -> None:
    graph = graph_of(count, shape="all_to_all")
    assert graph.number_of_edges() == comb(count, 2)
    assert nx.is_connected(graph)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 5))
def test_fat_tree(leaves: int, leaf_size: int, spines: int) -> None:
    graph = graph_of(leaves * leaf_size, shape="fat_tree", leaf_size=leaf_size, spines=spines)
    assert nx.is_connected(graph)
    assert graph.number_of_nodes() == leaves * leaf_size + leaves + spines
    assert graph.number_of_edges() == leaves * leaf_size + leaves * spines
    for leaf in range(leaves):
        assert graph.degree(f"leaf{leaf}") == leaf_size + spines
    if leaves > 1:
        assert nx.shortest_path_length(graph, 0, leaf_size * leaves - 1) == 4


def test_attach_gives_each_hub_an_equal_run() -> None:
    made = generate(
        Generator(shape="attach", link="wire", hubs="h*"), range(6), ["x", "h0", "h1", "h2"]
    )
    assert [ends for ends, _, _ in made.links] == [
        (0, "h0"), (1, "h0"), (2, "h1"), (3, "h1"), (4, "h2"), (5, "h2"),
    ]  # fmt: skip


def test_members_by_run_by_pattern_and_by_list() -> None:
    def ends(members: Any) -> list[Any]:
        generator = Generator(shape="ring", link="wire", members=members)
        return [pair for pair, _, _ in generate(generator, range(8), ["h0", "h1", "h2"]).links]

    assert ends("2-4") == [(2, 3), (3, 4), (4, 2)]
    assert ends("h?") == [("h0", "h1"), ("h1", "h2"), ("h2", "h0")]
    assert ends((7, "h1", 0)) == [(7, "h1"), ("h1", 0), (0, 7)]


@given(BITS, st.integers(1, 3))
def test_generating_twice_gives_the_same(bits: int, spines: int) -> None:
    for fields in (
        {"shape": "enhanced_hypercube"} if bits > 1 else {"shape": "hypercube"},
        {"shape": "fat_tree", "leaf_size": 2, "spines": spines},
    ):
        generator = Generator.model_validate({"link": "wire", **fields})
        assert generate(generator, range(2**bits), ()) == generate(generator, range(2**bits), ())


HEAD = """\
name: made
node_types: {plain: {cores: 1, memory: {size: 1 GiB}}}
nodes: [{ids: 0-7, type: plain}]
hubs: [{id: hub-a}, {id: hub-b}, {id: hub-c}]
link_types: {wire: {bandwidth: 1 GB/s}}
generate:
  - """

# The generator, what the error says, and the part of the line that it points at.
BAD = [
    ("{shape: mesh, link: wire}", "missing field 'dimensions': a mesh needs it", "{"),
    ("{shape: mesh, link: wire, dimensions: [2, 3]}", "2 × 3 = 6: expected 8", "dimensions"),
    ("{shape: torus, link: wire, dimensions: [0, 8]}", "expected at least 1", "0"),
    ("{shape: ring, link: wire, dimensions: [8]}", "a ring does not take it", "dimensions"),
    ("{shape: ring, link: wire, members: [0, 1]}", "2 members: expected at least 3", "{"),
    ("{shape: ring, link: wire, members: [0, 1, 9]}", "unknown end 9", "9"),
    ("{shape: ring, link: wire, members: [1, 2, 1]}", "1 is listed twice in members", "1]"),
    ("{shape: ring, link: wire, members: sp*}", "no node or hub is meant by 'sp*'", "sp*"),
    ("{shape: hypercube, link: wire, members: 0-5}", "expected a power of two", "{"),
    ("{shape: hypercube, link: copper}", "unknown link type 'copper': expected wire", "copper"),
    ("{shape: enhanced_hypercube, link: wire, diagonals: ['0110']}", "expected 3 digits", "'0"),
    ("{shape: enhanced_hypercube, link: wire, diagonals: ['010']}", "two or more ones", "'0"),
    ("{shape: fat_tree, link: wire, leaf_size: 3, spines: 2}", "do not fill leaves of 3", "3"),
    ("{shape: fat_tree, link: wire, leaf_size: 4}", "missing field 'spines'", "{"),
    ("{shape: fat_tree, link: wire, leaf_size: 4, spines: 0}", "expected at least 1", "0"),
    ("{shape: attach, link: wire, hubs: hub-*}", "8 members on 3 hubs", "hub-*"),
    ("{shape: star, link: wire}", "expected 'mesh'", "star"),
]


@pytest.mark.parametrize(("line", "message", "token"), BAD)
def test_bad_parameters_are_told_with_their_place(line: str, message: str, token: str) -> None:
    with pytest.raises(InputError) as failure:
        machine_from_document(parse_yaml(HEAD + line, "made.yaml"))
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)
    assert (failure.value.line, failure.value.column) == (7, 5 + line.index(token))


def test_more_links_than_supported_are_refused() -> None:
    generator = Generator(shape="all_to_all", link="wire")
    assert len(generate(generator, range(200), ()).links) == 19_900
    with pytest.raises(DescriptionError, match="523,776 links join 1024 nodes all to all"):
        generate(generator, range(1024), ())


def test_more_members_than_supported_are_refused() -> None:
    generator = Generator(shape="hypercube", link="wire")
    with pytest.raises(DescriptionError, match="at most 1024"):
        generate(generator, range(2048), ())

"""Regular graphs for machine files: each shape turns members into pairs of ends."""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from math import prod
from typing import NamedTuple

from .machine import HubVertex
from .schema import DescriptionError, Generator
from .schema_types import LINKS_MAX, NODES_MAX

End = int | str
Edges = Iterator[tuple[int, int, int]]


class Generated(NamedTuple):
    """What a generator adds: hubs of its own, and links as (ends, link type, dimension)."""

    hubs: tuple[HubVertex, ...]
    links: tuple[tuple[tuple[End, End], str, int], ...]


def generate(generator: Generator, node_ids: Sequence[int], hub_ids: Sequence[str]) -> Generated:
    """The hubs and links of ``generator``, links in a fixed order.

    Raises DescriptionError, placed inside the generator, where its parameters do not fit.
    """
    _check_parameters(generator)
    members = _ends(generator.members, "members", node_ids, hub_ids)
    if len(members) > NODES_MAX:
        raise DescriptionError(
            ("members",), f"{len(members)} members: expected at most {NODES_MAX}"
        )
    if generator.shape == "fat_tree":
        return _fat_tree(generator, members)
    if generator.shape == "attach":
        pairs = _attach(generator, members, _ends(generator.hubs, "hubs", node_ids, hub_ids))
        return Generated((), tuple((pair, generator.link, 0) for pair in pairs))
    if generator.shape == "all_to_all" and len(members) * (len(members) - 1) // 2 > LINKS_MAX:
        raise DescriptionError(
            ("members",),
            f"{len(members) * (len(members) - 1) // 2:,} links join {len(members)} nodes all to "
            f"all: expected at most {LINKS_MAX:,}, as of so many a run takes five seconds",
        )
    edges = _SHAPES[generator.shape](generator, len(members))
    return Generated(
        (), tuple(((members[a], members[b]), generator.link, dim) for a, b, dim in edges)
    )


# The parameters that a shape takes beside shape, link and members: (needed, allowed).
_PARAMETERS: dict[str, tuple[set[str], set[str]]] = {
    "mesh": ({"dimensions"}, set()),
    "torus": ({"dimensions"}, set()),
    "ring": (set(), set()),
    "hypercube": (set(), set()),
    "enhanced_hypercube": (set(), {"diagonals"}),
    "all_to_all": (set(), set()),
    "fat_tree": ({"leaf_size", "spines"}, {"spine_link", "prefix"}),
    "attach": ({"hubs"}, set()),
}


def _check_parameters(generator: Generator) -> None:
    given = generator.model_fields_set - {"shape", "link", "members"}
    needed, allowed = _PARAMETERS[generator.shape]
    for name in sorted(given - needed - allowed):
        raise DescriptionError((name,), f"{name}: a {generator.shape} does not take it")
    for name in sorted(needed - given):
        raise DescriptionError((), f"missing field '{name}': a {generator.shape} needs it")


def _ends(
    wanted: tuple[End, ...] | str | None,
    field: str,
    node_ids: Sequence[int],
    hub_ids: Sequence[str],
) -> list[End]:
    """The vertices that a file names: a list, a run of nodes (``0-63``), a pattern of hub names."""
    if wanted is None:
        return list(node_ids)
    if isinstance(wanted, str):
        first, dash, last = wanted.partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            found: list[End] = [k for k in node_ids if int(first) <= k <= int(last)]
        else:
            found = [name for name in hub_ids if fnmatchcase(name, wanted)]
        if not found:
            raise DescriptionError((field,), f"{field}: no node or hub is meant by '{wanted}'")
        return found
    known = {*node_ids, *hub_ids}
    for k, end in enumerate(wanted):
        if end not in known:
            raise DescriptionError((field, k), f"unknown end {end!r}: expected a node or hub")
        if end in wanted[:k]:
            raise DescriptionError((field, k), f"{end!r} is listed twice in {field}")
    return list(wanted)


def _grid(generator: Generator, count: int) -> Edges:
    """A mesh, or a torus: the last vertex of a line of more than two is joined to the first."""
    sizes = generator.dimensions or ()
    if prod(sizes) != count:
        product = " × ".join(map(str, sizes))
        raise DescriptionError(
            ("dimensions",),
            f"dimensions: {product} = {prod(sizes)}: expected {count}, one per member",
        )
    stride = count
    for dimension, size in enumerate(sizes):
        stride //= size
        for vertex in range(count):
            if vertex // stride % size < size - 1:
                yield vertex, vertex + stride, dimension
            elif generator.shape == "torus" and size > 2:
                yield vertex, vertex - (size - 1) * stride, dimension


def _ring(_: Generator, count: int) -> Edges:
    if count < 3:
        raise DescriptionError((), f"{count} members: expected at least 3 in a ring")
    yield from ((vertex, (vertex + 1) % count, 0) for vertex in range(count))


def _hypercube(_: Generator, count: int) -> Edges:
    """Vertices whose binary numbers differ in one bit."""
    if count < 2 or count & (count - 1):
        raise DescriptionError((), f"{count} members: expected a power of two in a hypercube")
    for bit in range(count.bit_length() - 1):
        yield from ((v, v ^ (1 << bit), bit) for v in range(count) if not v >> bit & 1)


def _enhanced_hypercube(generator: Generator, count: int) -> Edges:
    """A hypercube and, for each vertex, a link along each diagonal: some bits flipped together.

    With all bits flipped it is the folded hypercube of El-Amawy and Latifi (1991), with one other
    diagonal an enhanced hypercube of Tzeng and Wei (1991).
    """
    yield from _hypercube(generator, count)
    bits = count.bit_length() - 1
    if bits < 2:
        raise DescriptionError((), f"{count} members: expected at least 4 in an enhanced hypercube")
    for k, diagonal in enumerate(generator.diagonals or ("1" * bits,)):
        if len(diagonal) != bits or diagonal.count("1") < 2:
            raise DescriptionError(
                ("diagonals", k),
                f"diagonal {diagonal}: expected {bits} digits with two or more ones, as there are "
                f"{count} members",
            )
        if generator.diagonals and diagonal in generator.diagonals[:k]:
            raise DescriptionError(("diagonals", k), f"diagonal {diagonal} is listed twice")
        mask = int(diagonal, 2)
        yield from ((v, v ^ mask, bits + k) for v in range(count) if v < v ^ mask)


_SHAPES: dict[str, Callable[[Generator, int], Edges]] = {
    "mesh": _grid,
    "torus": _grid,
    "ring": _ring,
    "hypercube": _hypercube,
    "enhanced_hypercube": _enhanced_hypercube,
    "all_to_all": lambda _, count: ((a, b, 0) for a, b in combinations(range(count), 2)),
}


def _attach(generator: Generator, members: list[End], hubs: list[End]) -> list[tuple[End, End]]:
    """Members in equal runs, each run hanging on the next hub."""
    if len(members) % len(hubs):
        raise DescriptionError(
            ("hubs",),
            f"{len(members)} members on {len(hubs)} hubs: expected the same number on each",
        )
    share = len(members) // len(hubs)
    return [(member, hubs[k // share]) for k, member in enumerate(members)]


def _fat_tree(generator: Generator, members: list[End]) -> Generated:
    """Two levels: each run of ``leaf_size`` members on a leaf, each leaf joined to every spine."""
    leaf_size, spines = generator.leaf_size or 0, generator.spines or 0
    if len(members) % leaf_size:
        raise DescriptionError(
            ("leaf_size",), f"leaf_size: {len(members)} members do not fill leaves of {leaf_size}"
        )
    count = len(members) // leaf_size
    if spines > NODES_MAX:
        raise DescriptionError(("spines",), f"spines: {spines}: expected at most {NODES_MAX}")
    leaf_names = [f"{generator.prefix or ''}leaf{k}" for k in range(count)]
    spine_names = [f"{generator.prefix or ''}spine{k}" for k in range(spines)]
    up = generator.spine_link or generator.link
    links: list[tuple[tuple[End, End], str, int]] = [
        ((member, leaf_names[k // leaf_size]), generator.link, 0)
        for k, member in enumerate(members)
    ]
    links += [((leaf, spine), up, 0) for leaf in leaf_names for spine in spine_names]
    hubs = [HubVertex(name, "leaf", None, None) for name in leaf_names]
    hubs += [HubVertex(name, "spine", None, None) for name in spine_names]
    return Generated(tuple(hubs), tuple(links))

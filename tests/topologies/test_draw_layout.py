"""Where vertices stand in a picture: apart, within their groups, the same every time."""

import numpy as np
import pytest
from fresh_processes import printed_alike

from numatwin.inputs import parse_yaml
from numatwin.topologies import Machine, load_machine, machine_from_document, machine_names
from numatwin.topologies.layout import curve, hull, lay_out
from numatwin.topologies.picture import MachinePicture, picture_data, read_picture

PARTS = """\
name: drawn
node_types: {a: {cores: 2, memory: {size: 8 GiB, bandwidth: 20 GB/s, latency: 90 ns}}}
link_types: {wire: {bandwidth: 10 GB/s, latency: 50 ns}}
"""
SHAPES = {
    "one": "nodes: [{id: 7, type: a}]",
    "pair": "nodes: [{ids: 0-1, type: a}]\ngenerate: [{shape: all_to_all, link: wire}]",
    "ring": "nodes: [{ids: 0-63, type: a}]\ngenerate: [{shape: ring, link: wire}]",
    "hypercube": "nodes: [{ids: 0-15, type: a}]\ngenerate: [{shape: hypercube, link: wire}]",
    "fat tree": "nodes: [{ids: 0-1023, type: a}]\n"
    "generate: [{shape: fat_tree, link: wire, leaf_size: 32, spines: 8}]",
    "no links": "nodes: [{ids: 0-6, type: a}]",
    "no links, packages": "nodes: [{ids: 0-15, type: a, group: package, group_size: 4}]",
    "no links, many": "nodes: [{ids: 0-1023, type: a, group: package, group_size: 8}]",
}


def made(text: str) -> Machine:
    return machine_from_document(parse_yaml(PARTS + text, "drawn.yaml"))


def picture_of(machine: Machine) -> MachinePicture:
    return read_picture(picture_data(machine))


PICTURES = [
    *(pytest.param(lambda name=name: load_machine(name), id=name) for name in machine_names()),
    *(pytest.param(lambda text=text: made(text), id=name) for name, text in SHAPES.items()),
]


@pytest.mark.parametrize("machine", PICTURES)
def test_vertices_stand_apart(machine: object) -> None:
    positions = lay_out(picture_of(machine())).positions  # type: ignore[operator]
    assert np.isfinite(positions).all()
    for k, position in enumerate(positions[:-1]):
        assert np.hypot(*(positions[k + 1 :] - position).T).min() > 0.95  # boxes are 0.8 wide


@pytest.mark.parametrize("machine", PICTURES)
def test_frames_hold_their_groups_and_nobody_else(machine: object) -> None:
    layout = lay_out(picture_of(machine()))  # type: ignore[operator]
    for name, members in layout.frames:
        outline = hull(layout.positions[members], 0.3)
        inside = {k for k, at in enumerate(layout.positions) if is_inside(at, outline)}
        assert inside == set(members), name


def is_inside(point: np.ndarray, outline: np.ndarray) -> bool:
    """Whether a convex outline, counter-clockwise, holds the point: it lies left of each side."""
    side, to_point = np.roll(outline, -1, axis=0) - outline, point - outline
    return bool((side[:, 0] * to_point[:, 1] - side[:, 1] * to_point[:, 0] >= 0).all())


def test_an_sgi_is_drawn_iru_by_iru_linked_ones_side_by_side() -> None:
    picture = picture_of(load_machine("sgi-uv2000-64n"))
    layout = lay_out(picture)
    frames = dict(layout.frames)
    assert {name for name, members in frames.items() if len(members) == 24} == {
        "iru0", "iru1", "iru2", "iru3",
    }  # fmt: skip
    centre = {name: layout.positions[frames[name]].mean(axis=0) for name in frames}
    # The IRUs form a square of links 0-1-3-2-0, so that 0 and 3 stand across.
    sides = [
        np.hypot(*(centre[f"iru{a}"] - centre[f"iru{b}"])) for a, b in ("01", "13", "32", "20")
    ]
    assert sides == pytest.approx([sides[0]] * 4)
    assert np.hypot(*(centre["iru0"] - centre["iru3"])) > 1.3 * sides[0]
    assert centre["iru0"][0] < 0 < centre["iru0"][1]  # the first one stands at the upper left


@pytest.mark.parametrize(("shape", "columns"), [("mesh", 5), ("torus", 5), ("mesh", 20)])
def test_meshes_stand_in_their_rows(shape: str, columns: int) -> None:
    n = 4 * columns
    picture = picture_of(
        made(
            f"nodes: [{{ids: 0-{n - 1}, type: a}}]\n"
            f"generate: [{{shape: {shape}, link: wire, dimensions: [4, {columns}]}}]"
        )
    )
    positions = lay_out(picture).positions
    assert len({round(x, 6) for x in positions[:, 0]}) == columns
    assert len({round(y, 6) for y in positions[:, 1]}) == 4
    short = [link for link in picture.links if abs(link.ends[0] - link.ends[1]) in (1, columns)]
    for link in short:
        assert np.hypot(*(positions[link.ends[0]] - positions[link.ends[1]])) < 1.5


def test_a_long_ring_runs_to_and_fro() -> None:
    picture = picture_of(made(SHAPES["ring"]))
    positions = lay_out(picture).positions
    length = [np.hypot(*(positions[a] - positions[b])) for a, b in (x.ends for x in picture.links)]
    assert sorted(length)[-2] < 1.5  # all but the one that closes the ring


def test_nodes_hang_around_their_hub() -> None:
    picture = picture_of(load_machine("ib-fdr-8n"))
    positions = lay_out(picture).positions
    radii = np.hypot(*(positions[:8] - positions[8]).T)
    assert radii == pytest.approx(np.full(8, radii[0]))


def test_curves_join_their_ends_and_pass_their_middle() -> None:
    start, end = np.array([0.0, 0.0]), np.array([4.0, 0.0])
    straight, bent = curve(start, end, 0), curve(start, end, 0.25)
    for path in (straight, bent):
        assert len(path) % 2 == 1
        assert path[0] == pytest.approx(start)
        assert path[-1] == pytest.approx(end)
    assert straight[1] == pytest.approx([2, 0])
    assert bent[len(bent) // 2] == pytest.approx([2, 1])  # a bow of a quarter of the length


def test_a_picture_is_the_same_in_every_process() -> None:
    program = (
        "import hashlib; from numatwin.topologies import load_machine;"
        "from numatwin.topologies.compose import compose;"
        "from numatwin.topologies.svg import svg_text;"
        "from numatwin.topologies.picture import picture_data, read_picture;"
        "m = read_picture(picture_data(load_machine('sgi-uv2000-64n')));"
        "print(hashlib.sha256(svg_text(compose(m)).encode()).hexdigest())"
    )
    assert printed_alike(program)

"""Pictures of machines: complete, coloured by use, safe to show, the same from plain data."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.inputs import InputError, parse_yaml
from numatwin.topologies import Machine, load_machine, machine_from_document, machine_names
from numatwin.topologies.compose import compose
from numatwin.topologies.draw import machine_svg, write_picture
from numatwin.topologies.layout import LINKS_DRAWN_MAX
from numatwin.topologies.picture import USE_COLOURS, picture_data, read_picture, use_colour

PARTS = """\
node_types: {a: {cores: 2, memory: {size: 8 GiB, bandwidth: 20 GB/s, latency: 90 ns}}}
link_types: {wire: {bandwidth: 10 GB/s, latency: 50 ns}, rope: {bandwidth: 40 GB/s, latency: 50 ns}}
"""
PAIR = """\
nodes: [{ids: 0-1, type: a}]
links:
  - {ends: [0, 1], type: wire}
"""
NASTY = """<b>&"'<script>alert(1)</script> 4 × "Xeon" </svg>"""


def made(text: str, title: str = "") -> Machine:
    head = f"name: drawn\ntitle: {json.dumps(title)}\n"
    return machine_from_document(parse_yaml(head + PARTS + text, "drawn.yaml"))


@pytest.mark.parametrize("name", machine_names())
def test_every_vertex_and_link_is_drawn(name: str) -> None:
    machine = load_machine(name)
    scene = compose(read_picture(picture_data(machine)))
    shown = [label.text for label in scene.labels]
    ids = [str(machine.vertex_name(k)) for k in range(len(machine.nodes) + len(machine.hubs))]
    assert not Counter(ids) - Counter(shown)
    assert sum(len(area.paths) for area in scene.areas) == len(ids)
    assert sum(len(lines.paths) for lines in scene.lines) == len(machine.links)
    for label in scene.labels:
        assert scene.low[0] < label.x < scene.high[0]
        assert scene.low[1] < label.y < scene.high[1]


@pytest.mark.parametrize("name", machine_names())
def test_letters_fit_their_boxes(name: str) -> None:
    scene = compose(read_picture(picture_data(load_machine(name))))
    room_px = 0.8 * scene.unit_px
    names = {str(name) for name in range(1_024)}
    for label in scene.labels:
        if label.text in names:
            assert 0.56 * label.size_px * len(label.text) < room_px  # a digit of Helvetica's width
            assert label.size_px >= (5 if name == "hypercube-1024n" else 9)


@pytest.mark.parametrize("name", ["intel-4s-qpi", "sgi-uv2000-64n"])
def test_the_legend_tells_links_by_bandwidth(name: str) -> None:
    machine = load_machine(name)
    scene = compose(read_picture(picture_data(machine)))
    told = {key.name: key for key in scene.keys if key.shape == "line"}
    assert set(told) == {
        f"{link.kind} {link.bandwidth_Bps / 1e9:.4g} GB/s" for link in machine.links
    }
    assert len({key.colour for key in told.values()}) == len(told)
    by_width = sorted(told.values(), key=lambda key: key.width_px)
    rates = [float(key.name.split()[1]) for key in by_width]
    assert rates == sorted(rates)


def test_drawn_alike_from_machine_and_plain_data() -> None:
    machine = load_machine("sgi-uv300h-8s")
    data = json.loads(json.dumps(picture_data(machine)))
    assert machine_svg(data) == machine_svg(machine)


def test_drawn_from_the_stable_json_too() -> None:
    machine = load_machine("sgi-uv300h-8s")
    scene = compose(read_picture(machine.as_json()))
    assert sum(len(lines.paths) for lines in scene.lines) == len(machine.links)
    assert {label.text for label in scene.labels} >= {hub.id for hub in machine.hubs}


def test_links_and_nodes_are_coloured_by_use() -> None:
    use: dict[tuple[int | str, int | str], float] = {(0, 1): 1.0, (1, 0): 0.0}
    scene = compose(read_picture(picture_data(made(PAIR))), link_use=use, node_use={1: 0.5})
    boxes = {area.fill: area.paths[0].mean(axis=0)[0] for area in scene.areas}
    busy, idle = (
        next(lines.paths[0] for lines in scene.lines if lines.colour == use_colour(amount))
        for amount in (1.0, 0.0)
    )
    assert boxes[use_colour(0.5)] == pytest.approx(idle[0][0], abs=0.1)  # node 1; its half is idle
    assert boxes["#ffffff"] == pytest.approx(busy[0][0], abs=0.1)  # node 0, of use unknown
    assert busy[-1] == pytest.approx(idle[-1])  # the halves meet in the middle
    assert scene.scale == "use of links and nodes"
    facts = {line for spot in scene.spots for line in spot.lines}
    assert {"0 → 1: 100.0% in use", "1 → 0: 0.0% in use", "in use: 50.0%"} <= facts


def test_links_of_unknown_use_are_grey() -> None:
    use: dict[tuple[int | str, int | str], float] = {(0, 1): float("nan")}
    lines = compose(read_picture(picture_data(made(PAIR))), link_use=use).lines
    assert {line.colour for line in lines} == {"#999999"}


@given(st.floats(0, 1), st.floats(0, 1))
def test_use_has_a_scale_of_colours(low: float, high: float) -> None:
    assert re.fullmatch("#[0-9a-f]{6}", use_colour(low))
    if low > high:
        low, high = high, low
    greens = [int(use_colour(use)[3:5], 16) for use in (max(low, 0.25), max(high, 0.25))]
    assert greens[0] >= greens[1]  # past the pale quarter it darkens all the way
    assert (use_colour(-1), use_colour(2)) == (USE_COLOURS[0], USE_COLOURS[-1])


def test_parallel_links_of_two_kinds_are_drawn_apart() -> None:
    text = f"{PAIR}  - {{ends: [1, 0], type: rope}}\n"
    lines = compose(read_picture(picture_data(made(text)))).lines
    middles = [wire.paths[0][len(wire.paths[0]) // 2] for wire in lines]
    assert abs(middles[0] - middles[1]).max() > 0.2


def test_a_machine_without_links_says_so() -> None:
    scene = compose(read_picture(picture_data(made("nodes: [{ids: 0-3, type: a}]"))))
    assert scene.note == "drawn: 4 nodes, links unknown"
    assert scene.lines == []


def test_too_many_links_are_thinned_and_the_busiest_kept() -> None:
    machine = made("nodes: [{ids: 0-223, type: a}]\ngenerate: [{shape: all_to_all, link: wire}]")
    assert len(machine.links) > LINKS_DRAWN_MAX
    scene = compose(read_picture(picture_data(machine)), link_use={(220, 17): 1.0})
    halves = Counter({lines.colour: len(lines.paths) for lines in scene.lines})
    assert halves.total() == 2 * LINKS_DRAWN_MAX
    assert halves[use_colour(1.0)] == 1
    assert "24,976 links (20,000 drawn)" in scene.note


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_texts_of_files_are_escaped(tmp_path: Path, ending: str) -> None:
    machine = picture_data(made(PAIR)) | {"name": NASTY, "title": NASTY, "groups": [NASTY, NASTY]}
    machine["links"][0]["kind"] = NASTY
    machine["hubs"] = [{"id": NASTY, "kind": NASTY, "group": None}]
    page = write_picture(machine, tmp_path / f"x.{ending}").read_text()
    assert "<script>alert" not in page
    if ending == "svg":
        texts = [part.text or "" for part in ElementTree.fromstring(page).iter()]
        assert texts.count(NASTY) >= 3
    else:
        assert "<svg" in page
        assert "<script" not in page


def test_svg_is_whole_and_tells_facts(tmp_path: Path) -> None:
    root = ElementTree.parse(write_picture(load_machine("amd-8n-ht"), tmp_path / "x.svg")).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    titles = [title.text for title in root.iter(f"{space}title")]
    assert "node 3 (package1)\n8 CPUs\n8 GiB of memory" in titles
    assert "0 – 1 (ht-full)\n12.8 GB/s each way" in titles
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{space}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height


@pytest.mark.parametrize("name", ["x.png", "x", "svg"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"expected the extension \.html or \.svg"):
        write_picture(made(PAIR), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "ends", "kind", "cpus"]), inner, max_size=4)
    ),
    max_leaves=8,
)


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all parts of plain data."""
    found = [place] if place else []
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(part, (*place, key))
    return found


@given(st.data())
def test_spoilt_plain_data_are_drawn_or_refused(data: st.DataObject) -> None:
    machine = json.loads(json.dumps(picture_data(load_machine("epyc-2s-cxl"))))
    *way, last = data.draw(st.sampled_from(places(machine)))
    part = machine
    for key in way:
        part = part[key]
    part[last] = data.draw(JSON)
    refusal = ""
    try:
        machine_svg(machine)
    except InputError as refused:
        refusal = str(refused)
    assert "\n" not in refusal

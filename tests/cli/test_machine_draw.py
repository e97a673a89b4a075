"""``numatwin machine draw``: bundled machines, imported ones, refusals."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from command_line import CommandLine, Refused


@pytest.mark.parametrize("name", ["amd-8n-ht", "sgi-uv2000-64n"])
def test_draw_a_machine(numatwin: CommandLine, name: str) -> None:
    done = numatwin("machine", "draw", name, "--out", f"{name}.svg")
    assert (done.status, done.out, done.err) == (0, f"{name}.svg\n", "")
    root = ElementTree.parse(f"{name}.svg").getroot()
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    shown = numatwin("machine", "show", name, "--json").json()
    assert {str(node["id"]) for node in shown["nodes"]} <= texts


def test_draw_a_page(numatwin: CommandLine) -> None:
    assert numatwin("machine", "draw", "amd-8n-ht", "--out", "amd.html").status == 0
    assert "ht-half-dual 6.4 GB" in Path("amd.html").read_text()


def test_draw_a_machine_without_links(numatwin: CommandLine) -> None:
    Path("mine.yaml").write_text(
        "name: mine\n"
        "node_types: {a: {cores: 2, memory: {size: 8 GiB}}}\n"
        "nodes: [{ids: 0-7, type: a}]\n"
    )
    assert numatwin("machine", "draw", "mine.yaml", "--out", "mine.svg").status == 0
    assert "8 nodes, links unknown" in Path("mine.svg").read_text()


def test_draw_refuses(refused: Refused) -> None:
    assert ".html or .svg" in refused("machine", "draw", "amd-8n-ht", "--out", "amd.gif")
    assert "cannot be written" in refused("machine", "draw", "amd-8n-ht", "--out", "no/amd.svg")
    assert "unknown machine" in refused("machine", "draw", "zzz", "--out", "zzz.svg")


MLC = Path(__file__).parents[3] / "shared" / "data" / "mlc" / "skylake-2s.txt"


@pytest.mark.skipif(not MLC.exists(), reason="needs ../shared/data/mlc")
def test_draw_and_show_a_machine_whose_tool_tells_no_sizes(numatwin: CommandLine) -> None:
    assert numatwin("machine", "import", str(MLC), "--out", "sky.yaml").status == 0
    assert numatwin("machine", "draw", "sky.yaml", "--out", "sky.svg").status == 0
    picture = Path("sky.svg").read_text()
    assert "CPUs unknown" in picture
    assert "without CPUs" not in picture
    shown = numatwin("machine", "show", "sky.yaml").out
    assert "nan" not in shown
    assert "cores    unknown" in shown

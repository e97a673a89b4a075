"""``numatwin policy draw``: the Petri net of the allocator of cores as a picture."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import CommandLine, Refused

from numatwin.sim.systems.tasks.cores import elastic_net
from numatwin.sim.systems.tasks.petri_net import net_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_the_net_is_drawn_whole(numatwin: CommandLine) -> None:
    done = numatwin("policy", "draw", "cores=sparse", "--out", "net.svg")
    assert (done.status, done.out, done.err) == (0, "net.svg\n", "")
    root = ElementTree.parse("net.svg").getroot()
    words = [text.text for text in root.iter(f"{SVG}text")]
    net = elastic_net(2)
    for name in (*net.places, *(one.name for one in net.transitions)):
        assert name in words
    assert len(list(root.iter(f"{SVG}line"))) == 2 * len(net.transitions)


def test_its_words_are_escaped() -> None:
    ElementTree.fromstring(net_svg(elastic_net(2), "<script>&"))


@pytest.mark.parametrize(
    ("policy", "out", "message"),
    [
        ("nothing", "x.svg", "no policy with a picture: found 'nothing'"),
        ("placer=adaptive", "x.svg", "expected one of cores=sparse"),
        ("cores=sparse", "x.pdf", "the extension .svg"),
        ("cores=sparse", "no/x.svg", "cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    refused: Refused, policy: str, out: str, message: str
) -> None:
    assert message in refused("policy", "draw", policy, "--out", out)
    assert not Path(out).exists()

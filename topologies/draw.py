"""Draws machines as SVG, for pages and reports, and files in HTML and SVG."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..inputs import InputError, write_text_atomically
from .compose import NodeUse, compose
from .layout import LinkUse
from .machine import Machine
from .picture import picture_data, read_picture
from .svg import svg_text


def machine_svg(
    machine: Machine | Mapping[str, Any],
    *,
    link_use: LinkUse | None = None,
    node_use: NodeUse | None = None,
    title: str | None = None,
    relative: bool = False,
) -> str:
    """The picture of a Machine or of its plain data (``picture_data``, a Record's machine), as SVG
    text.

    ``link_use``: utilisation, 0 to 1, of each directed link by its two ends (from, to);
    ``node_use``: of each node by its id. Where given they colour links and nodes on one scale; half
    of a link is coloured by what leaves the vertex that it touches. ``relative``: what is given as
    use is traffic, as a share of the most that a link or a node has. ``title`` stands in for the
    machine's own; "" leaves title and note out. Raises InputError where the data are no machine.
    """
    picture = read_picture(picture_data(machine) if isinstance(machine, Machine) else machine)
    scene = compose(picture, link_use=link_use, node_use=node_use, title=title, relative=relative)
    return svg_text(scene)


def write_picture(machine: Machine | Mapping[str, Any], path: str | Path) -> Path:
    """Writes the picture to ``path``, whole or not at all; its ending says how.

    ``.html``: a page that works offline, with facts under the mouse; ``.svg``. Raises InputError
    for another ending.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".svg"):
        raise InputError(
            "not a picture file", token=str(path), expected="the extension .html or .svg"
        )
    svg = machine_svg(machine)
    if target.suffix.lower() == ".html":
        head = (
            f'<meta charset="utf-8"><title>{html.escape(target.stem)}</title>'
            '<meta name="viewport" content="width=device-width">'
            "<style>svg { max-width: 100%; height: auto }</style>"
        )
        svg = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{svg}</body></html>\n'
    return write_text_atomically(target, svg)

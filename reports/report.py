"""One self-contained HTML file from records: no server, no network, one file to mail."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ..inputs import InputError, write_text_atomically
from ..sim.run.record import Record
from . import intervals, words
from .page import RESOURCES_FIRST, chapters_of

HERE = Path(__file__).parent
WIDE_PX = 700  # a machine that is wider than this has a row of its own


def write_report(records: Sequence[Record], path: str | Path) -> Path:
    """Writes the report on ``records`` to ``path``, whole or not at all; returns the path.

    Records of one scenario are put side by side. Raises InputError without records, or where the
    file cannot be written.
    """
    return write_text_atomically(path, report_html(records))


def report_html(records: Sequence[Record]) -> str:
    """The page as text; raises InputError without records."""
    if not records:
        raise InputError("no record to report on", expected="at least one")
    chapters = chapters_of(records)
    return rendered(
        "report.html",
        title=" · ".join(chapter.title for chapter in chapters),
        chapters=chapters,
        resources_first=RESOURCES_FIRST,
        wide_px=WIDE_PX,
        version=records[0].provenance.get("version"),
    )


def rendered(template: str, **content: Any) -> str:
    """A page as text: the template with its content, and the style and scripts of all pages."""
    scripts = [Markup(get_plotlyjs()), _asset("report.js")]
    page = _template(template).render(
        style=_asset("report.css"),
        scripts=scripts,
        script_hashes=[_hash(script) for script in scripts],
        **content,
    )
    # A name read from a foreign file may hold half a surrogate pair, which no file can.
    return page.encode("utf-8", "replace").decode("utf-8")


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "si": words.si,
        "rate": words.rate,
        "plural": words.plural,
        "percent": words.percent,
        "seconds": words.seconds,
        "nanoseconds": words.nanoseconds,
        "counted": words.count,
        "between": intervals.between,
        "listed": intervals.listed,
    }
    return environment.get_template(name)


def _asset(name: str) -> Markup:
    return Markup((HERE / name).read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    """What the page's policy knows a script by: no other script runs, should one get in."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"

"""One self-contained HTML file from records: no server, no network, one file to mail."""

import base64
import hashlib
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..inputs import InputError, write_bytes_atomically, write_text_atomically
from ..sim.run.record import Record
from . import intervals, words
from .figure import HASH, packed_plotly
from .page import RESOURCES_FIRST, chapters_of

HERE = Path(__file__).parent


def write_report(records: Sequence[Record], path: str | Path) -> Path:
    """Write the report on records as one HTML file, whole or not at all.

    Parameters
    ----------
    records : sequence of Record
        At least one; records of one scenario are put side by side.
    path : str or Path
        The file to write.

    Returns
    -------
    Path
        That of the file.

    Raises
    ------
    InputError
        If there are no records, or the file cannot be written.
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
        version=records[0].provenance.get("version"),
    )


def rendered(template: str, own: Sequence[str] = (), **content: Any) -> str:
    """A page as text: the template with its content, and the style and scripts of all pages.

    ``own``: further scripts of this page.
    """
    scripts = [_asset("report.js"), *map(_asset, own)]
    made = _environment(_Compiled()).get_template(template)
    page = made.render(
        style=_asset("report.css"),
        scripts=scripts,
        script_hashes=[HASH, *map(_hash, scripts)],
        plotly=base64.b64encode(packed_plotly()).decode("ascii"),
        **content,
    )
    # A name read from a foreign file may hold half a surrogate pair, which no file can.
    return _BIDIRECTIONAL.sub("?", page.encode("utf-8", "replace").decode("utf-8"))


# Controls in a name that would turn the text around it; Plotly's own script has none.
_BIDIRECTIONAL = re.compile("[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")


class _Compiled(jinja2.BytecodeCache):
    """Keeps compiled templates where Python keeps bytecode of modules beside them, if it does."""

    def __init__(self, always: bool = False) -> None:
        self.always = always

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file."""
        return cache_from_source(str(HERE / f"{name}.py"))

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """What was compiled from the same text, if anything."""
        with suppress(OSError), open(bucket.key, "rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """Keeps it."""
        if self.always or not sys.dont_write_bytecode:
            with suppress(InputError):
                write_bytes_atomically(bucket.key, bucket.bytecode_to_string())


def compile_templates() -> None:
    """Compiles all of them, for an installation whose users may or do not write bytecode."""
    environment = _environment(_Compiled(always=True))
    with suppress(OSError):  # Python makes it where it keeps bytecode
        (HERE / "__pycache__").mkdir(exist_ok=True)
    for path in HERE.glob("*.html"):
        environment.get_template(path.name)


def _environment(compiled: _Compiled) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=compiled,
    )
    environment.filters |= {
        "si": words.si,
        "rate": words.rate,
        "plural": words.plural,
        "percent": words.percent,
        "seconds": words.seconds,
        "some": words.some,
        "nanoseconds": words.nanoseconds,
        "counted": words.count,
        "between": intervals.between,
        "ways": intervals.ways,
        "listed": intervals.listed,
    }
    return environment


def _asset(name: str) -> Markup:
    return Markup((HERE / name).read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    """What the page's policy knows a script by: no other script runs, should one get in."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"

"""``make docs-site``: all documents and the reference, with search, without a warning."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.sweep
def test_the_site_is_built() -> None:
    done = subprocess.run(["make", "-s", "docs-site"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    site = ROOT / "build" / "site"
    found = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    places = {one["location"].partition("#")[0] for one in found["docs"]}
    documents = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    assert {f"docs/{name}/" for name in documents} <= places
    assert {"reference/", "reference/machine/", "reference/python/"} <= places
    assert "buffer_commands" in (site / "reference/scenario-eris/index.html").read_text("utf-8")
    # Names of fields are not broken in narrow columns.
    assert "docs/site.css" in (site / "reference/machine/index.html").read_text("utf-8")
    assert "white-space: nowrap" in (site / "docs" / "site.css").read_text("utf-8")

"""Gathers the pages of the documentation site: docs_site.py FOLDER

The documents as they stand, with the reference made from the schemas; links that lead out of the
documents, into the repository's folders, lead to their README where the site has it, else nowhere.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import reference

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)")


def gather(target: Path) -> None:
    """Writes all pages of the site into ``target``, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target / "docs")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, target / ("index.md" if name == "README.md" else name))
    shutil.copy(target / "LICENSE", target / "LICENSE.txt")
    for name, text in reference.pages().items():
        path = target / "reference" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for page in sorted(target.rglob("*.md")):
        page.write_text(_linked(page, target), encoding="utf-8")


def _linked(page: Path, target: Path) -> str:
    """The page's text, in which links that lead to nothing here are plain text."""

    def here(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        if (page.parent / path).resolve() == (target / "README.md").resolve():
            path = path.replace("README.md", "index.md")
        whole = page.parent / path
        return f"[{text}]({path}{anchor})" if whole.is_file() else text

    return LINK.sub(here, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    gather(Path(sys.argv[1]))

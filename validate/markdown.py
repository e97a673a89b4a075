"""Pages in Markdown: their words and heads of tables are in ``pages``, with marks for the rest."""

from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "pages"


def page_text(name: str, **parts: str) -> str:
    """The page of that name with a part in place of each ``@mark@``."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(f"@{mark}@", part)
    return text


def table_rows(rows: Iterable[Iterable[str]]) -> str:
    """Rows of a table, a line each."""
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)

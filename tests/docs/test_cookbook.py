"""The recipes of the cookbook run as they stand, each in an empty folder."""

import contextlib
import io
import re
from pathlib import Path

import pytest

COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook.md"
RECIPES = re.findall(
    r"^## (.+?)\n.*?^```python\n(.*?)^```$", COOKBOOK.read_text("utf-8"), re.M | re.S
)


def test_there_are_nine() -> None:
    assert len(RECIPES) == 9


@pytest.mark.parametrize("code", [pytest.param(code, id=title) for title, code in RECIPES])
def test_recipe(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(COOKBOOK), "exec"), {})
    assert printed.getvalue().strip() or "assert" in code

"""``make setup`` where warnings are errors, and where they are not: what is compiled, and how.

The Makefile runs in a folder with one source and a Python that only writes down how it was called.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
echo "$*" | grep -q build_ext && echo "strict: ${NUMATWIN_WERROR:-no}" >>compiled.txt
exit 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Packages are installed in it, nothing is compiled."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    given = "setup.py setup.cfg pyproject.toml sim/kernel/a.cpp tools/schemas.py tools/stubs.py"
    for name in given.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("numatwin/cli", "topologies", "workloads", "engine_native", "validate", "reports"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "numatwin/cli/schema.py").touch()
    (tmp_path / "build/schemas").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / ".venv/.packages").touch()
    return tmp_path


def set_up(folder: Path, strict: bool) -> list[str]:
    """How often it compiles, and whether warnings are errors then."""
    log = folder / "compiled.txt"
    log.unlink(missing_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    env.pop("NUMATWIN_WERROR", None)
    if strict:
        env["NUMATWIN_WERROR"] = "1"
    subprocess.run(["make", "-s", "setup"], cwd=folder, env=env, check=True, capture_output=True)
    return log.read_text().splitlines() if log.exists() else []


def change(folder: Path) -> None:
    """A source is newer than all that was made of it."""
    newest = max(path.stat().st_mtime for path in (folder / ".venv").glob(".*"))
    os.utime(folder / "sim/kernel/a.cpp", (newest + 1, newest + 1))


def test_what_was_compiled_strictly_is_not_compiled_again(folder: Path) -> None:
    assert set_up(folder, strict=True) == ["strict: 1"]
    assert set_up(folder, strict=False) == []
    change(folder)
    assert set_up(folder, strict=False) == ["strict: 1"]


def test_what_was_compiled_with_warnings_is_compiled_again_where_they_are_errors(
    folder: Path,
) -> None:
    assert set_up(folder, strict=False) == ["strict: no"]
    assert set_up(folder, strict=False) == []
    assert set_up(folder, strict=True) == ["strict: 1"]

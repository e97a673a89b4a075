"""The tutorial that adds a system: how much a system needs, and where. Its commands, among them its
own tests, are run by test_documents.py."""

import difflib
import subprocess
import sys
from pathlib import Path

import pytest
from console_blocks import ROOT, Step, run, steps

DOCUMENT = ROOT / "docs" / "add-a-system.md"
HOME = "sim/systems/cache/"
LINES_MAX, CPP_LINES_MAX = 490, 150


@pytest.fixture(scope="module")
def written() -> list[Step]:
    return list(steps(DOCUMENT.read_text(encoding="utf-8")))


def test_it_is_as_short_as_promised(written: list[Step]) -> None:
    lines = {step.file: step.written.count("\n") for step in written if step.file is not None}
    assert sum(lines.values()) <= LINES_MAX
    assert 0 < sum(lines[name] for name in lines if name.endswith("pp")) <= CPP_LINES_MAX


def test_a_folder_and_a_line_of_the_registry(written: list[Step], tmp_path: Path) -> None:
    """Besides a scenario and a test; no other command of the page changes the repository."""
    elsewhere = {step.file for step in written if step.file and not step.file.startswith(HOME)}
    assert elsewhere == {"sim/scenarios/cache.yaml", "tests/sim/test_cache.py"}
    assert not [name for name in elsewhere if (ROOT / name).exists()]
    (edit,) = (step for step in written if step.command.startswith("sed -i"))
    registry = tmp_path / "sim" / "systems" / "registry.py"
    registry.parent.mkdir(parents=True)
    before = (ROOT / "sim" / "systems" / "registry.py").read_text(encoding="utf-8")
    registry.write_text(before, encoding="utf-8")
    run(edit, tmp_path)
    after = registry.read_text(encoding="utf-8")
    changed = [
        line
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        if line[0] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert changed == ['+    "cache": ".cache.system",']


def test_its_code_is_laid_out_as_that_of_the_repository(
    written: list[Step], tmp_path: Path
) -> None:
    for name in ("pyproject.toml", ".clang-format"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    for step in written:
        if step.file is not None:
            run(step, tmp_path)
    sources = list(tmp_path.rglob("*.cpp"))
    tools = Path(sys.executable).parent
    commands: list[list[str | Path]] = [
        [tools / "ruff", "check", "--no-cache", "-q", tmp_path],
        [tools / "ruff", "format", "--no-cache", "--check", "-q", tmp_path],
        [tools / "clang-format", "--dry-run", "-Werror", *sources],
        [sys.executable, ROOT / "tools" / "check_includes.py", tmp_path],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

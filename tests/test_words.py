"""The check of 'make lint' for home-made words in identifiers."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[1] / "tools" / "check_words.py"


def checked(folder: Path, file: str, text: str) -> subprocess.CompletedProcess[str]:
    """The check of a repository with this file alone."""
    (folder / file).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", file], cwd=folder, check=True)
    command: list[str | Path] = [sys.executable, CHECK]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("a.py", "told_at = 1\n", "told_at"),
        ("a.py", "def f(beside: int) -> None: ...\n", "beside"),
        ("a.py", "class Whoever: ...\n", "Whoever"),
        ("a.cpp", "int line_apart_ = 0;\n", "line_apart_"),
    ],
)
def test_a_home_made_word_is_refused(tmp_path: Path, file: str, text: str, name: str) -> None:
    done = checked(tmp_path, file, text)
    assert (done.returncode, done.stdout.split("'")[1]) == (1, name)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.py", '"""Told apart."""\nreported = "told"\n'),
        ("a.cpp", '// told\nconst char* text = "apart";\nconst char* doc = R"(Whoever.)";\n'),
    ],
)
def test_texts_and_comments_are_not_names(tmp_path: Path, file: str, text: str) -> None:
    done = checked(tmp_path, file, text)
    assert (done.returncode, done.stdout) == (0, "")

"""``numatwin(...)`` runs a command line in this process, in an empty folder."""

from pathlib import Path

import pytest
from command_line import CommandLine, Done, Refused

from numatwin.cli import main


@pytest.fixture
def numatwin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMATWIN_DEBUG", raising=False)

    def run(*words: str) -> Done:
        capsys.readouterr()
        status = main(words)
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return run


@pytest.fixture
def refused(numatwin: CommandLine) -> Refused:
    """Runs a command line that must be refused: status 2, one line, nothing written."""

    def run(*words: str) -> str:
        before = sorted(Path.cwd().rglob("*"))
        done = numatwin(*words)
        assert done.status == 2
        assert done.out == ""
        assert done.err.startswith("numatwin: error: ")
        assert done.err.count("\n") == 1
        assert done.err.endswith("\n")
        assert "Traceback" not in done.err
        assert sorted(Path.cwd().rglob("*")) == before
        return done.err

    return run

"""Help waits for no library, and each command's example works as it stands."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from command_line import CommandLine
from fresh_processes import loads_none

from numatwin import __version__
from numatwin.cli import main
from numatwin.cli.app import application


def commands() -> Iterator[tuple[str, str]]:
    """Each command's words and the example in its help."""
    app = application()
    for info in app.registered_commands:
        yield str(info.name), str(info.epilog).removeprefix("Example: ")
    for group in app.registered_groups:
        assert group.typer_instance is not None
        for info in group.typer_instance.registered_commands:
            yield f"{group.name} {info.name}", str(info.epilog).removeprefix("Example: ")


FILES = ("server-2s.yaml", "mlc-2s.txt", "buffers.yaml", "groups.callgrind.out")
CONDITIONS = ("fig8-unknown.yaml", "fig8-runs.csv")


@pytest.fixture(scope="module")
def folder_with_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that examples run in: as after two runs with default names, with a server's data
    sheet and what Intel MLC printed on it.
    """
    folder = tmp_path_factory.mktemp("examples")
    for file in (*FILES, *CONDITIONS):
        shutil.copy(Path(__file__).parents[2] / "docs" / "examples" / file, folder)
    with chdir(folder):
        for policy in ("none", "ma-8"):
            assert main(["run", "eris-fig13", "--policy", policy, "--exact"]) == 0
        assert main(["study", "run", "buffers.yaml", "--jobs", "1", "--exact"]) == 0
    return folder


def _shell(line: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PATH": path},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


# What takes long, and is also a command of `make run` or of a document.
LONG = {"emulate", "infer", "machine measure", "train access-path"}


@pytest.mark.parametrize(
    ("words", "example"),
    [
        pytest.param(*command, id=command[0], marks=[pytest.mark.sweep] * (command[0] in LONG))
        for command in commands()
    ],
)
def test_example_works(
    words: str,
    example: str,
    folder_with_records: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process where no shell is needed: most of a short command is what Python loads."""
    assert example.startswith(f"numatwin {words}")
    if words == "explore":
        pytest.skip("it serves until it is interrupted: see test_explore_command.py")
    if words == "emulate":
        if not shutil.which("qemu-system-x86_64") and not os.environ.get(
            "NUMATWIN_REQUIRE_EMULATOR"
        ):
            pytest.skip("there is no QEMU here")
        _shell(f"{example} 2>/dev/null", folder_with_records)  # it says what it scaled
        return
    if set(example) & set("|&;<>$*"):
        _shell(example, folder_with_records)
        return
    monkeypatch.chdir(folder_with_records)
    assert (main(shlex.split(example)[1:]), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("words", ["", "machine", *(words for words, _ in commands())])
def test_help_of_every_command(numatwin: CommandLine, words: str) -> None:
    out = numatwin(*words.split(), "--help").said()
    assert out.startswith(f"Usage: numatwin {words}".rstrip())
    assert "..." not in out.partition("\n")[2]  # a sentence that typer cut short
    assert max(map(len, out.splitlines())) <= 80


def test_a_group_alone_prints_its_help(numatwin: CommandLine) -> None:
    assert numatwin() == numatwin("--help")
    assert numatwin("machine") == numatwin("machine", "--help")


def test_version(numatwin: CommandLine) -> None:
    assert numatwin("--version") == (0, f"numatwin {__version__}\n", "")


def test_help_imports_nothing_heavy() -> None:
    heavy = "numpy", "scipy", "pydantic", "plotly", "pyarrow", "networkx", "pint"
    loads_none("from numatwin.cli import main; main(['--help'])", *heavy)


def test_only_the_command_that_is_asked_for_is_made() -> None:
    """The parameters of all others take longer to read than an answer takes to print."""
    only, app = application("run"), application()
    assert [one.name for one in only.registered_commands] == ["run"]
    assert not only.registered_groups
    assert [one.name for one in application("machine").registered_groups] == ["machine"]
    assert len(app.registered_commands) > 10
    # Its message proposes what there is.
    assert len(application("rnu").registered_commands) == len(app.registered_commands)

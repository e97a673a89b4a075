"""``--verbose``, ``--log-file``, ``doctor`` and the completion of shells."""

import os
import re
import shutil
from configparser import ConfigParser
from pathlib import Path

import pytest
from command_line import CommandLine
from fresh_processes import python

from numatwin.cli import doctor
from numatwin.cli.failures import with_log_options_first

MINE = "name: mine\nextends: eris-fig12-scan\nhorizon: 1 s\n"


def test_what_a_run_reads_and_does(numatwin: CommandLine) -> None:
    Path("mine.yaml").write_text(MINE)
    words = ("run", "mine.yaml", "--exact", "--json")
    quiet, done = numatwin(*words), numatwin(*words, "--verbose", "--log-file", "log.txt")
    assert quiet.err == ""
    assert done.json()["throughput"] == quiet.json()["throughput"]
    lines = done.err.splitlines()
    assert all(line.startswith("numatwin: ") for line in lines)
    assert "numatwin: reading 'mine.yaml'" in lines
    assert any("running mine (" in line and "on plane flow, seed 0" in line for line in lines)
    assert lines[-1] == "numatwin: exit status 0"
    logged = Path("log.txt").read_text()
    assert [line.split(" INFO ")[1] for line in logged.splitlines()] == [
        line.removeprefix("numatwin: ") for line in lines
    ]


def test_an_error_with_its_traceback_in_the_file_alone(numatwin: CommandLine) -> None:
    done = numatwin("--verbose", "--log-file=log.txt", "run", "none")
    assert done.status == 2
    assert "Traceback" not in done.err
    assert "Traceback" in Path("log.txt").read_text()
    numatwin("run", "none", "--log-file", "log.txt")
    assert Path("log.txt").read_text().count("Traceback") == 2  # it is added to
    assert "log.txt" not in numatwin("run", "none").err


def test_a_log_that_cannot_be_written(numatwin: CommandLine) -> None:
    Path("folder").mkdir()
    done = numatwin("scenario", "list", "--log-file", "folder")
    assert done.status == 2
    assert done.err == "numatwin: error: folder: cannot be written: Is a directory\n"
    assert numatwin("scenario", "list", "--log-file").status == 2


def test_words_of_another_program_are_left_alone() -> None:
    words = ["emulate", "m", "--verbose", "--", "x", "--log-file", "y"]
    assert with_log_options_first(words) == [
        "--verbose", "emulate", "m", "--", "x", "--log-file", "y"
    ]  # fmt: skip


def test_doctor_where_all_is_there(numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = numatwin("doctor", "--json").json()["findings"]
    assert found[0] == {
        "feature": "all planes",
        "needs": "the compiled kernel",
        "available": True,
        "problem": None,
        "install": None,
    }
    assert numatwin("doctor").out.count("\n") == len(found) + 1
    has_qemu = shutil.which("qemu-system-x86_64") is not None
    assert next(one for one in found if "qemu" in one["needs"])["available"] == has_qemu


def test_doctor_names_what_is_missing(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = numatwin("doctor")
    assert done.status == 0
    line = next(line for line in done.out.splitlines() if "qemu" in line)
    assert "not found on PATH" in line
    assert line.rstrip().endswith("sudo apt-get install qemu-system-x86")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    (kernel,) = (one for one in doctor.findings() if "kernel" in one.needs and not one.needed)
    assert bool(kernel.problem) == (not list(Path("/boot").glob("vmlinuz-*")))
    assert "-m numatwin.topologies.emulator" in kernel.install
    monkeypatch.setattr(doctor, "_module", lambda name: f"No module named '{name}'")
    assert numatwin("doctor").status == 1


def test_doctor_knows_every_optional_package(numatwin: CommandLine) -> None:
    setup = ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    extras = setup["options.extras_require"]
    wanted = {
        re.split(r"[ ><=]", line)[0]
        for name, lines in extras.items()
        if name not in ("test", "lint")
        for line in lines.split("\n")
        if line
    }
    found = numatwin("doctor", "--json").json()["findings"]
    assert wanted <= {one["needs"] for one in found}


def test_shells_complete_commands_options_and_names(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complete(words: str) -> list[str]:
        """What bash would offer behind these words."""
        monkeypatch.setenv("_NUMATWIN_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return numatwin().said().split()

    assert complete("numatwin comp") == ["compare"]
    assert complete("numatwin run eris-fig12") == ["eris-fig12-scan"]
    assert complete("numatwin machine show amd") == ["amd-8n-ht"]
    assert "--policy" in complete("numatwin run --pol")
    assert complete("numatwin run eris-fig13 --machine amd") == ["amd-8n-ht"]
    assert complete("numatwin run eris-fig13 --workload lookup-z") == ["lookup-zipf"]
    assert complete("numatwin run eris-fig13 --policy ma-") == ["ma-1", "ma-8"]
    assert complete("numatwin run hana-fig10 --policy placer=adap") == ["placer=adaptive"]
    assert complete("numatwin workload show lookup-z") == ["lookup-zipf"]
    assert complete("numatwin scenario show eris-fig12") == ["eris-fig12-scan"]


def test_completion_is_installed(tmp_path: Path) -> None:
    code = (
        "import sys, shellingham; shellingham.detect_shell = lambda: ('bash', '/bin/bash');"
        "from numatwin.cli import main; sys.exit(main(['--install-completion']))"
    )
    done = python("-c", code, env={**os.environ, "HOME": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    script = (tmp_path / ".bash_completions" / "numatwin.sh").read_text()
    assert "_NUMATWIN_COMPLETE=complete_bash" in script

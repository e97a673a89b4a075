"""Every failure is one line on standard error, with its own exit status."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import fresh_processes
import pytest
from command_line import CommandLine, Refused

from numatwin.cli import failures
from numatwin.cli.machine_build import SERVERS_MAX
from numatwin.inputs import InputError
from numatwin.topologies.schema_types import NODES_MAX

BUILD = ("machine", "build", "--processor", "EPYC 7763", "--adapter", "roce-100", "--out", "c.yaml")
COMMAND = [sys.executable, "-m", "numatwin"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["sing"], "no such command 'sing'"),
        (["run"], "missing argument"),
        (["run", "x", "--onn", "flow"], "no such option: --onn"),
        (["run", "x", "--on", "paper"], "'paper' is not one of"),
        (["schema", "paper"], "invalid value for 'KIND': 'paper' is not one of"),
        (
            ["run", "x", "--seed", "first"],
            "--seed: found 'first', expected a whole number, 0 or more",
        ),
        (["run", "x", "--replications", "0"], "--replications: found '0', expected 1 or more"),
        ([*BUILD, "--sockets", "0"], "error: --sockets: found '0', expected 1 to 64 ("),
        ([*BUILD, "--servers", "1"], "error: --servers: found '1', expected 2 to 1,024 ("),
        ([*BUILD, "--ports", "1.5"], "found '1.5', expected a whole number, 1 to 64"),
        (["machine", "sing"], "no such command 'sing'"),
        (["machine", "draw", "amd-8n-ht"], "missing option '--out'"),
        (["machine", "show", "amd-8n-ht", "--yaml", "--json"], "at most one of"),
        (["compare", "only-one"], "two records or more"),
        (["run", ""], "argument: it is empty"),
        (["run", "eris-fig13", "--policy", ""], "--policy: it is empty"),
        (["run", "eris-fig13", "--machine", ""], "--machine: it is empty"),
        (["run", "eris-fig13", "--out", "", "--json"], "--out: it is empty"),
        (["run", "eris-fig13", "--out="], "--out: it is empty"),
        (["machine", "import", "--out", ""], "--out: it is empty"),
    ],
)
def test_usage(refused: Refused, words: list[str], text: str) -> None:
    line = refused(*words)
    assert text in line
    assert "--help' tells more" in line


def test_too_little_memory(refused: Refused) -> None:
    line = refused(*BUILD, "--sockets", "2", "--memory", "1 B")
    assert line.endswith(
        "too little memory for a server of 128 cores: found '1 B', expected 128 MiB or more\n"
    )


def test_help_says_how_many_servers(numatwin: CommandLine) -> None:
    assert SERVERS_MAX == NODES_MAX
    assert "2<=x<=1024" in numatwin("machine", "build", "--help").out


def test_input_error(refused: Refused) -> None:
    Path("bad.yaml").write_text(
        "name: x\nnode_types: {a: {cores: 1, colour: red, memory: {size: 1 GiB}}}\nnodes: []\n"
    )
    line = refused("machine", "show", "bad.yaml")
    assert "bad.yaml:2:" in line
    assert "colour" in line


def test_unknown_name_is_answered_with_the_nearest(refused: Refused) -> None:
    assert "'amd-8n-ht'" in refused("machine", "show", "amd-8n-th")


def test_a_message_of_many_lines_becomes_one(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise RuntimeError("one\ntwo\x1b[31mthree")

    assert failures.exit_status(fail) == 70
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert "RuntimeError: one two" in err
    assert "NUMATWIN_DEBUG=1" in err


def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMATWIN_DEBUG", "1")

    def fail() -> None:
        raise InputError("wrong", "file.yaml", 3, 4)

    assert failures.exit_status(fail) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("numatwin: error: file.yaml:3:4: wrong\n")


def test_system_errors_name_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.exit_status(lambda: Path("/proc/none/such").read_text()) == 2
    assert (
        capsys.readouterr().err == "numatwin: error: /proc/none/such: No such file or directory\n"
    )


def test_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert failures.exit_status(interrupted) == 130
    assert capsys.readouterr().err == "numatwin: interrupted\n"


def test_interrupt_of_work_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        with failures.keeping():
            raise KeyboardInterrupt

    assert failures.exit_status(interrupted) == 130
    assert capsys.readouterr().err == "numatwin: interrupted; what was finished is kept\n"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_from_outside(sent: signal.Signals) -> None:
    """A real signal in the middle of a command, here while it waits for the output of a tool."""
    read, write = os.pipe()
    command = [*COMMAND, "machine", "import", f"/dev/fd/{read}", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[read]
    ) as process:
        os.write(write, b"available: 1 nodes (0)\n")
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline and not _waits(process.pid):
            time.sleep(0.02)
        process.send_signal(sent)
        out, err = process.communicate(timeout=900)
    os.close(write)
    os.close(read)
    assert (process.returncode, out) == (130, "")
    assert err == "numatwin: interrupted\n"


def _waits(pid: int) -> bool:
    """Whether the process sleeps in a read of a pipe."""
    try:
        return "pipe" in Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return False


def test_reader_that_goes_away() -> None:
    """``numatwin … | head -1`` is quiet."""
    for words in (["machine", "show", "amd-8n-ht", "--yaml"], ["machine", "list"], ["--help"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, text=True, timeout=900
        )
        os.close(write)
        assert done.stderr == ""
        assert done.returncode == 141


def _closing(streams: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command after the shell has closed standard streams."""
    line = f'exec "$0" -m numatwin "$@" {streams}'
    return subprocess.run(
        ["bash", "-c", line, sys.executable, *words], capture_output=True, text=True, timeout=900
    )


def test_nothing_to_print_to() -> None:
    for words in (["machine", "list", "--json"], ["--help"]):
        done = _closing(">&-", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "numatwin: error: standard output is closed: expected something to print to\n"
        )
        assert _closing(">&- 2>&-", *words).returncode == 2


def test_nowhere_to_tell_of_errors() -> None:
    """Standard output stays that of results."""
    done = _closing("2>&-", "machine", "show", "none")
    assert (done.returncode, done.stdout) == (2, "")
    done = _closing("2>&- <&-", "run", "eris-fig12-scan", "--exact", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["scenario"] == "eris-fig12-scan"


def test_a_terminal_without_unicode() -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = fresh_processes.numatwin("machine", "list", env=ascii_only)
    assert done.returncode == 0, done.stderr
    assert "4 ? Opteron 6274" in done.stdout


AS_IT_STARTS = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))

sys.meta_path.insert(0, Interrupt())
from numatwin.cli import main
sys.exit(main(["run", "eris-fig13", "--json"]))
"""


@pytest.mark.parametrize(
    ("module", "sent"),
    [
        ("typer", "SIGINT"),
        ("numatwin.cli.app", "SIGINT"),
        ("numatwin.cli.run", "SIGINT"),
        ("numatwin.cli.run", "SIGTERM"),
    ],
)
def test_ctrl_c_as_the_command_starts(module: str, sent: str) -> None:
    done = fresh_processes.python("-c", AS_IT_STARTS, module, sent)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr == "numatwin: interrupted\n"


def test_a_file_that_a_scenario_names_is_told_with_its_line(refused: Refused) -> None:
    fields = "workload: lookup-zipf\nsystem: {kind: eris}\nhorizon: 1 s\nseed: 1\n"
    Path("s.yaml").write_text(f"name: s\nmachine: none.yaml\n{fields}")
    told = refused("run", "s.yaml")
    assert "s.yaml:2:10: " in told
    assert "none.yaml: cannot be read: No such file or directory" in told
    Path("folder").mkdir()
    Path("s.yaml").write_text(f"name: s\nmachine: ./folder\n{fields}")
    assert "s.yaml:2:10: folder: cannot be read: Is a directory" in refused("run", "s.yaml")


def test_a_full_standard_output_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "--version"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 75
    assert done.stderr == "numatwin: error: standard output: No space left on device\n"


def test_too_little_address_space_is_told_at_once() -> None:
    """Else OpenBLAS waits for ever, or ends the process on its own."""
    few = (200 * 2**20, 200 * 2**20)
    limited = partial(resource.setrlimit, resource.RLIMIT_AS, few)
    done = fresh_processes.numatwin("run", "eris-fig13-small", preexec_fn=limited)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "not enough memory: 'ulimit -v' allows 200 MiB" in done.stderr


def test_blas_has_one_thread() -> None:
    """Its threads' memory is what little address space lacks as SciPy loads."""
    code = "import os, sys; sys.argv = ['numatwin', '--version']; from numatwin.cli import main; "
    code += "main(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    unset = {name: text for name, text in os.environ.items() if "OPENBLAS" not in name}
    done = subprocess.check_output([sys.executable, "-c", code], env=unset, text=True)
    assert done.splitlines()[-1] == "1"


def test_errors_that_have_nowhere_to_go_keep_their_status() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "numatwin", "run", "none"], stderr=full)
    assert done.returncode == 2

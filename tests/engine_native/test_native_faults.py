"""What a real run does where the host fails it: no threads, memory, library or disk; kills."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

from commit_runs import children_of, environment, is_running, segments, until
from fresh_processes import numatwin

from numatwin import engine_native
from numatwin.engine_native import _engine
from numatwin.engine_native.systems.eris.setup import ErisHost
from numatwin.inputs import InputError
from numatwin.sim.run.scenario import Scenario, load_scenario

SMALL = ["native_horizon=200 ms", "system.nodes=1", "system.threads=2"]
RUN = ["run", "host-lookup", "--on", "native", "--scale", "1/100"]
RUN += [word for setting in SMALL for word in ("--set", setting)]
needs_ucx = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")


def small(name: str = "host-lookup", *settings: str, scale: float = 0.01) -> Scenario:
    return load_scenario(name, plane="native", scale=scale, settings=[*SMALL, *settings])


def test_a_library_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Linked:
        """Finds the engine, whose library the loader does not find."""

        def find_spec(self, name: str, *_: object) -> None:
            if name.endswith("engine_native._engine"):
                raise ImportError("libucp.so.0: cannot open shared object file")

    monkeypatch.delattr(engine_native, "_engine")
    monkeypatch.delitem(sys.modules, "numatwin.engine_native._engine")
    monkeypatch.setattr(sys, "meta_path", [Linked(), *sys.meta_path])
    with (
        pytest.raises(InputError, match=r"cannot be loaded: libucp\.so\.0: ") as told,
        engine_native.planes(small()),
    ):
        pass
    assert "system-packages" in str(told.value)


def test_an_engine_that_was_not_built_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(engine_native, "_engine")
    monkeypatch.setitem(sys.modules, "numatwin.engine_native._engine", None)
    with pytest.raises(InputError, match="libnuma-dev"), engine_native.planes(small()):
        pass


def test_little_memory_is_told_in_one_line() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))

    done = numatwin(*RUN[:4], "--scale", "1/16", "--json", preexec_fn=limit)  # 1.6 GB
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].count("no memory left") == 1


def test_threads_that_cannot_be_had_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThreads:
        def __init__(self, _: object) -> None: ...
        def cancel(self) -> None: ...
        def begin_load(self) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("numatwin.engine_native._engine.Engine", NoThreads)
    with pytest.raises(InputError, match="no threads for 2 workers: Resource temporarily"):
        ErisHost(small())


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("system.command_size=4 B", r"system\.command_size: .* '4 B', expected 8 to 1024 B"),
        ("system.command_size=4 KiB", r"system\.command_size: .* '4096 B', expected 8 to 1024 B"),
        ("system.result_size=12 B", r"system\.result_size: .* '12 B', expected 0 to 1024 B"),
    ],
)
def test_messages_that_the_engine_cannot_send(setting: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        ErisHost(small("host-lookup", setting))


def test_one_cpu_is_enough() -> None:
    cpu = min(os.sched_getaffinity(0))

    def bind() -> None:
        os.sched_setaffinity(0, {cpu})

    done = numatwin(*RUN, "--replications", "1", "--out", os.devnull, preexec_fn=bind)
    assert done.returncode == 2  # no folder: found out before the run
    done = numatwin(*RUN, "--replications", "1", "--json", preexec_fn=bind)
    assert done.returncode == 0, done.stderr
    assert "2 workers share 1 CPU of this host" in done.stdout


def test_a_full_disk_keeps_nothing_half_written(tmp_path: Path) -> None:
    def limit() -> None:  # of files: as a disk that is full, but for who asks
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, 8 << 10))

    out = tmp_path / "out"
    done = numatwin(*RUN, "--replications", "1", "--out", str(out), preexec_fn=limit)
    assert done.returncode == 75, done.stderr
    assert "cannot be written" in done.stderr.strip().splitlines()[-1]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("with_signal", "phase"),
    [(signal.SIGINT, "running"), (signal.SIGTERM, "loading"), (signal.SIGKILL, "loading")],
)
@needs_ucx
def test_an_interrupted_run_leaves_nothing(
    with_signal: signal.Signals, phase: str, tmp_path: Path
) -> None:
    before, out = segments(), tmp_path / "out"
    words = ["run", "nam-fig6-rsi", "--on", "native", "--scale", "0.2", "--out", str(out)]
    words += ["--set", "native_horizon=60 s", "--set", "system.clients=2"]
    with subprocess.Popen(
        [sys.executable, "-m", "numatwin", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        # Who runs the tests in the background has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as asking:
        try:
            assert until(lambda: bool(children_of(asking.pid)))
            parent = children_of(asking.pid)[0]
            if phase == "running":
                roles = 2 + 4
                assert until(lambda: len(children_of(parent)) == roles)
                time.sleep(1.0)
            started = [parent, *children_of(parent)]
            asking.send_signal(with_signal)
            assert asking.wait(900) == (-9 if with_signal == signal.SIGKILL else 130)
        finally:
            asking.kill()
    assert until(lambda: not any(map(is_running, started))), started
    assert until(lambda: segments() <= before), segments() - before
    assert not out.exists()


ASK = """
import sys, time
from numatwin.engine_native.engine_process import EngineProcess
from numatwin.engine_native.transports import ucx_settings
run = {"nodes": 1, "managers": [0], "timestamps": 0, "streams": [0] * 4} | ucx_settings("shm")
process = EngineProcess("measure_blocks", run, ([64], [1 << 20], [0, 0], 9, 10**12))
print(process.pid, flush=True)
time.sleep(600)
"""


@needs_ucx
def test_a_measurement_ends_with_who_asked_for_it() -> None:
    before = segments()
    with subprocess.Popen(
        [sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True, env=environment()
    ) as asking:
        assert asking.stdout is not None
        measuring = int(asking.stdout.readline())
        assert until(lambda: bool(children_of(measuring)))
        started = [measuring, *children_of(measuring)]
        assert all(map(is_running, started))
        asking.kill()
    assert until(lambda: not any(map(is_running, started))), started
    assert until(lambda: segments() <= before), segments() - before

"""What a real run does where the host limits it: memory of a group, huge pages, missing headers."""

import ctypes
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fresh_processes import numatwin, python

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

from numatwin.engine_native.systems.eris.setup import ErisHost
from numatwin.sim.run.scenario import load_scenario

ROOT = Path(__file__).parents[2]
SMALL = ["--set", "native_horizon=100 ms", "--replications", "1", "--set", "system.nodes=1"]
RUN = ["run", "host-lookup", "--on", "native", "--set", "system.threads=2", *SMALL, "--json"]
PR_SET_THP_DISABLE = 41


def test_a_processor_that_others_use_is_told() -> None:
    cpu = min(os.sched_getaffinity(0))
    words = [*RUN, "--scale", "1/1000"]
    words[words.index("system.threads=2")] = "system.threads=1"

    def pinned() -> None:
        os.sched_setaffinity(0, {cpu})

    other = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pinned)
    try:
        done = numatwin(*words, preexec_fn=pinned)
    finally:
        other.kill()
        other.wait()
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert 0.1 < record["model"]["native"]["waited_for_processors"] <= 1.0
    assert any("busy with other work" in line for line in record["warnings"])


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of 500 MB; a skip where this process may make none."""
    version_1 = Path("/sys/fs/cgroup/memory")
    parent = version_1 if version_1.is_dir() else Path("/sys/fs/cgroup")
    limit = "memory.limit_in_bytes" if version_1.is_dir() else "memory.max"
    group = parent / f"numatwin-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(500 << 20))
    except OSError as failure:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no control group can be made here: {failure}")
    yield group
    group.rmdir()


def test_a_group_with_little_memory_is_told_what_fits(small_group: Path) -> None:
    def enter() -> None:
        (small_group / "cgroup.procs").write_text(str(os.getpid()))

    refused = numatwin(*RUN, preexec_fn=enter)  # 2*10^7 keys
    assert refused.returncode == 2, refused.stderr
    assert refused.stdout == ""
    told = re.search(r"this host can spare 0\.\d+ GB: expected --scale ([\d.]+)", refused.stderr)
    assert told is not None, refused.stderr
    assert 0.002 < float(told[1]) < 0.02  # of the scenario's own scale, 1/50
    fits = numatwin(*RUN, "--scale", told[1], preexec_fn=enter)
    assert fits.returncode == 0, fits.stderr


def test_huge_pages_that_are_refused_are_told() -> None:
    libc = ctypes.CDLL(None)

    def refuse() -> None:
        assert libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0

    words = [*RUN, "--scale", "1/200", "--set", "system.page_size=2 MiB"]
    done = numatwin(*words, preexec_fn=refuse)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["model"]["native"]["huge_page_part"] < 0.5
    assert any("huge pages" in note for note in record["warnings"]), record["warnings"]


def test_loading_tells_how_far_it_is() -> None:
    scenario = load_scenario(
        "host-lookup", plane="native", scale=0.2, settings=["system.nodes=1", "system.threads=2"]
    )
    told: list[float] = []
    ErisHost(scenario, told.append).close()
    assert told == sorted(told)
    assert told[-1] == 1.0


SHOW = """
import json, runpy, setuptools
setuptools.setup = lambda ext_modules, cmdclass: print(
    json.dumps([vars(one) for one in ext_modules], default=str)
)
runpy.run_path("setup.py")
"""


@pytest.mark.parametrize(
    ("hidden", "built", "with_ucx"),
    [
        *(("numa.h", False, False), ("ucp/api/ucp.h", True, False), ("nothing", True, True)),
        (None, False, False),
    ],
)
def test_a_build_without_headers(
    hidden: str | None, built: bool, with_ucx: bool, tmp_path: Path
) -> None:
    """What setup.py would build with a compiler that lacks a header, or with none."""
    compiler = tmp_path / "compiler"
    if hidden is not None:
        compiler.write_text(
            "#!/bin/sh\n"
            f'for w; do case "$w" in *.cpp) grep -q "<{hidden}>" "$w" && exit 1;; esac; done\n'
            f'exec "{os.environ.get("CXX", "g++")}" "$@"\n'
        )
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    done = python("-c", SHOW, cwd=ROOT, env={**os.environ, "CXX": str(compiler)})
    assert done.returncode == 0, done.stderr
    modules = {one["name"].rpartition(".")[2]: one for one in json.loads(done.stdout)}
    assert set(modules) == {"_kernel", *(["_engine"] if built else [])}
    left_out = "no libnuma headers: the native engine is left out\n"
    assert done.stderr == ("" if built else left_out)
    if built:
        if with_ucx and "ucp" not in modules["_engine"]["libraries"]:
            pytest.skip("needs libucx-dev")
        assert modules["_engine"]["libraries"] == ["numa", *(["ucp", "ucs"] if with_ucx else [])]
        assert modules["_engine"]["define_macros"] == ([["NUMATWIN_UCX", None]] if with_ucx else [])

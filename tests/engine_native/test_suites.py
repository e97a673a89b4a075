"""The engine's GoogleTest suites under ThreadSanitizer, and under AddressSanitizer with UBSan.

Built by CMake in build/engine-thread and build/engine-address, which stay for the next time.
"""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "engine_native"
SUITES = sorted(path.stem for path in (ENGINE / "tests").glob("test_*.cpp"))
SANITIZERS = {"thread": "thread", "address": "address,undefined"}
JOBS = 2
# The leak check needs ptrace, which containers deny; suites count what they allocate.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "second_deadlock_stack=1",
    # Else UCX hooks madvise, also that of a thread which ends, and ThreadSanitizer crashes in it.
    "UCX_MEM_MMAP_HOOK_MODE": "none",
    "UCX_MEM_EVENTS": "no",
}


def give_up(reason: str) -> None:
    """A skip; where all must run, a failure."""
    if os.environ.get("CI") == "true" or os.environ.get("NUMATWIN_REQUIRE_ENGINE"):
        pytest.fail(reason)
    pytest.skip(reason)


def has_header(name: str) -> bool:
    """Whether the compiler finds it."""
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-E", "-x", "c++", "-", "-o", os.devnull]
    try:
        source = f"#include <{name}>\n"
        return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="session")
def tools() -> None:
    missing = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
    missing += [name for name in ("numa.h", "gtest/gtest.h") if not has_header(name)]
    if missing:
        give_up(f"engine suites: no {', '.join(missing)}; tools/system-packages installs them")


@pytest.fixture(scope="session", params=list(SANITIZERS))
def build(request: pytest.FixtureRequest, tools: None) -> Path:
    """A folder with all suites, built by one test process while others wait."""
    folder = ROOT / "build" / f"engine-{request.param}"
    folder.mkdir(parents=True, exist_ok=True)
    sanitize = f"-DSANITIZE={SANITIZERS[request.param]}"
    configure = ["cmake", "-S", str(ENGINE), "-B", str(folder), "-G", "Ninja", sanitize]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in configure, ["cmake", "--build", str(folder), "-j", str(JOBS)]:
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    return folder


@pytest.fixture(scope="session")
def unshuffled() -> list[str]:
    """A prefix for commands: where the kernel shuffles addresses much (vm.mmap_rnd_bits 32), the
    sanitizers of GCC up to 13 find their own memory taken now and then, and crash as they start.
    Nothing where a container forbids it."""
    prefix = ["setarch", "--addr-no-randomize"]
    if shutil.which("setarch") is None:
        return []
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else []


@pytest.mark.parametrize("suite", SUITES)
def test_suite(build: Path, unshuffled: list[str], suite: str) -> None:
    command = [*unshuffled, str(build / suite), "--gtest_brief=1"]
    environment = {**os.environ, **OPTIONS}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
    said = (done.stdout + done.stderr)[-8000:]
    assert done.returncode == 0, f"again: {' '.join(command)}\n{said}"
    assert re.search(r"PASSED  \] [1-9]", done.stdout), said

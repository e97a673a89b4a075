"""The engine's GoogleTest suites under ThreadSanitizer, and under AddressSanitizer with UBSan.

Those that start no thread run under the latter alone.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_suites import ENGINE, SANITIZERS, build

pytestmark = pytest.mark.slow

SUITES = sorted(path.stem for path in (ENGINE / "tests").glob("test_*.cpp"))
# What a program calls that starts a thread, in its suite or in the engine; the first of them is
# that of std::thread, std::jthread and std::async.
THREAD_STARTS = ("_ZNSt6thread15_M_start_thread", "pthread_create", "thrd_create", "GOMP_parallel")
# The leak check needs ptrace, which containers deny; suites count what they allocate.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "second_deadlock_stack=1",
    # Else UCX hooks madvise, also that of a thread which ends, and ThreadSanitizer crashes in it.
    "UCX_MEM_MMAP_HOOK_MODE": "none",
    "UCX_MEM_EVENTS": "no",
}


def without_threads() -> set[str]:
    """The suites that CMake leaves out under ThreadSanitizer."""
    text = (ENGINE / "CMakeLists.txt").read_text(encoding="utf-8")
    (listed,) = re.findall(r"set\(WITHOUT_THREADS([^)]*)\)", text)
    return set(listed.split())


# The slower build is for sweeps; whatever starts threads is played in `make test` too.
RUNS = [
    pytest.param(sanitizer, suite, marks=[pytest.mark.sweep] if sanitizer == "address" else [])
    for sanitizer in SANITIZERS
    for suite in SUITES
    if sanitizer != "thread" or suite not in without_threads()
]


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
    missing = [name for name in ("cmake", "ninja", "nm") if shutil.which(name) is None]
    missing += [name for name in ("numa.h", "gtest/gtest.h") if not has_header(name)]
    if missing:
        give_up(f"engine suites: no {', '.join(missing)}; tools/system-packages installs them")


@pytest.fixture(scope="session")
def built(tools: None) -> Callable[[str], Path]:
    """The folder with all suites of a sanitizer, built by one test process while others wait."""
    return functools.cache(build)


@pytest.fixture(scope="session")
def unshuffled() -> list[str]:
    """A prefix for commands: where the kernel shuffles addresses much (vm.mmap_rnd_bits 32), the
    sanitizers of GCC up to 13 find their own memory taken now and then, and crash as they start.
    Nothing where a container forbids it."""
    prefix = ["setarch", "--addr-no-randomize"]
    if shutil.which("setarch") is None:
        return []
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else []


@pytest.mark.parametrize(("sanitizer", "suite"), RUNS)
def test_suite(
    built: Callable[[str], Path], unshuffled: list[str], sanitizer: str, suite: str
) -> None:
    command = [*unshuffled, str(built(sanitizer) / suite), "--gtest_brief=1"]
    environment = {**os.environ, **OPTIONS}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
    said = (done.stdout + done.stderr)[-8000:]
    assert done.returncode == 0, f"again: {' '.join(command)}\n{said}"
    assert re.search(r"PASSED  \] [1-9]", done.stdout), said


@pytest.mark.sweep
def test_only_suites_that_start_no_thread_are_left_out(built: Callable[[str], Path]) -> None:
    """Each program holds just those parts of the engine that its suite may come to."""
    folder = built("address")
    assert {suite for suite in SUITES if not starts_threads(folder / suite)} == without_threads()


def starts_threads(program: Path) -> bool:
    """Whether it may start one: what is called of libraries stands among its undefined symbols."""
    command = ["nm", "--undefined-only", "--format=just-symbols", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return any(symbol.startswith(THREAD_STARTS) for symbol in done.stdout.split())

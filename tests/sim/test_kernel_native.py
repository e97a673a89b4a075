"""The event queue, timers and primitives on their own: random programs under the sanitizers."""

import os
import subprocess
from pathlib import Path

import pytest
from test_class_sharing_native import WARNINGS, compiler, sanitizers

pytestmark = [pytest.mark.kernel, pytest.mark.sweep]

HERE = Path(__file__).parent
KERNEL = HERE.parents[1] / "sim" / "kernel"
SEED, PROGRAMS = 1, 120

__all__ = ["sanitizers"]  # the fixture


def test_random_programs_under_sanitizers(tmp_path: Path, sanitizers: list[str]) -> None:
    program = tmp_path / "kernel_stress"
    source = str(HERE / "kernel_stress.cpp")
    flags = ["-std=c++20", "-O1", "-ffp-contract=off", *WARNINGS, *sanitizers, f"-I{KERNEL.parent}"]
    build = [compiler(), *flags, source, "-o", str(program)]
    built = subprocess.run(build, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    # The leak check needs ptrace, which containers deny; nothing here allocates by hand.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [str(program), str(SEED), str(PROGRAMS)]
    played = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert played.returncode == 0, played.stdout + played.stderr[:4000]
    assert played.stdout == f"{PROGRAMS} programs\n"

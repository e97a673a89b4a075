"""ClassSharing and the full solver alone: random programs under the address and UB sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.sweep]

HERE = Path(__file__).parent
KERNEL = HERE.parents[1] / "sim" / "kernel"
SOURCES = ["class_sharing.cpp", "max_min.cpp"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SEED, PROGRAMS = 1, 5000


def compiler() -> str:
    return os.environ.get("CXX", "g++")


@pytest.fixture
def sanitizers(tmp_path: Path) -> list[str]:
    if shutil.which(compiler()) is None:
        pytest.skip(f"no C++ compiler: {compiler()}")
    empty = tmp_path / "empty.cpp"
    empty.write_text("int main() { return 0; }\n")
    build = [compiler(), *SANITIZERS, str(empty), "-o", str(tmp_path / "empty")]
    if subprocess.run(build, capture_output=True).returncode != 0:
        pytest.skip("the compiler has no sanitizer runtime")
    return SANITIZERS


def test_random_programs_under_sanitizers(tmp_path: Path, sanitizers: list[str]) -> None:
    program = tmp_path / "class_sharing_stress"
    sources = [str(HERE / "class_sharing_stress.cpp"), *(str(KERNEL / name) for name in SOURCES)]
    build = [
        compiler(),
        "-std=c++20",
        "-O1",
        *WARNINGS,
        *sanitizers,
        f"-I{KERNEL.parent}",
        *sources,
    ]
    built = subprocess.run([*build, "-o", str(program)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    # The leak check needs ptrace, which containers deny; nothing here allocates by hand.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [str(program), str(SEED), str(PROGRAMS)]
    played = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert played.returncode == 0, played.stdout + played.stderr[:4000]
    assert played.stdout.startswith(f"{PROGRAMS} programs")

"""Parts of the kernel alone: random programs under the address and UB sanitizers. The event queue
with its timers and primitives; ClassSharing and the full solver."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.sweep]

HERE = Path(__file__).parent
KERNEL = HERE.parents[1] / "sim" / "kernel"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", *WARNINGS, *SANITIZERS, f"-I{KERNEL.parent}"]
SEED = 1


@pytest.mark.parametrize(
    ("stress", "sources", "programs"),
    [("kernel", (), 120), ("class_sharing", ("class_sharing.cpp", "max_min.cpp"), 5000)],
)
def test_random_programs_under_sanitizers(
    tmp_path: Path, stress: str, sources: tuple[str, ...], programs: int
) -> None:
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler: {compiler}")
    program, empty = tmp_path / stress, tmp_path / "empty.cpp"
    empty.write_text("int main() { return 0; }\n")
    build = [compiler, *SANITIZERS, str(empty), "-o", str(program)]
    if subprocess.run(build, capture_output=True).returncode != 0:
        pytest.skip("the compiler has no sanitizer runtime")
    files = [str(HERE / f"{stress}_stress.cpp"), *(str(KERNEL / name) for name in sources)]
    build = [compiler, *FLAGS, *files, "-o", str(program)]
    built = subprocess.run(build, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    # The leak check needs ptrace, which containers deny; nothing here allocates by hand.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [str(program), str(SEED), str(programs)]
    played = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert played.returncode == 0, played.stdout + played.stderr[:4000]
    assert played.stdout.startswith(f"{programs} programs")

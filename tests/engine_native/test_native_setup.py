"""Installing where libnuma's headers are not."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST_MODULES = """
import distutils.core
done = distutils.core.run_setup("setup.py", stop_after="init")
print(*(module.name for module in done.ext_modules))
"""


def modules(compiler: str) -> tuple[list[str], str]:
    """Those that setup.py would compile, and what it says."""
    code = "import setuptools" + LIST_MODULES
    environment = {**os.environ, "CXX": compiler}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_without_libnuma_the_engine_is_left_out_with_a_line(tmp_path: Path) -> None:
    compiler = tmp_path / "g++-without-numa"
    real = os.environ.get("CXX", "g++")
    compiler.write_text(
        "#!/bin/sh\n"
        'for file in "$@"; do\n'
        '    [ -f "$file" ] && grep -q "include <numa.h>" "$file" && exit 1\n'
        "done\n"
        f'exec {real} "$@"\n'
    )
    compiler.chmod(0o755)
    names, said = modules(str(compiler))
    assert names == ["numatwin.sim._kernel"]
    assert said == "no libnuma headers: the native engine is left out\n"


def test_without_a_compiler_it_is_left_out_too(tmp_path: Path) -> None:
    names, _ = modules(str(tmp_path / "nothing"))
    assert names == ["numatwin.sim._kernel"]

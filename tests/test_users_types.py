"""A project that uses an editable installation gets its types."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numatwin

record = numatwin.run_scenario("eris-fig5", seed=1)
reveal_type(record.throughput)
reveal_type(record.to_frame())
"""


@pytest.mark.slow
def test_mypy_finds_an_editable_installation(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    # Of other packages pandas alone is needed.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n"
        "[mypy-numatwin.*,pandas.*]\nfollow_imports = normal\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert 'Unexpected keyword argument "seed"' in lines[0]
    assert "Mapping[str, float]" in lines[2]
    assert "DataFrame" in lines[3]

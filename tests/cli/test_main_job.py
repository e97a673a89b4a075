"""``make run``: the main job on bundled inputs, exactly as a newcomer types it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numatwin.sim.record import load_record

ROOT = Path(__file__).parents[2]
POLICIES = ("none", "one-shot", "ma-1", "ma-8")
# Set where the tests run under make; a make below make tells its folder.
MAKE_VARIABLES = {"MAKELEVEL", "MAKEFLAGS", "MFLAGS"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.skipif(
    not Path(sys.prefix).samefile(ROOT / ".venv") if (ROOT / ".venv").exists() else True,
    reason="the tests do not run in this repository's .venv",
)
def test_make_run(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "run", f"FIG13={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={key: value for key, value in os.environ.items() if key not in MAKE_VARIABLES},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"{tmp_path}/report.html\n")
    records = [load_record(tmp_path / policy) for policy in POLICIES]
    assert tuple(record.policy for record in records) == POLICIES
    assert {record.machine["name"] for record in records} == {"amd-8n-ht"}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for policy in POLICIES:
        assert policy in page
        assert (tmp_path / policy / "report.html").exists()

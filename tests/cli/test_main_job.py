"""``make run``: the main job on bundled inputs, exactly as a newcomer types it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from numatwin.sim.run.record import load_record
from numatwin.sim.run.scenario import scenario_names

ROOT = Path(__file__).parents[2]
POLICIES = ("none", "one-shot", "ma-1", "ma-8")
# Set where the tests run under make; a make below make tells its folder.
MAKE_VARIABLES = {"MAKELEVEL", "MAKEFLAGS", "MFLAGS"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.skipif(
    not Path(sys.prefix).samefile(ROOT / ".venv") if (ROOT / ".venv").exists() else True,
    reason="the tests do not run in this repository's .venv",
)
def test_make_run(tmp_path: Path) -> None:
    balancers, here = tmp_path / "out/balancers", tmp_path / "out/this-host"
    done = subprocess.run(
        ["make", "run", f"BALANCERS={balancers}", f"HERE={here}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env={key: value for key, value in os.environ.items() if key not in MAKE_VARIABLES},
    )
    assert (done.returncode, done.stderr) == (0, "")
    *before, took, report = done.stdout.splitlines()
    assert re.fullmatch(
        rf"make run: eris-fig13 under {' '.join(POLICIES)}, then this host, in \d+ s\.", took
    )
    assert report == f"The report, for any browser: {balancers}/report.html"
    if find_spec("numatwin.engine_native._engine") is None:
        assert before[-2].endswith("nothing was run on this host.")
    else:
        assert before[-2] == f"The report: {here}/report.html"
        assert [load_record(here / plane).plane for plane in ("flow", "native")] == [
            "flow",
            "native",
        ]
    records = [load_record(balancers / policy) for policy in POLICIES]
    assert tuple(record.policy for record in records) == POLICIES
    assert {record.machine["name"] for record in records} == {"amd-8n-ht"}
    page = (balancers / "report.html").read_text(encoding="utf-8")
    for policy in POLICIES:
        assert policy in page
        assert (balancers / policy / "report.html").exists()


def test_its_folder_is_its_own() -> None:
    """What a user runs by hand replaces none of it, and stands beside it in ``report out/*``."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    folder = next(line for line in lines if line.startswith("BALANCERS :=")).split()[-1]
    assert folder not in {f"out/{name}" for name in scenario_names()}

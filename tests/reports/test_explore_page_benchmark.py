"""A tiny run of the benchmark of the page of ``numatwin explore``."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser_page import browser

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "explore_page.py"


def check_driver() -> None:
    browser()
    if shutil.which("chromedriver") is None and not os.environ.get("NUMATWIN_REQUIRE_BROWSER"):
        pytest.skip("no chromedriver on PATH")


@pytest.mark.browser
@pytest.mark.slow
def test_it_draws_the_page(tmp_path: Path) -> None:
    check_driver()
    file = tmp_path / "explore.png"
    words = ["eris-fig12-scan", "--moves", "1", "--picture", str(file)]
    assert subprocess.check_output([sys.executable, SCRIPT, *words]) == b""
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.browser
@pytest.mark.slow
def test_it_prints_wall_and_processor_time() -> None:
    check_driver()
    printed = subprocess.check_output([sys.executable, SCRIPT, "eris-fig12-scan", "--moves", "2"])
    lines = [json.loads(line) for line in printed.splitlines()]
    assert {line["unit"] for line in lines} == {"ms"}
    figures = {line["name"].partition(", ")[2]: line["value"] for line in lines}
    assert figures["key to picture, worst"] >= figures["key to picture, median"] > 0
    assert figures["processor time of the server, median"] > 0
    assert figures["processor time of the page, mean"] > 0

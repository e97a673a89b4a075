"""The report of a calibration in a browser: all its pictures drawn, nothing loaded."""

from pathlib import Path

import pytest
from browser_page import open_page

from numatwin.reports.predicted_measured import write_validation
from numatwin.topologies import load_machine
from numatwin.validate.calibrate import calibrate
from numatwin.validate.calibrate.report import validation_of

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.browser
def test_the_page_is_drawn(tmp_path: Path) -> None:
    found = calibrate(load_machine(EXAMPLES / "server-2s.yaml"), [EXAMPLES / "mlc-2s.txt"])
    opened = open_page(write_validation(validation_of(found), tmp_path / "fit.html"))
    # Times and bandwidths: predicted against measured, and by kind.
    assert (opened.root["data-ready"], opened.root["data-drawn"]) == ("yes", "4")
    assert opened.root["data-failed"] == "0"
    assert opened.console == []
    for text in ("Fitted parameters", "loaded latency: cap", "Held out", "Not determined"):
        assert text in opened.text

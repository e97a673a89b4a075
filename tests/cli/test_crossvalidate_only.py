"""``numatwin crossvalidate --only``: the calibration set of measured parts, without runs."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Refused
from measured_hosts import figure, measured

from numatwin.topologies.measurements import Measurement
from numatwin.validate.measure import Result

pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")
from numatwin.validate.crossvalidate import calibration_set as of_parts

CHUNK: dict[str, Any] = {"size": "1 MiB", "buffer": "256 KiB", "place": "cache"}


def scans(copies_s: float, scan_s: float, together_s: float) -> list[Measurement]:
    names = {"copies-ahead": copies_s, "cached-scan": scan_s, "copied-scan": together_s}
    return [figure(name, value, "time", **CHUNK) for name, value in names.items()]


def host(monkeypatch: pytest.MonkeyPatch, *passes: list[Measurement]) -> list[dict[str, object]]:
    """This host, measured in passes that find these figures; what each pass was asked for."""
    found, asked = iter(passes), list[dict[str, object]]()

    def one(**given: object) -> Result:
        asked.append(given)
        return measured(next(found))

    monkeypatch.setattr(of_parts, "measure_pass", one)
    return asked


def test_a_row_of_the_median_of_five_passes(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four chunks: 1 ms of a copy, three times as long as the longer of both, 2 ms of a scan."""
    passes = [scans(4e-3, 8e-3, together_s) for together_s in (9e-3, 10e-3, 10e-3, 11e-3, 30e-3)]
    asked = host(monkeypatch, *passes)
    out = numatwin("crossvalidate", "--only", "buffering", "--out", "kept").said()
    assert "Calibration set\n" in out
    assert "\N{MINUS SIGN}10%" in out
    assert re.search(r"calibration +time +all +1 +10\.0%", out)
    assert [each["only"] for each in asked] == [["buffering"]] * 5
    kept = json.loads(Path("kept/rows.json").read_text())
    (row,) = kept["rows"]
    assert kept["only"] == ["buffering"]
    assert (row["measured"], row["predicted"]) == pytest.approx((10e6, 9e6))
    assert row["set"] == "calibration"
    assert Path("kept/machine.yaml").exists()


def test_one_quick_pass_as_json(numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = host(monkeypatch, scans(4e-3, 8e-3, 9e-3))
    found = numatwin("crossvalidate", "--only", "buffering", "--quick", "--json").json()
    assert [row["scenario"].split(":")[0] for row in found["rows"]] == ["copied-scan"]
    assert [each["quick"] for each in asked] == [True]


def test_interrupted_in_the_second_pass(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the first are kept where a folder is given."""
    whole = measured(scans(4e-3, 8e-3, 9e-3))
    for words, told in (((), "interrupted"), (("--out", "kept"), "what was finished is kept")):
        found = iter([whole, dataclasses.replace(whole, interrupted=True)])
        monkeypatch.setattr(of_parts, "measure_pass", lambda found=found, **_: next(found))
        done = numatwin("crossvalidate", "--only", "buffering", *words)
        assert (done.status, told in done.err) == (130, True)
    assert len(json.loads(Path("kept/rows.json").read_text())["rows"]) == 1


def test_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "unknown part: found 'nothing'" in refused("crossvalidate", "--only", "nothing")
    for other in (["--machine", "xeon-2c"], ["--list"], ["--traffic"]):
        told = refused("crossvalidate", "--only", "buffering", *other)
        assert f"--only measures parts of this host and runs nothing: found {other[0]}" in told
    host(monkeypatch, [figure("mix", 1e9, "bandwidth")])
    told = refused("crossvalidate", "--only", "loaded", "--quick")
    assert "the cost model predicts no figure of loaded from others" in told

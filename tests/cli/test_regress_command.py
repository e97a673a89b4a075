"""``numatwin regress``: exit statuses, tables, JSON, what is written and what is not."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import CommandLine, Refused

from numatwin.validate import regress
from numatwin.validate.suite import CATALOGUE

FLOW = """\
  flow:
    scenario: eris-fig8-amd
    metric: throughput.lookup
"""
RSI = """\
  rsi:
    scenario: nam-fig6-rsi
    settings: {system.clients: 4, horizon: 2 ms, statistics.warm_up: 0.5 ms}
    metric: throughput.checkout
"""
BOUND = FLOW.replace("flow:", "bound:") + "    at_least: 100 M/s\n"
WORSE = BOUND.replace("100 M/s", "50 G/s")
BUFFERS = ("    metric: t", "    settings: {system.buffer_commands: 2}\n    metric: t")


def write(*checks: str, change: tuple[str, str] = ("", "")) -> None:
    text = "".join(check.replace(*change) for check in checks)
    Path("mine.yaml").write_text(f"name: mine\nreplications: 6\nchecks:\n{text}")


BASELINE = Path("mine.baseline.json")


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GITHUB_ACTIONS", "TF_BUILD"):
        monkeypatch.delenv(variable, raising=False)


def test_the_whole_way(numatwin: CommandLine) -> None:
    write(FLOW, RSI, BOUND)
    first = numatwin("regress", "mine.yaml", "--update")
    assert (first.status, first.err) == (0, "")
    assert first.out.count("no baseline before") == 2
    assert "2 of 2 checks: 2 new\n" in first.out
    assert "bound" not in first.out  # it needs none
    assert f"Baseline: {BASELINE}\n" in first.out
    printed = numatwin("regress", "mine.yaml").said()
    assert "3 of 3 checks: 1 better, 2 no difference" in printed
    assert printed.count("no difference within 1%") == 2
    again = numatwin("regress", "mine.yaml", "--update")
    assert again.out.count("no difference within 1%") == 2
    assert "+0.00%" in again.out


def test_worse_closes_the_gate(numatwin: CommandLine) -> None:
    write(FLOW)
    numatwin("regress", "mine.yaml", "--update")
    write(FLOW, change=BUFFERS)
    before = BASELINE.read_bytes()
    done = numatwin("regress", "mine.yaml")
    assert (done.status, done.err) == (1, "")
    assert "1 of 1 checks: 1 worse" in done.out
    assert BASELINE.read_bytes() == before
    # A new baseline says what it changes, and lets it pass.
    update = numatwin("regress", "mine.yaml", "--update")
    assert update.status == 0
    assert " worse\n" in update.out
    assert numatwin("regress", "mine.yaml").status == 0


def test_undecided_closes_it_where_that_is_asked(numatwin: CommandLine) -> None:
    # Of a bound that is the figure itself, no number of replications can tell.
    write(RSI)
    numatwin("regress", "mine.yaml", "--update")
    values = json.loads(BASELINE.read_text())["checks"]["rsi"]["values"]
    write(RSI + f"    at_least: {sum(values) / len(values)} /s\n")
    done = numatwin("regress", "mine.yaml")
    assert done.status == 0
    assert "1 of 1 checks: 1 undecided\nUndecided: more 'replications'" in done.out
    assert numatwin("regress", "mine.yaml", "--strict").status == 1
    assert numatwin("regress", "mine.yaml", "--strict", "--json").status == 1


def test_json(numatwin: CommandLine) -> None:
    write(FLOW, RSI)
    numatwin("regress", "mine.yaml", "--update")
    found = numatwin("regress", "mine.yaml", "--json").json()
    assert found.keys() == {"suite", "complete", "verdicts", "rows"}
    assert (found["suite"], found["complete"]) == ("mine", True)
    assert found["verdicts"] == {"better": 0, "worse": 0, "no difference": 2, "undecided": 0}
    flow, rsi = found["rows"]
    assert (
        flow.keys()
        == rsi.keys()
        == {
            *("name", "scenario", "plane", "policy", "metric", "unit", "against", "factor"),
            "reference",
            *("value", "better_by", "interval", "tolerance", "replications", "paired", "verdict"),
            "probability",
        }
    )
    assert (flow["name"], flow["plane"], flow["replications"], flow["paired"]) == (
        *("flow", "flow", 0, False),
    )
    assert (rsi["scenario"], rsi["against"], rsi["paired"]) == ("nam-fig6-rsi", "baseline", True)
    assert rsi["value"] == pytest.approx(rsi["reference"])
    updated = numatwin("regress", "mine.yaml", "--update", "--json")
    assert (len(updated.json()["rows"]), updated.err) == (2, "")


def test_other_places_for_the_baseline(numatwin: CommandLine) -> None:
    write(FLOW)
    numatwin("regress", "mine.yaml", "--update", "--baseline", "other.json")
    assert not BASELINE.exists()
    assert numatwin("regress", "mine.yaml", "--baseline", "other.json").status == 0


def test_a_former_baseline_that_does_not_fit(numatwin: CommandLine) -> None:
    write(FLOW, RSI)
    numatwin("regress", "mine.yaml", "--update")
    write(FLOW + "    machine: intel-4s-qpi\n")
    done = numatwin("regress", "mine.yaml", "--update")
    assert done.status == 0
    assert done.err.startswith("numatwin: not compared with the former baseline: ")
    assert "another machine than 'intel-4s-qpi' as it is now" in done.err
    assert "Baseline: mine.baseline.json (no longer in it: rsi)" in done.out
    BASELINE.write_text("{}")
    done = numatwin("regress", "mine.yaml", "--update")
    assert (done.status, done.err.count("\n")) == (0, 1)
    assert numatwin("regress", "mine.yaml").status == 0


def test_junit_and_annotations(numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    write(WORSE, BOUND.replace("bound:", "fine:"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = numatwin("regress", "mine.yaml", "--junit", "report.xml", "--json")
    assert done.status == 1
    assert len(json.loads(done.out)["rows"]) == 2  # one object, whatever else is told
    assert done.err.startswith("::error file=mine.yaml,line=4,title=mine%3A bound::")
    assert done.err.count("\n") == 1
    (top,) = ElementTree.parse("report.xml").getroot()
    assert (top.get("tests"), top.get("failures")) == ("2", "1")


# What a check reads well, and what fails when it is run.
BROKEN = """\
class Mine:
    def decide(self, observation):
        raise ValueError("broken")
"""


def test_what_was_finished_is_kept(numatwin: CommandLine) -> None:
    Path("mine.py").write_text(BROKEN)
    broken = FLOW.replace("flow:", "broken:").replace("eris-fig8-amd", "eris-fig13")
    write(
        WORSE,
        f"{broken}    policy: mine.py:Mine\n    at_least: 1 /s\n",
        BOUND.replace("bound:", "z:"),
    )
    done = numatwin("regress", "mine.yaml", "--junit", "report.xml")
    assert done.status == 2
    assert "1 of 3 checks: 1 worse" in done.out
    assert done.err.startswith("numatwin: error: ")
    assert "broken" in done.err
    assert done.err.count("\n") == 1
    (top,) = ElementTree.parse("report.xml").getroot()
    tags = [[child.tag for child in case][:1] for case in top]
    assert tags == [["failure"], ["error"], ["skipped"]]
    found = numatwin("regress", "mine.yaml", "--json")
    assert found.status == 2
    assert json.loads(found.out)["complete"] is False


@pytest.mark.parametrize("update", [False, True])
def test_ctrl_c(update: bool, numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    write(FLOW, RSI)
    numatwin("regress", "mine.yaml", "--update")
    before = BASELINE.read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(regress, "play_numbers", interrupted)
    done = numatwin("regress", "mine.yaml", *(["--update"] if update else []))
    assert done.status == 130
    assert done.err == "numatwin: interrupted; what was finished is printed\n"
    assert "1 of 2 checks: 1 no difference" in done.out
    told = json.loads(numatwin("regress", "mine.yaml", "--json").out)
    assert [row["name"] for row in told["rows"]] == ["flow"]
    assert BASELINE.read_bytes() == before


def test_a_full_disk_keeps_the_former_baseline(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FLOW)
    numatwin("regress", "mine.yaml", "--update")
    before = BASELINE.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = numatwin("regress", "mine.yaml", "--update")
    assert done.status == 75
    assert "mine.baseline.json: cannot be written: No space left on device" in done.err
    assert BASELINE.read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["mine.baseline.json", "mine.yaml"]


def test_refuses(refused: Refused) -> None:
    (only,) = CATALOGUE.names()
    assert f"expected '{only}', or a path" in refused("regress", "nothing-like-it")
    assert "unknown suite: found 'polices', expected 'policies'" in refused("regress", "polices")
    assert "expected 'rsi-commits'" in refused("regress", "policies", "--check", "rsi-comits")
    write(FLOW)
    assert "cannot be read: No such file" in refused("regress", "mine.yaml")
    assert "no such" in refused("regress", "mine.yaml", "--update", "--baseline", "a/b").lower()
    for option in (["--check", "flow"], ["--junit", "a.xml"], ["--strict"]):
        told = refused("regress", "mine.yaml", "--update", *option)
        assert f"expected no {option[0]}" in told
    write(BOUND)
    for option in (["--update"], ["--baseline", "a.json"]):
        told = refused("regress", "mine.yaml", *option)
        assert "mine.yaml: no check uses a baseline" in told
    Path("folder").mkdir()
    for target in ("folder", "none/report.xml"):
        assert "cannot be written" in refused("regress", "mine.yaml", "--junit", target)
    write(BOUND.replace("eris-fig8-amd", "eris-fig99"))
    assert "mine.yaml:5:15: check 'bound': unknown scenario" in refused("regress", "mine.yaml")

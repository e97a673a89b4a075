"""Measured decisions: cases as files, predictions held against them, the page, faults of cases."""

from pathlib import Path

import pytest

from numatwin.inputs import InputError
from numatwin.validate.decision_cases import FOLDER, case_files
from numatwin.validate.decisions_scored import error, page_of, scored, summary, verdict

MEASURED = {
    ("cxl-triad", "one-to-one"): 48.7 / 208.5,
    ("cxl-triad", "nine-to-one"): 217.7 / 208.5,
    ("ccd-fill", "four"): 199.9 / 100.4,
    ("first-touch-4s", "interleaved"): 1.4,
    ("process-per-node", "process-a-node"): 4.1,
}


def test_every_bundled_case_has_a_scenario_or_a_reason() -> None:
    """And none has a figure of a result in its machine that is not said to be an input."""
    files = case_files()
    assert len(files) >= 11
    for file in files:
        if file.case.scenario is None:
            assert file.case.not_modelled
            continue
        for name in file.case.alternatives:
            assert file.scenario(name).name == f"{file.case.name}-{name}"
    found = {
        (file.case.name, name): file.case.ratio(name)
        for file in files
        for name in file.case.alternatives
        if (file.case.name, name) in MEASURED
    }
    for key, ratio in MEASURED.items():
        assert found[key] == pytest.approx((ratio, ratio))


def test_a_case_is_predicted_with_an_interval() -> None:
    """Of two inputs the ratio is not scored; what depends on them is."""
    rows = {row["alternative"]: row for row in scored(case_files(None, "cxl-triad"))}
    assert rows["cxl"]["verdict"] == "input"
    assert rows["one-to-one"]["verdict"] == "right"
    row = rows["nine-to-one"]
    assert row["predicted_ratio"] == pytest.approx(1 / 0.9, rel=0.03)
    assert row["interval"][0] <= row["predicted_ratio"] <= row["interval"][1]
    assert row["level_error"] == pytest.approx(row["predicted"] / 217.7 - 1)


@pytest.mark.parametrize(
    ("measured", "predicted", "said"),
    [
        ((1.4, 1.4), (1.1, 1.9), "right"),
        ((1.4, 1.4), (0.9, 1.9), "cannot tell"),
        ((1.4, 1.4), (0.8, 0.9), "wrong"),
        ((1.4, 1.4), (0.99, 1.01), "wrong"),
        ((0.99, 1.01), (1.0, 1.01), "right"),
        ((0.95, 1.03), (1.2, 1.3), "right"),  # what was measured leaves it open
        ((1.0, 1.0), (1.2, 1.3), "wrong"),
    ],
)
def test_verdicts(measured: tuple[float, float], predicted: tuple[float, float], said: str) -> None:
    assert verdict(measured, predicted, 0.02) == said


def test_errors_are_to_the_nearest_end() -> None:
    ends = [error(value, (2.0, 4.0)) for value in (1.0, 3.0, 5.0)]
    assert ends == pytest.approx([-0.5, 0.0, 0.25])


CASE = f"""
name: mine
title: Mine
source: own history
scenario: {{machine: {FOLDER / "ddr5-cxl.yaml"}, extends: cores, plane: flow}}
alternatives:
  a: {{measured: 2}}
  b: {{set: [system.threads=8], measured: [1, 2]}}
"""
OTHER = "not_modelled: locks\nalternatives: {a: {}, b: {ratio: 2}}\n"


def test_own_cases(tmp_path: Path) -> None:
    (tmp_path / "locks.yaml").write_text("name: locks\ntitle: L\nsource: s\n" + OTHER)
    (tmp_path / "machine.yaml").write_text("name: no case\n")
    rows = scored(case_files(tmp_path))
    assert [row["verdict"] for row in rows] == ["not modelled here"]
    assert summary(rows)["decisions"] == 0
    page = page_of(rows)
    assert "- `locks`: not modelled here: locks." in page
    assert summary([])["median_error"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("measured: 2}", "measured: -2}"), "expected a number above 0"),
        (("[1, 2]", "[2, 1]"), "lower end"),
        (("system.threads=8", "system.thread=8"), "unknown field 'thread'"),
        (("set: [system.threads=8]", "numactl: -C 3"), "--cpunodebind"),
        (("  a: {measured: 2}", "  a: {}"), "expected 'ratio'"),
        (("source: own", "baseline: c\nsource: own"), "no alternative 'c'"),
        (("plane: flow", "sytem: {}"), "sytem"),
        (("alternatives:", "alternative:"), "no cases"),
    ],
)
def test_faults_of_cases_are_one_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "mine.yaml").write_text(CASE.replace(*change).replace("cores", "eris-fig8-amd"))
    with pytest.raises(InputError, match=r"\S") as failure:
        scored(case_files(tmp_path))
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)

"""Which record is faster, where facts of the machine are doubtful."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command_line import CommandLine

from numatwin.cli.decisions import decision_lines, decisions
from numatwin.reports.report import report_html
from numatwin.sim.run.record import Record, load_record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario


@pytest.fixture(scope="module")
def record() -> Record:
    return run_scenario(load_scenario("eris-fig8-intel"))


def most_decisive(record: Record) -> str:
    """The fact of the machine file over whose range throughput differs most."""
    facts = []
    for row in record.assumptions:
        if row["ranged"]:
            changes = [0.0, *(row[end]["throughput"] or 0.0 for end in ("low", "high"))]
            facts.append((max(changes) - min(changes), row["name"]))
    return str(max(facts)[1])


def with_corners(record: Record, value: float, *corners: float) -> Record:
    return replace(
        record,
        throughput={"lookup": value},
        fact_range={
            "facts": 3,
            "throughput": {"lookup": [min(corners), max(corners)]},
            "corners": {f"corner {k}": {"lookup": one} for k, one in enumerate(corners)},
        },
    )


def test_with_the_same_facts_at_the_same_ends(record: Record) -> None:
    """Both vary by half, but one stays the faster."""
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 80, 45, 110)
    (row,) = decisions([first, other])
    assert row["holds"]
    assert row["range"] == pytest.approx([110 / 150, 0.9])
    (line,) = decision_lines([row], ["A", "B"])
    given = "given the ranges of uncertain facts"
    assert line == f"lookup, B to A: ×0.80 [×0.73, ×0.90], {given}: A is faster."


def test_a_decision_that_hangs_on_doubtful_facts(record: Record) -> None:
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 80, 60, 110)
    (row,) = decisions([first, other])
    assert not row["holds"]
    assert "depends on uncertain facts" in decision_lines([row], ["A", "B"])[0]


def test_what_differs_by_next_to_nothing_decides_nothing(record: Record) -> None:
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 100.1, 50.1, 150)
    (row,) = decisions([first, other])
    assert not row["holds"]
    assert decision_lines([row], ["A", "B"]) == [
        "lookup, B to A: ×1.00, uncertain facts change that by less than 0.5%: no difference."
    ]


def replicated(record: Record, *values: float) -> Record:
    """With uncertain facts that decide nothing."""
    mean = sum(values) / len(values)
    return replace(
        with_corners(record, mean, mean),
        replications=len(values),
        replicates={"throughput": {"lookup": list(values)}},
        confidence={"level": 0.95},
    )


def test_an_extreme_between_the_corners(record: Record) -> None:
    """The draws of --uncertainty reach further than the corners; one range holds both."""
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 98, 49, 147)
    first, other = (
        replace(one, uncertainty={"facts": ["a"], "shifts": {"lookup": shifts}})
        for one, shifts in ((first, [1.0, 0.9]), (other, [1.0, 0.85]))
    )
    (row,) = decisions([first, other])
    assert row["range"] == pytest.approx([98 * 0.85 / 90, 0.98])
    beat = {"record": 1, "operation": "lookup", "level": 0.9, "interval": [0.93, 0.979]}
    assert decision_lines([row], "AB", [{**beat, "ratio": 0.98, "share": 0.0}]) == [
        "lookup, B to A: ×0.980, with 90% between ×0.930 and ×0.979, at the extremes "
        "[×0.926, ×0.980], given the ranges of uncertain facts: A is faster."
    ]


@pytest.mark.parametrize(
    ("share", "interval", "verdict"),
    [
        (0.02, [0.8, 0.99], "A is faster with 90%"),
        (0.3, [0.8, 1.1], "undecided: B does more in 30% of what may be"),
    ],
)
def test_what_is_likely_where_the_extremes_disagree(
    record: Record, share: float, interval: list[float], verdict: str
) -> None:
    (row,) = decisions([with_corners(record, 100, 50, 150), with_corners(record, 90, 60, 120)])
    beat = {"record": 1, "operation": "lookup", "ratio": 0.9, "level": 0.9}
    (line,) = decision_lines(
        [row], "AB", [{**beat, "interval": interval, "share": share, "causes": ["replications"]}]
    )
    assert line.endswith(f": {verdict}.")
    (line,) = decision_lines(
        [], "AB", [{**beat, "interval": interval, "share": share, "causes": ["replications"]}]
    )
    assert line.startswith("lookup, B to A: ×0.90, with 90% between ×0.80 and ")
    assert line.endswith(f", given replications: {verdict}.")


def test_a_range_that_ends_next_to_nothing(record: Record) -> None:
    """Its end is not shown as ×1.00."""
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 96, 46, 149.93)
    (row,) = decisions([first, other])
    assert not row["holds"]
    (line,) = decision_lines([row], "AB")
    assert "[×0.9200, ×0.9995]" in line
    assert line.endswith("A is faster, or they hardly differ (by less than 0.5%).")


def test_replications_count_too(record: Record) -> None:
    first, other = replicated(record, 100, 101, 99), replicated(record, 350, 340, 354)
    (row,) = decisions([first, other])
    low, high = row["interval"]
    assert low < 3.40 < row["ratio"] < 3.54 < high
    assert row["range"] == [row["ratio"]] * 2
    (line,) = decision_lines([row], ["A", "B"])
    assert line == (
        f"lookup, B to A: ×3.48 [×{low:.2f}, ×{high:.2f}], given replications (95%); "
        "uncertain facts change that by less than 0.5%: B is faster."
    )
    (row,) = decisions([first, replicated(record, 90, 130, 95)])
    assert not row["holds"]
    assert decision_lines([row], ["A", "B"])[0].endswith("is open: run more replications.")


def test_facts_and_replications_together(record: Record) -> None:
    """Facts move the ratio from 0.7 to 0.9; what chance does comes on top at both ends."""
    first, other = replicated(record, 100, 101, 99), replicated(record, 80, 81, 79)
    ends = {"low": {"lookup": 70.0}, "high": {"lookup": 90.0}}
    other = replace(other, fact_range={**other.fact_range, "corners": ends})
    first = replace(
        first, fact_range={**first.fact_range, "corners": {key: {"lookup": 100.0} for key in ends}}
    )
    (row,) = decisions([first, other])
    low, high = row["interval"]
    assert row["range"] == pytest.approx([0.7, 0.9])
    assert (0.6 < low < 0.7, 0.9 < high < 1.0) == (True, True)
    (line,) = decision_lines([row], ["A", "B"])
    assert "given replications (95%) and the ranges of uncertain facts: A is faster" in line


@pytest.mark.parametrize("prediction", [0, 1])
def test_a_prediction_and_a_measurement_are_no_rivals(record: Record, prediction: int) -> None:
    """Either way round: by what part the prediction is of what was measured."""
    predicted = with_corners(record, 100, 90, 120)
    measured = replace(
        replicated(record, 398, 400, 402), plane="native", fact_range={}, scenario=record.scenario
    )
    pair = [measured, measured]
    pair[prediction] = predicted
    (row,) = decisions(pair)
    assert row["prediction"] == prediction
    (line,) = decision_lines([row], "AB")
    start, _, rest = line.partition(" [×0.2")
    letters = "AB"[prediction], "AB"[1 - prediction]
    assert start == f"lookup: the prediction ({letters[0]}) is ×0.25"
    assert rest.partition("] ")[2] == (
        f"of what was measured ({letters[1]}), given replications (95%) and the ranges of "
        "uncertain facts."
    )
    (row,) = decisions([replace(record, fact_range={}), replace(measured, machine=record.machine)])
    assert "uncertain facts" not in decision_lines([row], "AB")[0]
    assert decisions([record, replace(measured, scenario="another")]) == []


def test_the_noise_of_the_host_is_told_of_a_prediction(
    record: Record, numatwin: CommandLine
) -> None:
    noisy = "noisy host: the quartiles of 2 of 10 figures lie more than 20% of the median apart"
    machine = {"name": "mine", "warnings": [noisy, "something else", "noisy host: others used it"]}
    predicted = replace(record, settings={**record.settings, "machine": machine})
    predicted.save(Path("a"))
    replace(predicted, plane="native").save(Path("b"))
    predicted.save(Path("c"))
    out = numatwin("compare", "a", "b").out
    assert f"Note: the prediction's facts were measured on a {noisy}; others used it\n" in out
    assert "something else" not in out
    assert noisy not in numatwin("compare", "a", "c").out
    page = report_html([predicted, replace(predicted, plane="native", throughput={"lookup": 9e9})])
    assert (
        f"The facts that it is predicted from were measured on a {noisy}; others used it." in page
    )


def test_one_replication_says_nothing_of_chance(record: Record) -> None:
    (row,) = decisions([replicated(record, 100), replicated(record, 80)])
    assert row["interval"] is None
    assert "; how far replications differ is unknown: A is faster" in decision_lines([row], "AB")[0]


def test_two_machines_are_each_off_by_themselves(record: Record) -> None:
    first, other = with_corners(record, 100, 50, 150), with_corners(record, 80, 45, 110)
    other = replace(other, machine={**other.machine, "name": "another"})
    (row,) = decisions([first, other])
    assert row["range"] == pytest.approx([45 / 150, 110 / 50])
    assert not row["holds"]
    (row,) = decisions([record, other])
    assert row["holds"]


def test_without_doubtful_facts_there_is_nothing_to_say(record: Record) -> None:
    assert decisions([record, record]) == []


def test_first_hour(numatwin: CommandLine) -> None:
    """A tree is imported, two placements are run, and compared."""
    Path("server.txt").write_text(
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 65536 MB\n"
        "node 1 cpus: 4 5 6 7\nnode 1 size: 65536 MB\n"
        "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n"
    )
    done = numatwin("machine", "import", "server.txt", "--out", "mine.yaml")
    assert "Still unknown: which processor it is (set --processor)" in done.out
    words = ("--assumptions", "--exact")
    for scenario, out in (("eris-fig8-intel", "a"), ("eris-fig8-intel-shared", "b")):
        done = numatwin("run", scenario, "--machine", "mine.yaml", "--out", out, *words)
        assert "uncertain " in done.out.split("policy")[0]
        assert "facts of the machine may be off; it depends most on " in " ".join(done.out.split())
        assert "values used: --assumptions lists them by their effect" in done.out
        most = " ".join(done.out.split()).partition("depends most on ")[2].split()[0]
        assert most == most_decisive(load_record(out))
        assert f"depends most on {most} (over its range: " in " ".join(done.out.split())
        assert (
            "uncertain facts the ends of the range, else mostly a tenth less and more" in done.out
        )
    shown = numatwin("compare", "a", "b").out
    assert "lookup, B to A: ×" in shown
    (row,) = numatwin("compare", "a", "b", "--json").json()["decisions"]
    assert row["range"][0] <= row["ratio"] <= row["range"][1]

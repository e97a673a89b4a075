"""Which record is faster, where facts of the machine are doubtful."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from numatwin.reports.decisions import decision_lines, decisions
from numatwin.reports.report import report_html
from numatwin.sim.run.doubts import drawn as draws_of
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.uncertainty import DRAWS


@pytest.fixture(scope="module")
def record() -> Record:
    return run_scenario(load_scenario("eris-fig8-intel"))


def drawn(record: Record, value: float, *ends: float, setting: str = "a") -> Record:
    """Draws go evenly from one of the ends to the other as a doubt does."""
    parts = draws_of("a", DRAWS)
    shift = (ends[0] + (ends[1] - ends[0]) * parts) / value if ends else np.ones(DRAWS)
    return replace(
        record,
        throughput={"lookup": value},
        uncertainty={
            "level": 0.9,
            "doubts": [{"name": "a", "setting": setting, "stream": "a"}] if ends else [],
            "shifts": {"throughput": {"lookup": shift.tolist()}},
        },
    )


def line_of(*records: Record) -> str:
    (line,) = decision_lines(decisions(records), "AB")
    return line


def test_a_sure_decision_is_said_first(record: Record) -> None:
    """Both vary by half with the same doubt, but one stays the faster."""
    line = line_of(drawn(record, 100, 50, 150), drawn(record, 80, 45, 110))
    assert line.startswith(
        "lookup: A is almost certainly faster (more than 99%). "
        "B to A: ×0.80, with 90% between ×0.74 and ×0."
    )
    assert line.endswith("Expected loss: 0% by choosing A, 21% by B.")


@pytest.mark.parametrize(
    ("setting", "to_do"),
    {
        "machine.distance_classes.1.latency": "Measure machine.distance_classes.1.latency first "
        "('numatwin machine measure', or --set machine.distance_classes.1.latency=)",
        "system.page_size": "Find out system.page_size first (--set system.page_size=)",
    }.items(),
)
def test_an_open_decision_says_what_would_settle_it(
    record: Record, setting: str, to_do: str
) -> None:
    line = line_of(drawn(record, 100), drawn(record, 95, 80, 115, setting=setting))
    assert line.startswith("lookup: undecided, either may be faster (A with a probability of 5")
    assert line.endswith(f". {to_do}: it would settle it.")


def test_what_differs_by_next_to_nothing_decides_nothing(record: Record) -> None:
    line = line_of(drawn(record, 100), drawn(record, 100.1, 99.8, 100.2))
    assert line.startswith("lookup: no difference. B to A: ×1.001, with 90% between ×0.998")
    assert "Choosing" not in line


def replicated(record: Record, *values: float) -> Record:
    """Whose facts decide nothing."""
    return replace(
        drawn(record, sum(values) / len(values)),
        replications=len(values),
        replicates={"throughput": {"lookup": list(values)}},
        confidence={"level": 0.95},
    )


def test_replications_count_too(record: Record) -> None:
    line = line_of(replicated(record, 100, 101, 99), replicated(record, 350, 340, 354))
    assert line.startswith(
        "lookup: B is almost certainly faster (more than 99%). B to A: ×3.48, with 90%"
    )
    assert ", given replications. Expected loss: 0% by choosing B, 71% by A." in line
    line = line_of(replicated(record, 100, 101, 99), replicated(record, 90, 130, 95))
    assert "undecided" in line
    assert line.endswith("Run more replications first (--replications): it would settle it.")


@pytest.mark.parametrize("prediction", [0, 1])
def test_a_prediction_and_a_measurement_are_no_rivals(record: Record, prediction: int) -> None:
    """Either way round: by what part the prediction is of what was measured."""
    predicted = drawn(record, 100, 90, 120)
    measured = replace(replicated(record, 398, 400, 402), plane="native", uncertainty={})
    pair = [measured, measured]
    pair[prediction] = predicted
    (row,) = decisions(pair)
    assert row["prediction"] == prediction
    start, _, rest = line_of(*pair).partition(" [×0.")
    letters = "AB"[prediction], "AB"[1 - prediction]
    assert start == f"lookup: the prediction ({letters[0]}) is ×0.25"
    assert rest.partition("] ")[2] == (
        f"of what was measured ({letters[1]}), given facts and assumptions, replications and "
        "the model's error."
    )
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
    for scenario, out in (("eris-fig8-intel", "a"), ("eris-fig8-intel-shared", "b")):
        done = numatwin("run", scenario, "--machine", "mine.yaml", "--out", out, "--assumptions")
        assert "facts and assumptions may be off, most of all " in " ".join(done.out.split())
        assert (
            "uncertain facts the ends of the range, else mostly a tenth less and more" in done.out
        )
    shown = numatwin("compare", "a", "b").out
    assert " faster (" in shown
    (row,) = numatwin("compare", "a", "b", "--json").json()["decisions"]
    assert row["interval"][0] <= row["ratio"] <= row["interval"][1]

"""The page of a report: whole, self-contained, with every figure where it belongs."""

import dataclasses
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import plotly.graph_objects as go
import pytest
from page_text import visible
from refusals import told_by
from synthetic_records import POLICIES, phased_record, steady_record

from numatwin.reports import report_html, write_report
from numatwin.reports.report import compile_templates
from numatwin.sim.planes.outcome import Gain, Why
from numatwin.sim.run.record import Record, load_record

VOID = {"meta", "link", "br", "img", "hr", "input"}


class _Nesting(HTMLParser):
    """Every element is closed by its own end tag; ids are unique."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [(tag, value or "") for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()


def figures(page: str) -> Iterator[Any]:
    """The pictures of a page, as the browser would read them."""
    for text in re.findall(r'<script type="application/json" [^>]*>(.*?)</script>', page):
        yield json.loads(text)


@pytest.fixture(scope="module")
def one_run() -> str:
    return report_html([phased_record()])


@pytest.fixture(scope="module")
def four_runs() -> str:
    return report_html([phased_record(policy) for policy in POLICIES])


@pytest.mark.parametrize("which", ["one_run", "four_runs"])
def test_well_formed_and_self_contained(which: str, request: pytest.FixtureRequest) -> None:
    reader = _Nesting()
    reader.feed(request.getfixturevalue(which))
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert all(value.startswith(("data:", "#")) for _, value in reader.links)


def test_pictures_are_such_as_plotly_knows(four_runs: str) -> None:
    made = list(figures(four_runs))
    assert len(made) == 3 + 4 * 4
    for picture in made:
        go.Figure(picture)  # raises for a property that does not exist


# Drops as made up (synthetic_records), in samples of 1 s of three pieces each: after a change the
# drop of 40% of ma-8 is gone by 0, 1/18 and 2/18 in the first sample, 37.8% on average. One-shot's
# 75% by 0, 1/9 and 2/9: 66.7%; by 6/9 and more in the third sample, 16.7%: so it is back after 3 s.


def test_the_answer_in_words(one_run: str) -> None:
    text = visible(one_run)
    assert "(8 nodes, 64 hardware threads), under the policy ma-8," in text
    assert "2.18 G lookups/s on average over 110 s." in text
    assert (
        "Lookups are limited by memory of node 3 ; 10% more memory bandwidth would bring +6.2% , "
        "the next best, outstanding misses, +3.1%." in text
    )
    assert "The workload changes 5 times: lookups fall by up to 38% below" in text
    assert "Balancing copied 18.0 GB in 15 transfers." in text


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({"balancing": "none"}, "hardware threads), without a balancing policy, the engine does"),
        ({"operator": "none"}, "hardware threads), without an operator policy, the engine does"),
        ({"placer": "none", "stealing": "none"}, "hardware threads), without policies, the engine"),
        (
            {"placer": "none", "stealing": "always"},
            "threads), under the policy stealing=always, the",
        ),
        (
            {"placer": "adaptive", "stealing": "always"},
            "threads), under the policies placer=adaptive and stealing=always, the",
        ),
        ({}, "hardware threads), the engine does"),
    ],
)
def test_policies_in_words(policies: dict[str, str], expected: str) -> None:
    record = dataclasses.replace(steady_record(), policies=policies)
    assert expected in visible(report_html([record]))


def test_what_a_machine_s_title_says_is_not_said_again() -> None:
    record = steady_record()
    titled = dataclasses.replace(record, machine={**record.machine, "title": "Two Xeons, 4 nodes"})
    assert "On Two Xeons, 4 nodes (80 hardware threads), " in visible(report_html([titled]))


def test_of_many_operations_the_first_are_shown_and_what_all_do_together() -> None:
    """190 in a sentence are read by nobody; nine are no more than eight and one."""
    text = visible(report_html([steady_record(operations=[f"q{k:03}" for k in range(190)])]))
    assert "1.00 G q007/s and 182 more on average" in text
    assert "q008" not in text.partition("Resources")[0]
    assert "190 G/s" in text
    nine = visible(report_html([steady_record(operations=[f"q{k:03}" for k in range(9)])]))
    assert "1.00 G q008/s on average" in nine
    assert "more on average" not in nine


def test_runs_that_do_the_same() -> None:
    one = steady_record()
    assert " · none · " not in visible(report_html([dataclasses.replace(one, policy="none")]))
    text = visible(report_html([one, dataclasses.replace(one, seed=4)]))
    assert "Both runs do about the same: 1.00 G lookups/s on average." in text


def test_the_balancers_in_words(four_runs: str) -> None:
    text = visible(four_runs)
    assert "Of 4 runs, one-shot does most: 2.18 G lookups/s on average, 2.07 times as many" in text
    least = "ma-1 falls least of those that balance their load, 25% below the best level at worst"
    assert f"{least} (one-shot: 67%)." in text
    assert "Soonest back: one-shot , after 3 s on average." in text
    assert "Never back to the best level before the next change: none." in text


def test_runs_that_have_not_recovered_by_the_end() -> None:
    """Throughput rises by 1% each tenth of the time between two changes."""
    runs = []
    for policy in ("one-shot", "ma-8"):
        record = phased_record(policy)
        rising = 1e9 + 1e7 * record.series["time_s"]
        series = {**record.series, "throughput/lookup": rising}
        runs.append(dataclasses.replace(record, series=series))
    text = visible(report_html(runs))
    said = (
        "Not recovered after 5 of the 5 changes, as throughput still changes when the next one "
        "comes or the run ends."
    )
    assert text.count(said) == 3  # of both, and of each
    assert "Soonest back" not in text
    assert text.count("not by the end") == 2
    assert "settle" not in text.partition("Level: ")[0]
    moved = [event for event in runs[0].control_events if event.time_s <= 10.0]
    once = dataclasses.replace(runs[0], control_events=tuple(moved))
    steady = dataclasses.replace(
        once, policy="ma-8", series={**once.series, "throughput/lookup": 9e9 + 0 * rising}
    )
    text = visible(report_html([once, steady]))
    assert "Not back at the best level by the end: one-shot." in text
    assert text.count("not by the end") == 1
    text = visible(report_html([once]))
    assert "below the rate they then end at. Not recovered by the end, as " in text


def test_what_drops_are_held_against(four_runs: str) -> None:
    assert "Level: the best that any of these runs settles at before the next change" in (
        visible(four_runs)
    )
    late = [
        dataclasses.replace(event, time_s=event.time_s + 0.5 * (event.time_s > 0))
        for event in phased_record().control_events
    ]
    other = dataclasses.replace(phased_record("ma-1"), control_events=tuple(late))
    text = visible(report_html([phased_record("none"), other]))
    assert "Level: the one that each run settles at itself before the next change." in text
    assert "falls least" not in text  # of drops below different levels


def test_a_run_that_never_changes_has_no_pictures_over_time() -> None:
    page = report_html([steady_record()])
    assert "Over time" not in visible(page)
    assert "The machine under load" in visible(page)
    assert len(list(figures(page))) == 2


def test_what_is_missing_is_left_out() -> None:
    """A plane may tell little more than that it ran."""
    record = dataclasses.replace(
        steady_record(),
        machine={"name": "unknown", "nodes": [], "links": []},
        resources=(),
        throughput={},
        operations={},
        bandwidth_Bps={},
        latency_ns={},
        why={},
        model={},
        warnings=(),
        series={},
        provenance={},
        title="",
    )
    page = report_html([record, dataclasses.replace(record, policy="ma-1")])
    assert list(figures(page)) == []
    assert "which share no operation" in visible(page)


def test_what_was_not_tried_is_not_called_useless() -> None:
    """Planes that draw, and real runs, know what is busy, not what more of it would bring."""
    record = steady_record()
    none = dataclasses.replace(
        record, why={name: Why("time of the workers", ()) for name in record.why}
    )
    nothing = "would bring next to nothing"
    assert nothing not in visible(report_html([none]))
    assert "was not tried" in visible(report_html([none]))
    useless = dataclasses.replace(
        record, why={name: Why("the clients", (Gain("cores", 0.0),)) for name in record.why}
    )
    assert nothing in visible(report_html([useless]))
    assert "was not tried" not in visible(report_html([useless]))


def test_numbers_that_are_none() -> None:
    nan = float("nan")
    record = phased_record(pieces=5)
    record = dataclasses.replace(
        record,
        throughput={"lookup": nan},
        energy_J=nan,
        resources=tuple(dataclasses.replace(u, utilisation=0.0, Bps=nan) for u in record.resources),
        series={
            name: column if name in ("time_s", "duration_s") else np.full(5, nan)
            for name, column in record.series.items()
        },
    )
    text = visible(report_html([record, record]))
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_a_chapter_for_each_scenario() -> None:
    other = dataclasses.replace(steady_record(), scenario="eris-fig9", title="Scan a column")
    page = report_html([phased_record("ma-1"), other, phased_record("ma-8")])
    assert re.findall(r'<article id="(.*?)">', page) == ["scenario-1", "scenario-2"]
    assert re.findall(r"<h1>(.*?)</h1>", page) == [
        "A hot range moves over the keys",
        "Scan a column",
    ]
    assert page.count('<details class="run">') == 2


def test_long_lists_are_cut_and_say_so() -> None:
    record = phased_record()
    many = tuple(
        dataclasses.replace(record.resources[0], name=f"resource {k}") for k in range(1_000)
    )
    events = tuple(dataclasses.replace(e, time_s=e.time_s) for e in record.control_events) * 20
    text = visible(
        report_html([dataclasses.replace(record, resources=many, control_events=events)])
    )
    assert "600 more resources, less busy than these, in record.json." in text
    assert f"{len(events) - 500} later events in record.json." in text


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    assert write_report([phased_record()], target) == target
    before = target.read_bytes()
    monkeypatch.setattr("os.replace", _disk_full)
    assert "cannot be written" in told_by(write_report, [steady_record()], target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def _disk_full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_no_record_is_refused(tmp_path: Path) -> None:
    assert "no record" in told_by(write_report, [], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_stored_record_makes_the_same_page(tmp_path: Path) -> None:
    record: Record = phased_record()
    assert report_html([load_record(record.save(tmp_path / "run"))]) == report_html([record])


def test_text_does_not_turn_the_page_around(tmp_path: Path) -> None:
    record = dataclasses.replace(steady_record(), title="to \u202eleft\u2066", policy="\u200fa")
    page = write_report([record], tmp_path / "report.html").read_text("utf-8")
    assert "to ?left?" in page
    for control in "\u202e\u2066\u200f":
        at = page.find(control)
        assert at < 0, page[at - 200 : at + 20]


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    record = dataclasses.replace(steady_record(), title="half \ud800 a pair")
    page = write_report([record], tmp_path / "report.html").read_text("utf-8")
    assert "half ? a pair" in page


def test_a_small_enough_file(one_run: str) -> None:
    """Plotly alone takes 4.8 MB; the pictures of 330 pieces of time add little to it."""
    own = sum(
        len(text) for text in re.findall(r'<script type="application/json".*?</script>', one_run)
    )
    assert own < 300_000


def test_templates_are_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """``make setup`` does; to compile one takes longer than to write a report."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    compile_templates()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(jinja2.Environment, "compile", refuse)
    assert "</html>" in report_html([steady_record()])

"""Reports in headless Chromium: every picture is drawn, nothing is asked of a network."""

import dataclasses
import re
from pathlib import Path

import pytest
from browser_page import classes, open_page
from synthetic_records import POLICIES, phased_record, steady_record

from numatwin.reports import write_report
from numatwin.sim.planes.outcome import ControlEvent, Gain, Why
from numatwin.sim.run.record import Record

pytestmark = pytest.mark.browser

HOSTILE = """<script>document.title='got in'</script><img src=x onerror="boom()"><b>"%{x}'</b>"""


def hostile_record(policy: str = "") -> Record:
    """A record in which every text that a file could hold tries to be more than text."""
    record = phased_record("ma-8", pieces=20)
    names = {use.name: f"{HOSTILE} {use.name}" for use in record.resources}
    return dataclasses.replace(
        record,
        scenario=HOSTILE,
        title=HOSTILE,
        policy=policy + HOSTILE,
        machine={**record.machine, "title": HOSTILE, "name": HOSTILE, "groups": [HOSTILE] * 8},
        settings={HOSTILE: HOSTILE, "system": {"kind": "tasks"}},
        throughput={HOSTILE: record.throughput["lookup"]},
        operations={HOSTILE: record.operations["lookup"]},
        resources=tuple(dataclasses.replace(use, name=names[use.name]) for use in record.resources),
        latency_ns={HOSTILE: {"mean": 100.0, "p99": None}},
        why={HOSTILE: Why(HOSTILE, (Gain(HOSTILE, 0.05),), {HOSTILE: 5.0, "</script>": 3.0})},
        control_events=tuple(
            ControlEvent(e.time_s, e.kind, HOSTILE, {HOSTILE: HOSTILE, "copied_bytes": 1e9})
            for e in record.control_events
        ),
        model={
            HOSTILE: HOSTILE,
            "layout": [[0.0, HOSTILE, [[10, 0, False]]], [5.0, HOSTILE, [[10, 1, True]]]],
        },
        warnings=(HOSTILE,),
        provenance={"version": HOSTILE, "host": HOSTILE},
        series={
            f"throughput/{HOSTILE}"
            if name == "throughput/lookup"
            else name.replace("utilisation/", f"utilisation/{HOSTILE} "): column
            for name, column in record.series.items()
        },
    )


@pytest.mark.parametrize(
    ("case", "drawn"),
    [
        # throughput, use, gains, parts of time
        ("one run", 4),
        # no change over time; both operations are held back alike: gains, parts of time
        ("64 nodes", 2),
        # side by side: throughput, depths, recovery times; then four for each run (and a timeline,
        # where its system is told)
        ("four runs", 3 + 4 * 4),
        ("hostile names", 3 + 2 * 5),
    ],
)
def test_every_picture_is_drawn(case: str, drawn: int, tmp_path: Path) -> None:
    records = {
        "one run": lambda: [phased_record()],
        "64 nodes": lambda: [steady_record("sgi-uv2000-64n", ("lookup", "scan"))],
        "four runs": lambda: [phased_record(policy) for policy in POLICIES],
        "hostile names": lambda: [hostile_record("a"), hostile_record("b")],
    }[case]()
    page = write_report(records, tmp_path / "report.html")
    opened = open_page(page, "#unfolded")
    assert opened.console == []
    assert opened.root["data-ready"] == "yes"
    assert opened.root["data-failed"] == "0"
    assert opened.root["data-plots"] == opened.root["data-drawn"] == str(drawn)
    states = [a.get("data-state") for _, a in opened.elements if "plot" in classes(a)]
    assert states == ["drawn"] * drawn
    # Each picture has a layer of axes and one of hover labels at least.
    assert opened.with_class("main-svg") >= 2 * drawn
    assert opened.with_class("traces") > 0
    loaded = [
        (tag, attributes)
        for tag, attributes in opened.elements
        if tag in ("script", "img", "iframe", "link", "image", "object", "embed")
        and any((attributes.get(key) or "data:").split(":")[0] != "data" for key in ("src", "href"))
    ]
    assert loaded == []


def test_folded_parts_wait(tmp_path: Path) -> None:
    page = write_report([phased_record("ma-1"), phased_record("ma-8")], tmp_path / "report.html")
    opened = open_page(page)
    assert opened.console == []
    assert (opened.root["data-ready"], opened.root["data-plots"]) == ("yes", "11")
    assert opened.root["data-drawn"] == "3"


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    page = write_report([hostile_record()], tmp_path / "report.html")
    opened = open_page(page, "#unfolded")
    assert not [tag for tag, _ in opened.elements if tag in ("img", "b")]
    assert sum(tag == "script" and "type" not in a for tag, a in opened.elements) == 2
    # As text it is there: in the page, and in the pictures' labels.
    assert opened.text.count("<script>document.title='got in'</script>") > 20


def test_hover_text_stays_text(tmp_path: Path) -> None:
    """Points at an event, by a script that the page's own policy would not run."""
    page = write_report([hostile_record()], tmp_path / "report.html")
    text = page.read_text("utf-8")
    policy = re.search(r"<meta http-equiv=.Content-Security-Policy.*?>", text)
    assert policy is not None
    point = """<script>
      setTimeout(() => {
        const told = (trace) => trace.mode === "markers" && trace.customdata;
        const plots = [...document.querySelectorAll(".js-plotly-plot")];
        const plot = plots.find((one) => one.data.some(told));
        const curve = plot.data.findIndex(told);
        const { xaxis, yaxis } = plot.data[curve];
        Plotly.Fx.hover(plot, [{ curveNumber: curve, pointNumber: 0 }], [xaxis + yaxis]);
      }, 3000);
    </script></body>"""
    with_policy = text.replace("</body>", point)
    page.write_text(with_policy, "utf-8")
    stopped = open_page(page)
    assert any("Content Security Policy" in line for line in stopped.console)
    page.write_text(with_policy.replace(policy[0], ""), "utf-8")
    pointed = open_page(page)
    assert pointed.console == []
    assert (pointed.with_class("hovertext"), stopped.with_class("hovertext")) == (1, 0)
    assert pointed.text.count(HOSTILE[:40]) > stopped.text.count(HOSTILE[:40])
    assert not [tag for tag, _ in pointed.elements if tag == "img"]


def test_a_picture_that_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    """The checks above can fail: a page with one broken picture is not fine."""
    page = write_report([phased_record()], tmp_path / "report.html")
    text = page.read_text("utf-8")
    broken = text.replace('data-plot="plot-2">{', 'data-plot="plot-2">{,', 1)
    assert broken != text
    page.write_text(broken, "utf-8")
    opened = open_page(page)
    assert (opened.root["data-failed"], opened.root["data-drawn"]) == ("1", "3")
    assert "This picture could not be drawn" in opened.text


@pytest.mark.parametrize(("width_px", "lines"), [(1_400, 0), (520, 2)])
def test_on_a_phone_long_names_of_bars_take_two_lines(
    tmp_path: Path, width_px: int, lines: int
) -> None:
    name = "network bandwidth and message rate"
    why = {"lookup": Why(name, (Gain(name, 0.09), Gain("clients", 0.002)), {})}
    record = dataclasses.replace(steady_record(), why=why)
    opened = open_page(write_report([record], tmp_path / "r.html"), width_px=width_px)
    assert (opened.root["data-failed"], opened.with_class("line")) == ("0", lines)

"""What the pictures show is what the records hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from known import known
from plotly_figures import plotly
from synthetic_records import CHANGES_S, HORIZON_S, POLICIES, phased_record, steady_record

from numatwin.reports.bars import depths, gains, parts_of_time, recovery_times
from numatwin.reports.charts import HEAT_ROWS_MAX, throughput_over_time, use_over_time
from numatwin.reports.machine_picture import machine_in_use
from numatwin.reports.runs import COLOURS, recoveries_of, runs_of
from numatwin.sim.planes.outcome import ControlEvent, Gain, ResourceUse, Why
from numatwin.sim.run.record import Record


def over_time(*records: Record) -> Any:
    return plotly(throughput_over_time(runs_of(records), ["lookup"]))


def in_use(**changes: Any) -> tuple[str, str]:
    """The picture of a steady record's machine, and its caption."""
    found: tuple[str, str] = known(machine_in_use(replace(steady_record(), **changes)))
    return found


def test_throughput_is_drawn_to_the_end() -> None:
    record = phased_record(pieces=11)
    figure = over_time(record)
    line = figure.data[0]
    assert list(line.x) == pytest.approx(np.arange(12) * 10.0)
    assert list(line.y) == pytest.approx([*record.series["throughput/lookup"], line.y[-2]])
    assert line.line.shape == "hv"
    assert tuple(figure.layout.xaxis.range) == (0, HORIZON_S)


def test_control_events_stand_at_their_times() -> None:
    record = phased_record()
    figure = over_time(record)
    marks = {trace.marker.symbol: list(trace.x) for trace in figure.data if trace.mode == "markers"}
    for kind, symbol in (("balance", "triangle-down"), ("transfer", "line-ns-open")):
        assert marks[symbol] == [e.time_s for e in record.control_events if e.kind == kind]


def test_every_second_phase_is_shaded() -> None:
    figure = over_time(phased_record())
    assert [(s.x0, s.x1) for s in figure.layout.shapes] == [(10, 30), (50, 70), (90, HORIZON_S)]
    names = [a.text for a in figure.layout.annotations if a.name == "phase"]
    assert names == ["uniform", "hot-range", "move 1", "move 2", "move 3", "move 4"]


def test_a_phase_that_no_event_opens_is_shown_too() -> None:
    """A record may tell only of changes, not of the phase that a run starts in."""
    record = phased_record()
    later = tuple(e for e in record.control_events if e.time_s > 0)
    figure = over_time(replace(record, control_events=later))
    assert [(s.x0, s.x1) for s in figure.layout.shapes] == [(10, 30), (50, 70), (90, HORIZON_S)]


def test_a_fault_of_an_unknown_kind_has_its_line() -> None:
    record = phased_record()
    events = (*record.control_events, ControlEvent(5.0, "flood <b>", "water"))
    figure = over_time(replace(record, control_events=events))
    assert "flood &lt;b&gt;" in figure.layout.yaxis3.ticktext


def test_faults_of_several_runs_are_marked_with_their_runs() -> None:
    """Not decisions and transfers, of which each run has its own."""
    events = ControlEvent(5.0, "fault", "node 4 stops"), ControlEvent(6.0, "balance", "a decision")
    record = replace(phased_record(), control_events=events)
    figure = over_time(record, replace(record, policy="other"))
    (marks,) = (trace for trace in figure.data if trace.mode == "markers")
    assert [text.endswith("node 4 stops") for text in marks.customdata] == [True, True]
    assert len({*marks.customdata}) == 2


def test_use_as_lines_and_as_heat_map() -> None:
    record = phased_record()
    (tiles,) = plotly(known(use_over_time(record))).data
    assert tiles.z.shape == (HEAT_ROWS_MAX, 330)
    assert len(tiles.x) == 331
    peaks = {u.name: record.series[f"utilisation/{u.name}"].max() for u in record.resources}
    shown = sorted(np.asarray(tiles.z).max(axis=1))
    assert shown == pytest.approx(sorted(peaks.values())[-HEAT_ROWS_MAX:], abs=1e-6)
    few = replace(record, resources=record.resources[:3])
    lines = plotly(known(use_over_time(few))).data
    by_peak = sorted(few.resources, key=lambda u: -peaks[u.name])
    assert [line.name for line in lines] == [u.name for u in by_peak]
    for line, use in zip(lines, by_peak, strict=True):
        assert list(line.y)[:-1] == pytest.approx(list(record.series[f"utilisation/{use.name}"]))


def test_no_use_no_picture() -> None:
    record = phased_record(pieces=3)
    idle = {n: np.zeros(3) if n.startswith("utilisation/") else c for n, c in record.series.items()}
    assert use_over_time(replace(record, series=idle)) is None
    assert use_over_time(replace(record, resources=())) is None


def test_gains() -> None:
    long = "speed of memory access (1 / latency)"
    gained = (Gain("memory", 0.06), Gain(long, 0.02), Gain("clock", 0.0))
    figure = plotly(known(gains(Why("memory", gained))))
    assert list(figure.data[0].x) == [0.06, 0.02]
    assert list(figure.data[0].text) == ["+6.0%", "+2.0%"]
    names = ["memory", "speed of memory<br>access (1 / latency)"]
    assert list(figure.layout.yaxis.ticktext) == names
    assert gains(Why("nothing", (Gain("memory", 0.0),))) is None


def test_parts_of_time() -> None:
    why = {
        "lookup": Why("cores", (), {"walk": 300.0, "stall": 100.0}),
        "scan": Why("memory", (), {"stall": 50.0}),
        "none": Why("memory", (), {}),
    }
    figure = plotly(known(parts_of_time(why)))
    assert [bar.name for bar in figure.data] == ["walk", "stall"]
    assert list(figure.data[0].x) == pytest.approx([300e-9, 0.0])
    assert list(figure.data[1].x) == pytest.approx([100e-9, 50e-9])
    assert list(figure.data[0].customdata[0]) == ["lookup", "300 ns", "75%"]
    assert parts_of_time({"none": why["none"]}) is None


def test_balancers_side_by_side() -> None:
    runs = runs_of([phased_record(policy) for policy in POLICIES])
    found = recoveries_of(runs, "lookup")
    figures = depths(runs, found), recovery_times(runs, found)
    deep, back = (plotly(known(figure)) for figure in figures)
    assert [bar.name for bar in deep.data] == list(POLICIES)
    assert [bar.marker.color for bar in deep.data] == list(COLOURS[:4])
    for run, bar in zip(runs, deep.data, strict=True):
        assert list(bar.y) == [one.depth for one in found[run.label]]
        assert list(bar.x) == [f"{time_s:g} s" for time_s in CHANGES_S]
    never = back.data[0]
    assert list(never.y) == pytest.approx([20.0] * 5)
    assert set(never.marker.pattern.shape) == {"/"}
    assert "not back before the next change" in never.customdata[0]
    open_ended = {
        name: [replace(one, recovery_s=None, settled=False) for one in ones]
        for name, ones in found.items()
    }
    still = plotly(known(recovery_times(runs, open_ended)))
    assert "not recovered by the end, 20 s later" in still.data[0].customdata[0]
    assert depths(runs, {}) is None


def test_the_machine_is_coloured_by_use() -> None:
    """By that of links, and of a node's busiest resource: a saturated one never looks idle."""

    def drawn(**uses: float) -> str:
        resources = steady_record().resources
        used = tuple(replace(use, utilisation=uses.get(use.kind, 0.0)) for use in resources)
        return in_use(resources=used)[0]

    idle = drawn()
    assert drawn(cores=1.0) == drawn(memory=1.0) == drawn(cores=0.2, memory=1.0)
    assert len({idle, drawn(link=1.0), drawn(memory=1.0)}) == 3


def test_several_links_between_two_nodes_are_told() -> None:
    record = steady_record()
    links = record.machine["links"]
    twice = {**record.machine, "links": [*links, links[0]]}
    told = "Of the pairs joined, 1 by 2 links: one line, as busy as the busiest of them."
    assert in_use(machine=twice)[1].endswith(told)
    of_nodes = "nodes by the mean use of the busiest of their cores and memory."
    assert in_use()[1] == f"Links by their mean use, {of_nodes}"


def test_parallel_links_show_the_busier_one() -> None:
    def drawn(*uses: ResourceUse) -> str:
        return in_use(resources=uses)[0]

    link = next(use for use in steady_record().resources if use.kind == "link")
    busy, idle = (replace(link, utilisation=u) for u in (0.9, 0.1))
    assert drawn(busy, idle) == drawn(idle, busy) == drawn(busy)


def test_what_is_no_machine_is_not_drawn() -> None:
    assert machine_in_use(replace(steady_record(), machine={"name": "x"})) is None


def test_nodes_are_coloured_by_their_adapters_where_transactions_ran() -> None:
    def drawn(out: float, into: float) -> tuple[str, str]:
        uses = ResourceUse("o", "nic out", out, node=0), ResourceUse("i", "nic in", into, node=0)
        return in_use(resources=uses)

    assert drawn(0.9, 0.1) == drawn(0.1, 0.9) != drawn(0.1, 0.1)
    assert drawn(0.9, 0.1)[1] == "Nodes by the mean use of their network adapter."
    picture = drawn(0.9, 0.1)[0]
    assert ">use of nodes<" in picture  # links, of which nothing is known, are not said to be idle
    assert "use unknown" not in picture
    assert ">use of links and nodes<" in in_use()[0]


def test_counted_traffic_is_relative_to_the_most() -> None:
    link = {"ends": [0, 1], "data_bytes": 900, "message_bytes": 100, "bandwidth_Bps": 1e9}
    memory = [{"node": k, "read_bytes": 100 * k, "written_bytes": 0} for k in range(3)]
    traffic = {"links": [link, {**link, "ends": [1, 0], "data_bytes": 400}], "memory": memory}
    picture, _ = in_use(traffic=traffic)
    assert ">traffic, relative to the most<" in picture
    assert "0 → 1: 100.0% of the most" in picture
    assert "of the most: 50.0%" in picture
    assert "in use" not in picture


def test_a_machine_whose_use_nobody_told_is_not_drawn() -> None:
    cores = tuple(use for use in steady_record().resources if use.kind == "cores")
    assert machine_in_use(replace(steady_record(), resources=cores)) is None


def test_a_steady_run_beside_a_moving_one() -> None:
    """It lasts longer, and is drawn for as long as the other one."""
    moving = phased_record(pieces=11)
    one = {name: column[:1] for name, column in moving.series.items()}
    one["duration_s"] = np.array([1e3 * HORIZON_S])
    steady = replace(moving, plane="event", horizon_s=1e3 * HORIZON_S, series=one)
    figure = over_time(steady, moving)
    assert list(figure.data[0].x) == [0.0, 1e3 * HORIZON_S]
    assert tuple(figure.layout.xaxis.range) == (0, HORIZON_S)

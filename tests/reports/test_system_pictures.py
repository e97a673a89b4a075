"""Pictures that a system contributes: those of tasks, from records of runs and made-up ones."""

import dataclasses
from typing import Any

import pytest
from plotly_figures import plotly
from refusals import told_by
from synthetic_records import steady_record

from numatwin import load_scenario, run_scenario
from numatwin.reports import report_html
from numatwin.reports.system_pictures import system_pictures
from numatwin.sim.run.record import Record


@pytest.fixture(scope="module")
def moved() -> Record:
    """Two moves, a merge and a partitioning within 240 s."""
    return run_scenario(load_scenario("hana-fig10"))


def pictures(record: Record) -> dict[str, Any]:
    return {caption.split(".")[0]: plotly(figure) for figure, caption in system_pictures(record)}


def test_strips_have_a_row_for_each_node(moved: Record) -> None:
    found = pictures(moved)
    for caption in (
        "Tasks that wait in the queues of each node",
        "Use of each node's cores",
        "Use of each node's memory bandwidth",
    ):
        heat = found[caption].data[0]
        assert heat.z.shape == (4, len(moved.series["time_s"]))
        assert list(found[caption].layout.yaxis.ticktext) == [f"node {k}" for k in range(4)]


def test_the_timeline_tells_where_parts_lie_and_when_they_moved(moved: Record) -> None:
    """The last span of each part is where it lies at last; some are pale."""
    timeline = pictures(moved)[
        "Where each part of the tables lies; pale: it is being moved, partitioned or merged"
    ]
    names = list(timeline.layout.yaxis.ticktext)
    spans: dict[str, list[tuple[float, float, str, float]]] = {}
    for trace in timeline.data:
        for base, length, row, pale in zip(
            trace.base, trace.x, trace.y, trace.marker.opacity, strict=True
        ):
            spans.setdefault(names[row], []).append((base, base + length, trace.name, pale))
    assert any(pale < 1.0 for of_row in spans.values() for *_, pale in of_row)
    for table, parts in moved.model["parts"].items():
        for p, (_, node) in enumerate(parts):
            name = f"{table}, part {p}" if f"{table}, part {p}" in spans else table
            last = max(spans[name])
            assert last[1] == pytest.approx(240.0)
            assert last[2] == f"node {node}"


def test_traffic_is_a_square_of_nodes(moved: Record) -> None:
    heat = pictures(moved)[
        "What processors of each node read and write of each node's memory, on average"
    ].data[0]
    assert heat.z[0][0] == moved.model["traffic_Bps"][0][0]


def test_steals_by_class_and_cores_over_time() -> None:
    """What was stolen in all is the sum over the pieces; cores are shown where they change."""
    record = run_scenario(load_scenario("short-and-long", settings=["horizon=2 s"]))
    found = pictures(record)
    stolen = found["Tasks that workers of other nodes stole, by class"]
    length_s = record.series["duration_s"]
    for trace in stolen.data:
        total = float((trace.y[:-1] * length_s).sum())
        assert total == pytest.approx(record.model["stolen"][trace.name], abs=0.01)
    assert "Allocated cores" in found


def test_a_system_without_pictures_and_a_broken_record() -> None:
    record = steady_record()
    assert list(system_pictures(record)) == []
    broken = dataclasses.replace(
        record, settings={"system": {"kind": "tasks"}}, model={"layout": [[0.0, "t"]]}
    )
    assert "do not fit together" in told_by(list, system_pictures(broken))


def test_a_page_is_small(moved: Record) -> None:
    assert len(report_html([moved]).encode()) < 1.5e6

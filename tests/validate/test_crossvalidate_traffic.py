"""Counted against predicted traffic: figures per operation, rows, and the aim."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

from numatwin.cli.crossvalidate_traffic import crossvalidate_traffic
from numatwin.cli.failures import Ended
from numatwin.inputs import InputError
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import bare_record
from numatwin.validate.crossvalidate import traffic
from numatwin.validate.crossvalidate.traffic import (
    MEDIAN_MAX,
    WORST_MAX,
    TrafficCase,
    counted_figures,
    predicted_figures,
    predicting,
    traffic_crossvalidated,
    traffic_rows,
)
from numatwin.validate.systems.eris.traffic_cases import (
    MACHINES,
    OPERATIONS,
    PLACEMENTS,
    traffic_cases,
)

LOOKUPS = 100.0


@pytest.fixture(scope="module")
def case() -> TrafficCase:
    (only,) = traffic_cases(quick=True)
    return only


@pytest.fixture(scope="module")
def predicted(case: TrafficCase) -> Record:
    return bare_record(predicting(case, "flow"))


def as_counted(predicted: Record, times: float = 1.0) -> Record:
    """As if just what is predicted had been counted, or so many times that."""
    rate = predicted.throughput["lookup"] / LOOKUPS * times

    def per_second(kind: str) -> list[float]:
        return [float(use.Bps or 0.0) / rate for use in predicted.resources if use.kind == kind]

    memory = [{"read_bytes": Bps, "written_bytes": 0.0} for Bps in per_second("memory")]
    links = [{"data_bytes": Bps, "message_bytes": 0.0} for Bps in per_second("link")]
    return replace(
        predicted,
        plane="emulator",
        operations={"lookup": LOOKUPS},
        throughput={},
        traffic={"memory": memory, "links": links},
    )


def test_cases_are_all_operations_and_placements_on_all_machines() -> None:
    names = [case.name for case in traffic_cases()]
    assert len(set(names)) == len(MACHINES) * len(OPERATIONS) * len(PLACEMENTS)


def test_figures_are_bytes_per_operation(predicted: Record) -> None:
    #   node 0: 300 + 100, node 1: 200 bytes; links: 60 + 40 and 20 bytes; 100 lookups
    counted = replace(
        predicted,
        operations={"lookup": LOOKUPS},
        traffic={
            "memory": [
                {"read_bytes": 300, "written_bytes": 100},
                {"read_bytes": 200, "written_bytes": 0},
            ],
            "links": [
                {"data_bytes": 60, "message_bytes": 40},
                {"data_bytes": 20, "message_bytes": 0},
            ],
        },
    )
    found = counted_figures(counted)
    assert found == {"memory": 6.0, "busiest controller": 4.0, "links": 1.2, "busiest link": 1.0}
    with pytest.raises(InputError, match="no operation was done"):
        counted_figures(replace(counted, operations={"lookup": 0.0}))


def test_what_is_predicted_is_of_the_guests_machine(case: TrafficCase, predicted: Record) -> None:
    # One processor a node of 80 hardware threads; its last-level cache is 1/20 of 24 MiB.
    (kind,) = predicting(case, "flow").settings["machine"]["node_types"].values()
    assert kind["cores"] * kind["threads_per_core"] == 1
    assert kind["caches"][-1]["size"] == "1258304 B"
    # Two in three lookups miss it, for a line of the node's own memory: 400,000 values of 8 B. Of a
    # command's 16 B, what another of 4 nodes wrote is written back as it is read, and comes from
    # memory to be written again, unless its last writer or reader was the same.
    missed = 64 * (1 - 1258304 / (400_000 * 8))
    handed_over = 16 * (3 / 4 + 3 / 4 * 2 / 4)
    figures = predicted_figures(predicted)
    assert figures["memory"] == pytest.approx(missed + handed_over, rel=0.1)
    assert figures["busiest controller"] == pytest.approx(figures["memory"] / 4, rel=0.01)


def test_equal_traffic_reaches_the_aim_and_other_traffic_misses_it(
    case: TrafficCase, predicted: Record
) -> None:
    rows = list(traffic_rows(case.name, as_counted(predicted), predicted))
    assert [row.metric for row in rows] == ["memory", "busiest controller", "links", "busiest link"]
    assert max(row.error for row in rows) < 1e-6
    result = traffic_crossvalidated([case], count=lambda _: as_counted(predicted))
    assert {row.plane for row in result.rows} == {"flow", "event"}
    assert result.holds
    assert result.median_error <= MEDIAN_MAX
    half = traffic_crossvalidated([case], count=lambda _: as_counted(predicted, 2.0))
    assert not half.holds
    assert half.worst_error > WORST_MAX
    assert half.as_json()["within_20_percent"] == 0.0


def test_only_cases_whose_names_begin_so(capsys: pytest.CaptureFixture[str]) -> None:
    crossvalidate_traffic("amd-8n-ht scan", quick=False, list_=True, out=None, json=True)
    assert json.loads(capsys.readouterr().out)["cases"] == [
        "amd-8n-ht scan partitioned",
        "amd-8n-ht scan interleaved",
    ]
    with pytest.raises(InputError, match="no such case: found 'amd-9n', expected the beginning"):
        crossvalidate_traffic("amd-9n", quick=False, list_=True, out=None, json=True)


def fail(_: TrafficCase) -> Record:
    raise InputError("the guest did not start within 60 s")


def test_rows_are_kept_where_every_case_failed(
    case: TrafficCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = traffic_crossvalidated([case], count=fail)
    monkeypatch.setattr(traffic, "traffic_crossvalidated", lambda *_: failed)
    with pytest.raises(typer.Exit):
        crossvalidate_traffic("", quick=True, list_=False, out=tmp_path / "kept", json=True)
    assert json.loads((tmp_path / "kept" / "rows.json").read_text())["rows"] == []


def test_rows_are_stored_as_they_come(
    case: TrafficCase, predicted: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second guest is interrupted: the first one's rows are there."""
    counts = iter([as_counted(predicted)])

    def count(_: TrafficCase) -> Record:
        for record in counts:
            return record
        raise KeyboardInterrupt

    counted = partial(traffic_crossvalidated, count=count)
    monkeypatch.setattr(
        traffic, "traffic_crossvalidated", lambda _, *more: counted([case] * 2, *more)
    )
    with pytest.raises(Ended, match="what was finished is kept"):
        crossvalidate_traffic("", quick=True, list_=False, out=tmp_path / "kept", json=True)
    assert len(json.loads((tmp_path / "kept" / "rows.json").read_text())["rows"]) == 8


def test_a_guest_that_fails_is_a_failure_and_no_row(case: TrafficCase) -> None:
    result = traffic_crossvalidated([case], count=fail)
    assert (result.rows, result.holds) == ((), False)
    assert [failure.reason for failure in result.failures] == [
        "the guest did not start within 60 s"
    ]
    assert result.as_json()["median_error"] is None

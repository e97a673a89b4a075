"""Scenarios of transactions on the native plane: Records, faults, what does not fit."""

import os
import re
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from numatwin.engine_native import _engine, transports
from numatwin.engine_native.systems.commits import setup as commit_setup
from numatwin.engine_native.systems.commits.plane import NativeCommits, native_commits, signal_name
from numatwin.inputs import InputError
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

TRANSPORTS = ["threads", *(["shm", "tcp"] if _engine.HAS_UCX else [])]


def record_of(
    name: str, monkeypatch: pytest.MonkeyPatch, transport: str, *settings: str, **options: Any
) -> Record:
    monkeypatch.setenv(transports.VARIABLE, transport)
    scenario = load_scenario(
        name,
        plane="native",
        scale=options.pop("scale", 0.005),
        replications=1,
        settings=["native_horizon=600ms", "statistics.warm_up=50ms", *settings],
    )
    return run_scenario(scenario)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", ["nam-fig6-rsi", "nam-fig6-two-sided"])
def test_a_record_as_the_event_plane_writes_it(
    name: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_s = time.monotonic()
    record = record_of(name, monkeypatch, transport, "system.clients=2")
    took_s = time.monotonic() - began_s
    facts = record.model["checkout"]
    assert record.plane == "native"
    assert record.throughput["checkout"] > 0
    assert record.operations["checkout"] == facts["commits"]
    # The time that was counted; a busy host may wake the control plane late, at either end.
    assert 0 < record.operations["checkout"] / record.throughput["checkout"] < took_s
    latency = record.latency_ns["checkout"]
    assert latency is not None
    known = [latency[name] for name in ("p50", "p99", "p999") if latency[name] is not None]
    assert known == sorted(known)  # type: ignore[type-var]
    assert latency["mean"] > 0  # type: ignore[operator]
    assert facts["native"]["transport"] == transport
    assert facts["native"]["records"] == 5_000
    causes = {"snapshot", "conflict", "locked", "lease", "timestamps", "stopped"}
    assert set(facts["aborts"]) == causes
    assert record.bandwidth_Bps["network"] > 0  # type: ignore[operator]
    for use in record.resources:
        assert 0 <= use.utilisation <= 1
    if transport != "threads":
        why = record.why["checkout"]
        each_ns = 2e9 / record.throughput["checkout"]  # of two clients
        assert sum(why.demands.values()) == pytest.approx(each_ns, rel=0.1)
        assert why.demands["running"] > 0
    predicted = predicted_of(name)
    assert set(predicted) <= set(facts) | {"bytes_by_type"}
    # A commit needs as many messages of each kind here as there, but for what aborts add.
    by_type = facts["messages_per_commit_by_type"]
    assert set(by_type) == set(predicted["messages_per_commit_by_type"])
    exact = ("write", "write-done") if name == "nam-fig6-rsi" else ("install", "installed")
    # Counting begins and ends in the middle of a transaction of each client, or two.
    at_ends = 4 / facts["commits"]
    for kind in exact:
        wanted = predicted["messages_per_commit_by_type"][kind]
        assert by_type[kind] == pytest.approx(wanted, 0.02 + at_ends)


@cache
def predicted_of(name: str) -> dict[str, Any]:
    two = ["system.clients=2"]
    scenario = load_scenario(name, plane="event", scale=0.005, replications=1, settings=two)
    return dict(run_scenario(scenario).model["checkout"])


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
def test_what_loading_takes_is_not_counted() -> None:
    scenario = load_scenario(
        "nam-fig6-rsi",
        plane="native",
        scale=0.1,
        settings=["native_horizon=300ms", "statistics.warm_up=0 s", "system.clients=1"],
    )
    with native_commits(transport="shm") as make:
        plane = make(scenario, 1)
        assert isinstance(plane, NativeCommits)
        plane.advance(0.0)
        server = f"/proc/{plane.cluster.pids()[1]}/schedstat"
        loading_s = int(Path(server).read_text().split()[0]) * 1e-9
        busy_s = {name: took for name, took in plane.totals().items() if "message threads" in name}
        assert busy_s
        assert max(busy_s.values()) < loading_s / 2


def test_signals_have_names() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(40) == "signal 40"


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
def test_a_scenario_whose_client_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same may happen to one of the others while it holds locks.
    monkeypatch.setattr(commit_setup, "LEASE_MIN_NS", 500_000_000)
    for name in ("nam-rsi-dead-client", "nam-rsi-dead-client-lease"):
        deaths = "system.faults=[{kind: client, client: 1, at: 20 ms}]"
        # Who yields again and again may be left without a processor for hundreds of milliseconds,
        # where a busy test is beside it; it dies all the same (launcher.cpp: patience_ns).
        record = record_of(
            name, monkeypatch, "shm", "system.clients=3", deaths, "native_horizon=2s"
        )
        texts = [event.text for event in record.control_events if event.kind == "fault"]
        assert texts == ["client 1 dies", "client 1 is dead (SIGKILL)"]
        dead = next(event for event in record.control_events if "SIGKILL" in event.text)
        assert 0.02 <= dead.time_s < 2
        noted = any("leases of" in note for note in record.warnings)
        assert noted == name.endswith("lease")


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
@pytest.mark.parametrize("stands_still", [True, False])
def test_a_record_tells_that_nothing_ended_after_a_death(stands_still: bool) -> None:
    """Of a run that is over before the engine would end it (systems/commits/stall_watch.hpp)."""
    scenario = load_scenario(
        "nam-fig6-two-sided", plane="native", scale=0.005, settings=["system.clients=2"]
    )
    with native_commits(transport="shm") as make:
        plane = make(scenario, 1)
        assert isinstance(plane, NativeCommits)
        plane.advance(0.2)
        pids = plane.cluster.pids()
        for pid in pids[2:] if stands_still else []:
            os.kill(pid, signal.SIGSTOP)
        os.kill(pids[1], signal.SIGKILL)
        plane.advance(plane.cluster.board.now_ns * 1e-9 + 1.0)
        warnings = plane.outcome().warnings
    at = warnings.index("client 1 is dead (SIGKILL), which the scenario does not ask for")
    told = [warning for warning in warnings[at:] if "after that death" in warning]
    assert len(told) == stands_still
    if stands_still:
        seconds = re.fullmatch(
            r"no transaction ended in the last ([\d.]+) s, after that death", told[0]
        )
        assert seconds is not None
        assert 0.5 < float(seconds[1]) < 60


def test_too_many_records_say_which_scale_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_setup, "free_bytes", lambda: 600 << 20)
    monkeypatch.setattr(commit_setup, "free_shared_bytes", lambda: 600 << 20)
    with pytest.raises(InputError, match="GiB of records") as raised:
        record_of("nam-fig6-rsi", monkeypatch, "threads", "system.clients=2", scale=1.0)
    told = re.search(r"--scale ([\d.]+) or less", str(raised.value))
    assert told is not None
    fits, settings = float(told[1]), ["system.clients=2"]
    assert 0.1 < fits < 0.6
    fitting = load_scenario("nam-fig6-rsi", plane="native", scale=fits, settings=settings)
    assert commit_setup.commit_plan(fitting, 1).settings["records"] == round(fits * 1_000_000)
    larger = load_scenario("nam-fig6-rsi", plane="native", scale=fits * 1.2, settings=settings)
    with pytest.raises(InputError, match="GiB of records"):
        commit_setup.commit_plan(larger, 1)


def test_too_many_processes_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_setup, "free_bytes", lambda: 64 << 30)
    with pytest.raises(InputError, match="10000 clients and 1001 servers") as raised:
        record_of("nam-rsi-1000n", monkeypatch, "threads")
    assert "\n" not in str(raised.value)
    told = re.findall(r"--set (\S+=\d+)", str(raised.value))
    assert len(told) == 2
    fewer = load_scenario("nam-rsi-1000n", plane="native", scale=0.001, settings=told)
    assert commit_setup.commit_plan(fewer, 1).roles == commit_setup.ROLES_MAX


def test_sockets_stay_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(transports.VARIABLE, raising=False)
    monkeypatch.setattr(_engine, "HAS_UCX", True)
    monkeypatch.setattr(transports, "INFINIBAND", Path("/nowhere"))
    found = {
        name: commit_setup.transport_of(load_scenario(name).system)  # type: ignore[arg-type]
        for name in ("nam-fig6-rsi", "nam-fig6-two-sided", "nam-fig6-ipoeth")
    }
    assert found == {"nam-fig6-rsi": "shm", "nam-fig6-two-sided": "shm", "nam-fig6-ipoeth": "tcp"}
    monkeypatch.setattr(_engine, "HAS_UCX", False)
    assert commit_setup.transport_of(load_scenario("nam-fig6-rsi").system) == "threads"  # type: ignore[arg-type]

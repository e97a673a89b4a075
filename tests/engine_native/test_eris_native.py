"""ERIS on this host: what every real run must keep to, whatever the host's speed."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

from hypothesis import given
from hypothesis import strategies as st

from numatwin.cli import main
from numatwin.engine_native._engine import HostFacts, HostNode
from numatwin.engine_native.host_mapping import map_workers, workers_that_fit
from numatwin.engine_native.outcomes import limit_of_workers
from numatwin.engine_native.systems.eris import setup as eris_setup
from numatwin.engine_native.systems.eris.steered import whole_sizes
from numatwin.inputs import InputError
from numatwin.sim.run.record import Record, load_record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.topologies import load_machine

SMALL = ["native_horizon=200 ms", "system.nodes=1", "system.threads=2", "system.buffer_commands=32"]


def run(name: str, *settings: str, policy: str | None = None, scale: float = 1e-4) -> Record:
    scenario = load_scenario(
        name,
        plane="native",
        policy=policy,
        replications=1,
        scale=scale,
        settings=[*SMALL, *settings],
    )
    return run_scenario(scenario)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("eris-fig8-amd", []),
        ("eris-fig8-amd-upsert", []),
        ("eris-fig8-amd-shared", []),
        ("eris-fig12-scan", []),
        ("eris-fig9-interleaved", []),
        ("eris-fig9-single-ram", []),
        ("eris-mixed-amd", []),
        ("eris-fig5-raw", []),
        ("eris-fig8-amd", ["system.threads=5"]),
        ("eris-fig8-amd", ["system.nodes=4"]),
        ("eris-fig8-amd", ["system.nodes=8", "system.threads=cores"]),
    ],
)
def test_laws_of_every_run(name: str, settings: list[str]) -> None:
    began_s = time.monotonic()
    record = run(name, *settings, scale=1e-4)
    took_s = time.monotonic() - began_s
    assert record.plane == "native"
    assert record.horizon_s == 0.2
    assert all(rate > 0 for rate in record.throughput.values()), record.throughput
    workers = record.model["native"]["workers"]
    # The time that was counted; a busy host wakes the control plane late, at either end.
    counted_s = next(record.operations[name] / rate for name, rate in record.throughput.items())
    assert 0 < counted_s < took_s
    for operation, rate in record.throughput.items():
        latency = record.latency_ns[operation]
        assert latency is not None
        # Of few scans, not all percentiles are known.
        known = [value for value in map(latency.get, ("p50", "p99", "p999")) if value is not None]
        assert known
        assert known == sorted(known)
        assert known[0] > 0
        assert record.operations[operation] == pytest.approx(rate * counted_s, rel=1e-3)
    assert all(0 <= use.utilisation <= 1 for use in record.resources)
    assert len(record.series["time_s"]) >= 2
    assert record.model["native"]["cpus"] == min(workers, len(os.sched_getaffinity(0)))
    if not settings:
        assert workers == 2
    # Steps and idle time of all operations make up the workers' time.
    why = next(iter(record.why.values()))
    spent_s = sum(why.demands.values()) * 1e-9 * sum(record.operations.values())
    assert spent_s == pytest.approx(workers * counted_s, rel=0.3)
    assert why.resource


@pytest.mark.parametrize(
    ("busy", "paced", "limit"),
    [
        ([0.95, 0.99], False, "time of the workers"),
        ([0.95, 0.3, 0.2], False, "time of 1 of 3 workers"),
        ([0.4, 0.5], False, "workers that wait for each other"),
        ([0.4, 0.5], True, "what the clients ask for"),
    ],
)
def test_what_limits_a_real_run(busy: list[float], paced: bool, limit: str) -> None:
    assert limit_of_workers(np.array(busy), paced) == limit


@pytest.mark.parametrize("name", ["eris-fig12-scan", "eris-fig9-interleaved"])
def test_a_scan_is_told_from_when_its_client_hands_it_over(name: str) -> None:
    """One at a time: throughput times mean latency is how many are under way (Little's law). At
    the best of five times: on a busy host a scan that began before counting may wait long."""
    for _ in range(5):
        record = run(name)
        latency = record.latency_ns["scan"]
        assert latency is not None
        assert latency["mean"] is not None
        under_way = record.throughput["scan"] * latency["mean"] * 1e-9
        if 0.2 < under_way <= 1.02:
            return
    pytest.fail(f"{under_way} under way")


def test_a_scan_that_finds_nothing_reads_all_the_same() -> None:
    """10^7 entries; ten times as fast as one that finds a thousandth would be too fast, and would
    be so each time: others may use this host."""

    def rate(part: float) -> float:
        setting = f"workload.operations.scan.selectivity={part}"
        return run("eris-fig12-scan", setting, scale=0.01).throughput["scan"]

    assert any(rate(0.0) < 10 * rate(0.001) for _ in range(5))


def test_a_moving_range_is_balanced() -> None:
    settings = [
        "native_horizon=2.2 s",
        "policies.balancing.period=50 ms",
        "system.nodes=2",
        "system.threads=2",
    ]
    balanced = run("eris-fig13-small", *settings, policy="one-shot", scale=0.02)
    kinds = {event.kind for event in balanced.control_events}
    assert {"phase", "balance", "transfer", "done"} <= kinds
    assert balanced.model["copied_bytes"] > 0
    assert run("eris-fig13-small", *settings, policy="none", scale=0.02).control_events


def test_replications_share_the_loaded_data() -> None:
    scenario = load_scenario(
        "eris-fig8-amd", plane="native", replications=3, scale=1e-4, settings=SMALL
    )
    record = run_scenario(scenario)
    assert record.replications == 3
    interval = record.interval("throughput", "lookup")
    assert interval is not None
    assert interval[0] <= record.throughput["lookup"] <= interval[1]


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = [word for setting in SMALL for word in ("--set", setting)]
    words = ["run", "eris-fig8-amd", "--on", "native", "--scale", "1/10000", "--replications", "1"]
    out = tmp_path / "out"
    assert main([*words, *options, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plane"] == "native"
    assert load_record(out).scenario == "eris-fig8-amd"
    assert (out / "report.html").exists()


def test_data_that_do_not_fit_are_refused_with_what_would() -> None:
    host = eris_setup_host(10**9)
    scenario = load_scenario("eris-fig8-amd", plane="native", settings=SMALL)
    with pytest.raises(InputError, match=r"need 26 GB, and this host can spare 0\.8 GB") as told:
        eris_setup.check_room(scenario, host)
    expected = told.value.expected or ""
    fits = float(expected.split()[1].rstrip(","))
    smaller = load_scenario("eris-fig8-amd", plane="native", scale=fits, settings=SMALL)
    eris_setup.check_room(smaller, host)
    larger = load_scenario("eris-fig8-amd", plane="native", scale=fits * 1.5, settings=SMALL)
    with pytest.raises(InputError):
        eris_setup.check_room(larger, host)


def eris_setup_host(available_bytes: int, nodes: int = 1, cpus: int = 2) -> HostFacts:
    each = [list(range(k * cpus, (k + 1) * cpus)) for k in range(nodes)]
    return HostFacts(
        nodes=[HostNode(id=k, cpus=each[k], may_allocate=True) for k in range(nodes)],
        available_bytes=available_bytes,
    )


def test_nodes_have_nodes_of_their_own_where_there_are_enough() -> None:
    machine = load_machine("intel-4s-qpi")
    found = map_workers(machine, [0, 0, 1, 1, 3], eris_setup_host(10**9, nodes=4, cpus=2))
    assert found.cpu == (0, 1, 2, 3, 4)
    assert found.host_node[0] != found.host_node[1] != found.host_node[3]
    assert not found.warnings


@pytest.mark.parametrize(("room", "kept"), [(1, [0]), (3, [0, 1, 2]), (4, [0, 0, 1, 2]), (9, None)])
def test_workers_that_fit_are_of_all_nodes(room: int, kept: list[int] | None) -> None:
    nodes = [0, 0, 0, 1, 1, 2]
    found = workers_that_fit(nodes, eris_setup_host(10**9, nodes=1, cpus=room))
    assert found == (nodes if kept is None else kept)


def test_few_nodes_are_shared_and_that_is_said() -> None:
    machine = load_machine("amd-8n-ht")
    nodes = [k for k in range(8) for _ in range(2)]
    found = map_workers(machine, nodes, eris_setup_host(10**9, nodes=2, cpus=3))
    assert set(found.cpu) == set(range(6))
    assert sorted(np.unique(found.cpu, return_counts=True)[1].tolist()) == [2, 2, 3, 3, 3, 3]
    assert "8 nodes of amd-8n-ht are mapped onto 2 nodes" in found.warnings[0]
    assert found.warnings[1] == "16 workers share 6 CPUs of this host"


def test_a_host_that_allows_nothing_is_refused() -> None:
    host = eris_setup_host(10**9)
    host.nodes = [HostNode(id=0, cpus=[0, 1])]
    with pytest.raises(InputError, match="may not use a CPU together"):
        map_workers(load_machine("amd-8n-ht"), [0], host)


@given(
    st.lists(st.just(0.0) | st.floats(1e-3, 1e12), min_size=1, max_size=50).filter(any),
    st.integers(0, 10**12),
)
def test_whole_sizes_keep_the_total(sizes: list[float], total: int) -> None:
    found = whole_sizes(np.array(sizes), total)
    assert sum(found) == total
    assert all(size >= 0 for size in found)
    scaled = np.array(sizes) * (total / sum(sizes))
    assert np.abs(np.array(found) - scaled).max() <= 1.0 + 1e-6 * total

"""Settings that change nothing are told, with what binds instead."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_scenarios import CACHE, LOOKUP, NODE, SCAN, small_file

from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.setting_effects import idle_settings

NIC = "machine.nics.0.bandwidth"


def told(name: str | Path, *settings: str, plane: str | None = None) -> dict[str, dict[str, Any]]:
    """What is told of which of these settings."""

    def load(some: Sequence[str]) -> Any:
        return load_scenario(name, plane=plane, settings=some)

    record = run_scenario(load(settings))
    return {idle["setting"]: idle for idle in idle_settings(record, settings, load)}


def test_links_that_nothing_goes_over(tmp_path: Path) -> None:
    """Partitioned scans stay on their nodes: memory binds, whatever the links are."""
    path = small_file(tmp_path, SCAN, nodes=2, caches=CACHE)
    link, memory = "machine.link_types.link.bandwidth=90 GB/s", f"{NODE}memory.bandwidth=20 GB/s"
    found = told(path, link, memory)
    assert found == {
        link: {
            "setting": link,
            "throughput": {"scan": 0.0},
            "changes": [],
            "instead": "memory bandwidth of all nodes",
        }
    }


def test_use_changes_where_throughput_does_not(tmp_path: Path) -> None:
    """Clients ask for as much as before: a faster memory is used less."""
    path = small_file(tmp_path, f"{LOOKUP}\n  clients: {{kind: open, arrival_rate: 1 M/s}}")
    setting = f"{NODE}memory.bandwidth=80 GB/s"
    (idle,) = told(path, setting).values()
    assert idle["throughput"] == {"lookup": 0.0}
    assert idle["changes"] == ["use of resources"]
    assert idle["instead"] == "what the clients ask for"


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_what_is_so_already_and_what_is_only_a_name(tmp_path: Path, plane: str) -> None:
    path = small_file(tmp_path, LOOKUP, caches=CACHE)
    settings = (f"{NODE}cores=4", "workload.title=mine", "horizon=1 ms", f"{NODE}clock=2 GHz")
    assert set(told(path, *settings, plane=plane)) == set(settings[:2])


def test_another_horizon_is_not_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting the run may be a hundred times as long."""
    monkeypatch.setattr("numatwin.sim.run.setting_effects.outcome_of_flows", None)
    assert told(small_file(tmp_path, LOOKUP), "horizon=1 ms") == {}


def test_settings_that_need_each_other_are_not_taken_apart(tmp_path: Path) -> None:
    path = small_file(tmp_path, LOOKUP, nodes=2)
    found = told(path, "system.placement=single-ram", "system.home=1")
    assert set(found) == {"system.home=1"}  # of equal nodes any may hold the data
    assert found["system.home=1"]["changes"] == ["use of resources"]


def test_a_setting_without_which_the_data_do_not_fit(tmp_path: Path) -> None:
    """100 million keys of 1,000 B are more than 64 GiB: without the one setting the other fails."""
    settings = ("workload.objects.index.keys=1000", "workload.objects.index.value_size=1000 B")
    assert told(small_file(tmp_path, LOOKUP), *settings) == {}


def test_an_adapter_whose_transport_binds() -> None:
    """25 times the bandwidth of the adapter: the transport has no more than 6.8 GB/s a port."""
    (idle,) = told("nam-fig6-rsi", f"{NIC}=170 GB/s").values()
    assert idle["setting"] == f"{NIC}=170 GB/s"
    assert 0.005 < idle["throughput"]["checkout"] < 0.02  # headers, which the transport leaves out
    assert idle["instead"] == "adapter of node 7, out (its transport RDMA: 6.8 GB/s a port)"
    rdma = "machine.nics.0.transports.RDMA"
    all_of_it = (f"{rdma}.bandwidth=170 GB/s", f"{rdma}.points.2.bandwidth=170 GB/s")
    assert told("nam-fig6-rsi", *all_of_it, f"{NIC}=170 GB/s") == {}


def test_an_adapter_that_nobody_uses() -> None:
    """The second adapter is that of Ethernet."""
    (idle,) = told("nam-fig6-rsi", "machine.nics.1.bandwidth=3 GB/s").values()
    assert (idle["throughput"], idle["changes"]) == ({"checkout": 0.0}, [])


def test_long_runs_are_not_played_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numatwin.sim.run.setting_effects.BUDGET_S", 0.0)
    (idle,) = told(small_file(tmp_path, LOOKUP), f"{NODE}clock=2 GHz").values()
    assert idle["throughput"] is None


def test_nothing_is_told_where_nothing_was_done() -> None:
    """A query of these rows takes longer than the run, with or without the setting."""
    rows = "workload.objects.sales.rows=400_000_000"
    settings = (rows, "statistics.replications=1", "system.task=3 us", "horizon=1 ms")
    assert told("host-queries", *settings, plane="event") == {}

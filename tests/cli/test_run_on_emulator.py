"""``numatwin run --on emulator``: a scenario's engine in a guest of the scenario's machine."""

import numpy as np
import pytest
from command_line import CommandLine, Refused
from emulator_needed import needs_emulator

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

from numatwin.sim.run.record import Record, load_record


def emulated(numatwin: CommandLine, name: str, part: str, *words: str) -> tuple[Record, str]:
    """The record of a run on a machine of that part, without times; what was printed."""
    where = ("--on", "emulator", "--machine-scale", part, "--out", "emulated")
    done = numatwin("run", name, *where, *words)
    assert done.status == 0, done.err
    record = load_record("emulated")
    assert (record.plane, record.throughput, record.latency_ns) == ("emulator", {}, {})
    return record, done.out


@needs_emulator
@pytest.mark.slow
def test_a_scenario_in_a_guest_has_traffic_and_no_times(numatwin: CommandLine) -> None:
    words = ("--scale", "1/16384", "--set", "native_horizon=700ms")
    record, out = emulated(numatwin, "eris-fig8-intel", "1/80", *words)
    assert len(record.machine["nodes"]) == 4
    lookups = record.operations["lookup"]
    assert lookups > 1000
    engine = record.model["engine"]
    assert engine["workers"] == 4
    assert engine["commands_executed"]["lookup"] == pytest.approx(lookups, rel=0.05)
    traffic = record.traffic
    assert (traffic["span"], traffic["regions"]) == ("regions", 1)
    # Three of four commands are another node's, and come in lines that its caches hand over.
    pairs = {name: np.array(found) for name, found in traffic["pairs"].items()}
    handed = (pairs["transfers"] - np.diag(np.diag(pairs["transfers"]))).sum()
    assert handed >= 0.75 * lookups * 16 / 64
    # What a worker writes most of the time, its stack and its arrays, is on its node.
    writes = pairs["writes_user"]
    assert np.trace(writes) > 0.5 * writes.sum()
    assert f"{lookups:,.0f}" in out


@needs_emulator
@pytest.mark.sweep
def test_commits_in_a_guest_cross_its_nodes(numatwin: CommandLine) -> None:
    """Storage servers are nodes 4 to 6: what clients of 0 to 3 create they write there."""
    words = ("--scale", "1/10000", "--set", "system.clients=4", "--set", "native_horizon=600ms")
    record, _ = emulated(numatwin, "nam-fig6-rsi", "1/20", *words)
    commits = record.operations["checkout"]
    assert commits > 20
    pairs = {name: np.array(found) for name, found in record.traffic["pairs"].items()}
    misses = pairs["read_misses_user"] + pairs["write_misses_user"]
    # Four new records of 1 KiB a commit, to room that no cache holds.
    assert misses[:4, 4:7].sum() >= 0.9 * commits * 4 * 1024 / 64
    # Nobody works on the storage servers' nodes but their servers, which RSI leaves in peace.
    assert misses[4:7].sum() < 0.25 * misses[:4].sum()


@needs_emulator
@pytest.mark.sweep
def test_a_guest_without_room_for_the_data_is_told(refused: Refused) -> None:
    said = refused("run", "eris-fig8-intel", "--on", "emulator", "--machine-scale", "1/400")
    assert "the data need" in said
    assert "--scale" in said


def test_the_machines_scale_goes_with_guests_alone(refused: Refused) -> None:
    assert "--on emulator" in refused("run", "eris-fig8-intel", "--machine-scale", "1/4")
    said = refused("run", "eris-fig8-intel", "--on", "emulator", "--machine-scale", "2")
    assert "at most 1" in said

"""The engine at the other end of a pipe: in a process of this host, then in a guest."""

import sys
from pathlib import Path

import numpy as np
import pytest
from emulator_needed import needs_emulator

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

import json
import os
import subprocess
from typing import Any

from numatwin import emulator
from numatwin.engine_native import _engine
from numatwin.engine_native.emulated import run_emulated
from numatwin.engine_native.emulated.remote import (
    DRIVER,
    GuestProcess,
    RemoteEngine,
    answered,
    counted,
)
from numatwin.engine_native.systems.commits.emulated import EmulatedCommits, emulated_commits
from numatwin.engine_native.systems.eris.setup import totals_of
from numatwin.engine_native.systems.tasks.emulated import EmulatedTasks, emulated_tasks
from numatwin.inputs import InputError
from numatwin.sim.run.real_planes import EMULATOR
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.tasks.commands import CoresObservation, ReleaseCore
from numatwin.topologies import load_machine
from numatwin.topologies.emulator import guest_machine
from numatwin.validate.systems import placed_once

KEYS = 5000
# Of the other worker: its command, task, descriptor and buffer; flags and code that all use.
LINES_OF_A_SCAN, LINE_ON_LINK_B = 40, 150


class HostProcess(GuestProcess):
    """The same process, without a guest."""

    def __init__(self) -> None:
        files = (str(_engine.__file__), str(emulator.__file__))
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(DRIVER), *files],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._child.pid

    def ask(self, *request: Any, limit_s: float = 60.0) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        return answered(self._child.stdout.readline())

    def end(self) -> int:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        with self._child.stdout:
            return self._child.wait(60)


def made(module: Any) -> Any:
    """An engine of two workers whose clients look up, loaded."""
    setup = module.EngineSetup([0, 0], [-1, -1], [-1])
    setup.add_index("index", KEYS)
    setup.add_operation("lookup", "lookup", 0)
    setup.seed = 7
    setup.set_phase([1.0], [module.KeyDraws(np.array([0, KEYS]), np.array([1.0]), True)])
    engine = module.Engine(setup)
    engine.begin_load()
    while not engine.wait_loaded(0.1):
        pass
    return engine


def test_an_engine_in_another_process_is_used_like_one_here() -> None:
    process = HostProcess()
    engine, here = made(RemoteEngine(process)), made(_engine)
    assert engine.bounds(0) == here.bounds(0)
    assert (engine.loaded, engine.to_load) == (KEYS, KEYS)
    assert engine.memory()[0].used_bytes == here.memory()[0].used_bytes
    engine.start()
    assert engine.rebalance(0, [0, KEYS // 4, KEYS])
    while engine.balancing(0):
        process.ask("sleep", 0.01)
    with pytest.raises(ValueError, match=r"^bounds"):
        engine.rebalance(0, [0, 1])
    process.ask("sleep", 0.05)
    engine.stop()
    assert engine.bounds(0) == [0, KEYS // 4, KEYS]
    assert [cycle.object for cycle in engine.cycles()] == [0]
    totals: Any = totals_of(engine)
    types: Any = totals_of(here)
    for name, found in types.items():
        assert np.shape(totals[name]) == np.shape(found), name
    assert totals["done"].sum() == totals["made"].sum() > 0
    assert totals["object_entries"].tolist() == [[KEYS // 4, KEYS - KEYS // 4]]
    assert sum(engine.latencies(0)) == totals["done"].sum()
    here.cancel()
    assert process.end() == 0


def test_when_requests_end_so_does_the_process_whatever_it_does() -> None:
    process = HostProcess()
    engine = made(RemoteEngine(process))
    engine.start()
    assert process.end() == 0


def test_while_it_counts_the_process_is_on_one_processor() -> None:
    """But the engine's workers; and the engine may use all from the start."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    process = HostProcess()

    def masks() -> list[set[int]]:
        threads = map(int, os.listdir(f"/proc/{process.pid}/task"))
        return [os.sched_getaffinity(thread) for thread in sorted(threads)]

    remote, one = RemoteEngine(process), {min(allowed)}
    assert {cpu for node in remote.host_facts().nodes for cpu in node.cpus} == allowed
    assert masks() == [allowed, one]
    counted("begin", made(remote), "totals")
    assert masks()[:2] == [one, one]
    assert process.end() == 0


def test_commits_by_threads_of_another_process_are_counted_there() -> None:
    """On this host's one node, with the messages that the event plane counts for each commit."""
    scenario = load_scenario("host-commit", settings=["system.clients=2"], scale=1e-3)
    process = HostProcess()
    with emulated_commits(process, 0.05) as make:
        plane = make(scenario)
        assert isinstance(plane, EmulatedCommits)
        assert len(plane.plan.settings["cpus"]) == plane.plan.roles
        plane.advance(0.3)
        outcome = plane.outcome()
    assert process.end() == 0
    facts = outcome.model["checkout"]
    assert facts["commits"] == outcome.operations["checkout"] > 10
    assert (outcome.throughput, outcome.latency_ns, outcome.energy_J) == ({}, {}, None)
    assert facts["native"]["transport"] == "threads"
    messages = facts["messages_per_commit_by_type"]
    tried = 1 + sum(facts["aborts"].values()) / facts["commits"]
    workload = scenario.workload.operations["checkout"]
    assert messages["read"] == pytest.approx(messages["record"], rel=0.01)
    assert messages["write"] >= workload.updates + sum(workload.inserts.values())
    assert messages["cas"] <= workload.updates * tried * 1.01


@needs_emulator
@pytest.mark.sweep
def test_a_process_that_cannot_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numatwin.engine_native.emulated.remote.DRIVER", Path("/no/such/driver.py"))
    guest = guest_machine(load_machine("opteron-4n"), nodes=1, scale=1 / 64)
    with GuestProcess(guest) as process, pytest.raises(InputError, match="no/such/driver"):
        process.ask("sleep", 0)


TASKS = (
    "workload.objects.sales={kind: table, rows: 4_000_000, columns: {day: {distinct: 4096,"
    " value_size: 4 B}}}",
    "workload.operations={scan: {kind: query, operators: {find: {kind: scan, table: sales,"
    " columns: day, selectivity: 0.5}}}}",
    "system.placement=[0]",
    "system.parts=1",
    "system.threads=1",
    "system.concurrency=4",
    "policies.stealing={policy: always, period: 100 ms}",
    "native_horizon=2 s",
    "horizon=2 s",
    "statistics.warm_up=500 ms",
)


@needs_emulator
@pytest.mark.slow
def test_idle_workers_of_a_guest_take_tasks_of_others() -> None:
    """Each scan reads 6 MB from both nodes that its table is put on, three times what a cache there
    holds; what another of the four clients' has just read is in a cache."""
    placing = f"policies.placer={{policy: {placed_once.__file__}:Partition, period: 100 ms}}"
    settings = [*TASKS, "machine=xeon-4s-ivb", placing]
    scenario = load_scenario("host-queries", plane=EMULATOR, settings=settings)
    record = run_emulated(scenario, 1 / 15, user_only=True)
    done = record.operations["scan"]
    assert done > 0
    assert record.model["tasks"]["scan"] == 4 * done
    assert 0.25 < record.model["stolen"]["scan"] / (4 * done) < 1.0
    read = [memory["read_bytes"] / done for memory in record.traffic["memory"]]
    assert 0.2 * 6e6 < sum(read) < 1.1 * 6e6
    assert all(0.3 < each * 2 / sum(read) < 1.7 for each in read[:2])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_threads_move_in_another_process() -> None:
    more = ("system.nodes=1", "system.threads=2", "system.affinity=none", "system.look=1 ms")
    scenario = load_scenario("host-queries", plane=EMULATOR, settings=[*TASKS[:-1], *more])
    process = HostProcess()
    with emulated_tasks(process, 0.1) as make:
        plane = make(scenario)
        assert isinstance(plane, EmulatedTasks)
        plane.advance(0.3)
        threads = [plane._engine.thread(worker) for worker in range(2)]
        (_, cpus), (_, others) = plane._host.plan.cpus.items()
        assert all(os.sched_getaffinity(thread) == {*cpus, *others} for thread in threads)
        seen = plane.observe("cores")
        assert isinstance(seen, CoresObservation)
        assert 0 < seen.cpu_load <= 1
        plane.apply([ReleaseCore(0, 1)])
        assert all(os.sched_getaffinity(thread) == {*cpus} for thread in threads)
        plane.advance(0.5)  # both work where they may
        for thread in threads:
            os.sched_setaffinity(thread, others)
        plane.advance(0.8)
        outcome = plane.outcome()
        assert outcome.operations["scan"] > 0
        assert outcome.model["migrations"] >= 2
    assert process.end() == 0


@needs_emulator
@pytest.mark.sweep
def test_partitioned_scans_leave_the_links_to_their_commands() -> None:
    """A scan drops all else from the caches: what a worker then looks for is on its own node."""
    settings = (
        "system.nodes=2",
        "workload.objects.column.entries=1000000",
        "native_horizon=6 s",
        "horizon=6 s",
        "statistics.warm_up=3 s",
    )
    scenario = load_scenario(
        "eris-fig8-amd", workload="eris-scan-8gb", plane=EMULATOR, settings=settings
    )
    record = run_emulated(scenario, 1 / 6, nodes=2, user_only=True)
    scans = sum(record.operations.values())
    links = sum(link["data_bytes"] + link["message_bytes"] for link in record.traffic["links"])
    assert scans > 0
    assert links / scans < LINES_OF_A_SCAN * LINE_ON_LINK_B

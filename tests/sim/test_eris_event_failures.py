"""Runs of ERIS on the event plane that fail or are stopped, and machines of unlike nodes."""

import subprocess
import sys
from pathlib import Path

import pytest
from eris_machines import machine, routing
from small_scenarios import LOOKUP, small_file

from numatwin.sim._kernel import ErisDemands, ModelError
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris.event_plane import ErisEvents

HERE = Path(__file__).parent


def test_a_model_error_names_seed_time_and_event() -> None:
    """Two commands that take longer together than the clock can tell."""
    model = routing(machine(), [[0.0, 1.0]], seed=11)
    model.run(5_000)
    none = ("hit_ps", "lines", "line_max_ps", "memory_lines", "written", "scan_lines")
    demands = ErisDemands(core_ps=[3e18] * 2, slots=[10.0] * 2, **dict.fromkeys(none, [0.0] * 2))
    model.update(demands)
    expected = (
        r"^an event is scheduled beyond 2\^62 ps \(53 days\) in event issued of subject 1 "
        r"\(seed 11, replication 1, at 6300 ps, event number \d+\)$"
    )
    with pytest.raises(ModelError, match=expected):
        model.run(100_000)
    with pytest.raises(ModelError, match="has failed before"):
        model.run(200_000)


MIXED = """\
name: mixed
machine:
  name: mixed
  node_types:
    whole:
      cores: 2
      clock: 4 GHz
      ipc: 2
      outstanding_misses: 10
      caches: []
      memory: {size: 64 GiB, bandwidth: 40 GB/s, latency: 100 ns}
    bare:
      cores: 2
      clock: 4 GHz
      ipc: 2
      outstanding_misses: 10
      caches: []
      memory: {size: 0 B}
  nodes: [{id: 0, type: whole}, {id: 1, type: bare}]
  link_types:
    link: {bandwidth: 10 GB/s, latency: 50 ns, data_header: 8 B, request: 8 B}
  generate: [{shape: all_to_all, link: link}]
  coherence: {protocol: directory}
workload:
  name: mixed
  objects: {index: {kind: index, keys: 100_000_000}}
  operations: {lookup: {kind: lookup, object: index}}
system: {threads: cores}
plane: event
horizon: 2 ms
"""


def test_a_node_without_memory_works_on_anothers(tmp_path: Path) -> None:
    """Its workers have partitions, in the memory of node 0, over the link; all is counted there."""
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED, encoding="utf-8")
    plane = ErisEvents(load_scenario(path), 1)
    plane.advance(2e-3)
    plane.player.check()
    counted = plane.player.counted()
    assert plane.eris.workers.count == 4
    assert (counted.executed.sum(axis=0) > 0).all()
    assert counted.memory_ps[0] > 0
    assert counted.memory_ps[1] == 0
    # Every line that node 1's workers look at crosses the link.
    keyed = counted.executed.sum(axis=0)
    assert counted.link_bytes.max() > keyed[2:].sum() * 64


INTERRUPTED = """
import os, signal, sys, threading, time
from numatwin.sim.systems.eris.event_plane import ErisEvents
from numatwin.sim.run.scenario import load_scenario
plane = ErisEvents(load_scenario(sys.argv[1], plane="event", settings=["seed=3"]), 1)
took = []
while len(took) < 5 or plane.player.model.events <= 10_000:
    def interrupt():
        global sent
        sent = time.process_time()
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(0.06, interrupt)
    try:
        timer.start()
        plane.player.model.run(10**15)
        raise SystemExit("not interrupted")
    except KeyboardInterrupt:
        took.append(time.process_time() - sent)
    timer.join()
until_ps = plane.player.model.now_ps + 1000
assert plane.player.model.run(until_ps)
plane.player.check()
alone = ErisEvents(load_scenario(sys.argv[1], plane="event", settings=["seed=3"]), 1)
assert alone.player.model.run(until_ps)
assert plane.player.model.events == alone.player.model.events
assert plane.player.counted().executed.tolist() == alone.player.counted().executed.tolist()
print(sorted(took)[len(took) // 2])
"""


def run_script(code: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=HERE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ctrl_c_stops_the_kernel_at_once_and_it_goes_on(tmp_path: Path) -> None:
    assert float(run_script(INTERRUPTED, small_file(tmp_path, LOOKUP, nodes=2))) < 0.1


# Ctrl-C while the third replication is under way.
REPLICATIONS = """
import os, signal, sys, threading
from dataclasses import replace
from numatwin.sim.systems.eris import event_plane as eris_events
from numatwin.sim.run.runner import RunInterrupted, run_scenario
from numatwin.sim.run.scenario import load_scenario
settings = ["statistics.replications=5", "statistics.warm_up=100 us", "horizon=1 ms"]
scenario = load_scenario(sys.argv[1], plane="event", settings=settings)
whole = run_scenario(scenario, workers=1)
advance = eris_events.ErisEvents.advance
begun = set()
def watched(self, until_s):
    begun.add(id(self.player)); kept.append(self)
    if len(begun) == 3:
        os.kill(os.getpid(), signal.SIGINT)
    advance(self, until_s)
kept = []
eris_events.ErisEvents.advance = watched
try:
    run_scenario(scenario, workers=1)
    raise SystemExit("not interrupted")
except RunInterrupted as stopped:
    record = stopped.record
assert record.replications == 2, record.replications
assert "interrupted: 2 of 5 replications" in record.warnings, record.warnings
for name, values in whole.replicates["throughput"].items():
    assert record.replicates["throughput"][name] == values[:2]
"""


def test_ctrl_c_keeps_finished_replications(tmp_path: Path) -> None:
    run_script(REPLICATIONS, small_file(tmp_path, LOOKUP, nodes=2))


# All of a Record, of several replications, with balancing and several operations.
RECORD = """
import json, sys
sys.path.insert(0, {folder!r})
from test_run import as_told
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
settings = ["statistics.replications=2", "statistics.warm_up=200 us", "horizon=3 ms",
            "policies.balancing.period=1 ms", "workload.objects.index.keys=300000", "seed=9"]
scenario = load_scenario(sys.argv[1], plane="event", policy="ma-1", settings=settings)
print(json.dumps(as_told(run_scenario(scenario))))
"""
THREE = (
    "lookup: {kind: lookup, object: index, share: 3, "
    "keys: {distribution: hot_range, from: 0, to: 60_000, share: 0.9}}\n"
    "    upsert: {kind: upsert, object: index}"
)


def test_the_same_record_in_fresh_processes(tmp_path: Path) -> None:
    path = small_file(tmp_path, THREE, nodes=2)
    code = RECORD.format(folder=str(HERE))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    one, two = (process.communicate()[0] for process in running)
    assert one.startswith("{")
    assert one == two

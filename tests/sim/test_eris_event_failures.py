"""Runs of ERIS on the event plane that fail or are stopped, and machines of unlike nodes."""

from pathlib import Path

import pytest
from eris_machines import machine, routing
from fresh_processes import python
from small_scenarios import LOOKUP, small_file

from numatwin.sim._kernel import ErisDemands, ModelError
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris.event_plane import ErisEvents


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


BARE = """\
    bare: {cores: 4, clock: 4 GHz, ipc: 2, outstanding_misses: 10, caches: [], memory: {size: 0 B}}
  nodes: [{id: 0, type: plain}, {id: 1, type: bare}]
"""


def test_a_node_without_memory_works_on_anothers(tmp_path: Path) -> None:
    """Its workers have partitions, in the memory of node 0, over the link; all is counted there."""
    path = small_file(tmp_path, LOOKUP, nodes=2)
    path.write_text(path.read_text().replace("  nodes: [{ids: 0-1, type: plain}]\n", BARE))
    plane = ErisEvents(load_scenario(path, plane="event"), 1)
    plane.advance(2e-3)
    plane.player.check()
    counted = plane.player.counted()
    assert plane.eris.workers.count == 8
    assert (counted.executed.sum(axis=0) > 0).all()
    assert counted.memory_ps[0] > 0
    assert counted.memory_ps[1] == 0
    # Every line that node 1's workers look at crosses the link.
    keyed = counted.executed.sum(axis=0)
    assert counted.link_bytes.max() > keyed[4:].sum() * 64


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


def test_ctrl_c_stops_the_kernel_at_once_and_it_goes_on(tmp_path: Path) -> None:
    path = small_file(tmp_path, LOOKUP, nodes=2)
    done = python("-c", INTERRUPTED, str(path))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1

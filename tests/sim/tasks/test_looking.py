"""How many idle workers look for work before they sleep: known cases, and the event plane's."""

from math import exp, inf
from pathlib import Path

import pytest

from numatwin import load_scenario, run_scenario
from numatwin.sim.systems.tasks.looking import workers_looking

WORKLOAD = """\
name: sums
title: sums
objects:
  t: {kind: table, rows: 1_000_000, columns: {v: {distinct: 4096, value_size: 8 B}}}
operations:
  sum:
    kind: query
    share: 1
    operators: {sum: {kind: custom, table: t, instructions: 8.0, read: 1 B, concurrency: 1}}
clients: {kind: open, arrival_rate: 4000 / s}
"""
SCENARIO = """\
name: sums
title: sums
machine: xeon-4s-ivb
workload: sums-workload.yaml
system: {kind: tasks}
horizon: 500 ms
"""


@pytest.mark.parametrize("look_s", [0.1, 1.0, 10.0])
def test_one_worker_looks_until_the_next_query_or_gives_up(look_s: float) -> None:
    """M/M/1: idle for 1 / 2 s on average, exponentially, and 40% of the time."""
    found = workers_looking(1.0, 0.6, 2.0, 1.5, inf, look_s)
    assert found == pytest.approx(0.4 * (1.0 - exp(-2.0 * look_s)), rel=1e-6)


def test_one_of_two_clients_pauses() -> None:
    """Two workers, two clients, pauses and queries of 1 s each: the first worker (of the stack) is
    idle a quarter of the time, for 1 / 2 s; the second three quarters, both queries being there a
    quarter of the time, for 1 s."""
    found = workers_looking(2.0, 1.0, 1.0, 1.0, 1.0, 1e-3)
    # For so short a time each look lasts to its end: as many as queries begin, one a second.
    assert found == pytest.approx(1e-3, rel=2e-3)
    assert workers_looking(2.0, 1.0, 1.0, 1.0, 1.0, 1e6) == pytest.approx(1.0)


def test_with_clients_that_never_pause_idle_workers_sleep() -> None:
    assert workers_looking(8.0, 4.0, 100.0, 4.0, 0.0, 1e-3) == 0.0


def test_the_energy_of_looking_is_that_of_the_event_plane(tmp_path: Path) -> None:
    """4,000 queries a second of one task on one node with 15 workers; 1 ms of looking costs 6%."""
    (tmp_path / "sums-workload.yaml").write_text(WORKLOAD, encoding="utf-8")
    path = tmp_path / "sums.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    more = {}
    for plane in ("flow", "event"):
        once = ["statistics.replications=1"] if plane == "event" else []
        energy_J = []
        for look in ("0 us", "1 ms"):
            scenario = load_scenario(path, plane=plane, settings=[*once, f"system.look={look}"])
            energy_J.append(run_scenario(scenario).energy_J)
        without, looking = energy_J
        assert without is not None
        assert looking is not None
        assert looking > 1.03 * without
        more[plane] = looking - without
    assert more["flow"] == pytest.approx(more["event"], rel=0.1)

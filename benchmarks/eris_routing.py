"""ERIS's routing, every buffer and every exchange: the compiled kernel against the reference plane.

Both play ``eris-fig8-amd``, 64 AEUs that look keys up in each other's partitions, from the same
streams, for the same simulated time. The reference is the specification in plain SimPy. Each has
its trace compared first, row for row; what is timed is a run without a trace for the kernel (as
``numatwin run`` does it), with one for the reference (it always has one). CPU time, the best of
several. One JSON object goes to standard output, the hash of the trace to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable

import numpy as np
import simpy

from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.costs import ErisCosts
from numatwin.sim.systems.eris.engine import Eris
from numatwin.sim.systems.eris.players import Player, RoutedPlayer
from numatwin.sim.systems.eris.reference.player import ReferencePlayer

KINDS = {"round": 0, "executed": 3, "issued": 4, "copied": 6}
NO_BUFFER = 2**32 - 1  # the kernel's word for -1

Maker = Callable[[Scenario], Player]


def kernel(scenario: Scenario) -> RoutedPlayer:
    return RoutedPlayer(Eris(scenario), ErisCosts(scenario.machine), scenario, 1)


def reference(scenario: Scenario) -> ReferencePlayer:
    return ReferencePlayer(Eris(scenario), ErisCosts(scenario.machine), scenario, 1)


def trace_hash(scenario: Scenario, until_ps: int) -> str:
    """Of the trace that both planes give; refuses to time what differs."""
    compiled, plain = kernel(scenario), reference(scenario)
    compiled.model.tracing = True
    compiled.model.run(until_ps)
    plain.model.run(until_ps)
    found = compiled.model.trace()
    expected = np.array(
        [
            (time_ps, KINDS[kind], worker, other if other >= 0 else NO_BUFFER, amount)
            for time_ps, kind, worker, other, amount in plain.model.trace
        ],
        dtype=np.int64,
    )
    if not np.array_equal(found, expected):
        raise SystemExit("eris_routing: kernel and reference differ (tests/sim says where)")
    return hashlib.sha256(np.ascontiguousarray(found, dtype="<i8").tobytes()).hexdigest()[:16]


def best_rate(make: Maker, scenario: Scenario, until_ps: int, repeat: int) -> tuple[int, float]:
    """Events, and the most of them in a CPU-second: what else is done can only slow a run down."""
    least_s, events = float("inf"), 0
    for _ in range(repeat):
        player = make(scenario)
        start = time.process_time()
        player.model.run(until_ps)
        least_s = min(least_s, time.process_time() - start)
        events = player.model.events
    return events, events / least_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated-us", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    scenario, until_ps = load_scenario("eris-fig8-amd"), options.simulated_us * 1_000_000
    digest = trace_hash(scenario, until_ps)
    events, ours = best_rate(kernel, scenario, until_ps, options.repeat)
    same, theirs = best_rate(reference, scenario, until_ps, options.repeat)
    assert events == same
    name = "eris_routing/amd_64_aeus"
    print(f"{name}: {events} events, trace {digest}", file=sys.stderr)
    line = {
        "name": name,
        "value": round(ours),
        "unit": "events/CPU-s",
        "versus": f"reference plane, SimPy {simpy.__version__}: {theirs:.0f}/CPU-s",
        "ratio": round(ours / theirs, 2),
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

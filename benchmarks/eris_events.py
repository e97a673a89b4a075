"""ERIS in the event plane: what an event costs as workers become many, and how long a run takes.

Workers look keys up in each other's partitions; the buffers are small, so that all sizes soon have
the same mix of events: of 16 commands, of which a worker makes as many in a round as its buffers
hold. Counted from the second round on, in CPU time; the sizes take turns, and the median of the
turns counts. Workers begin in step, and where they are many a tenth of a round is all that is
counted: their events then hold more commands than in the mean of a round. So the cost of a command,
made and executed, is told too; and how many times as much as with the fewest workers each costs,
against ``GROWTH_MOST``. The last line is a run as users do it: ``eris-fig1`` on 512 AEUs. One JSON
object a line on standard output, hashes of what was counted on standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from statistics import median

from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris.event_plane import ErisEvents
from numatwin.sim.systems.eris.players import RoutedPlayer

BUFFER = 16
# Simulated time of a round, and of the runs: of a command that is made, sent and executed.
COMMAND_S = 80e-9
THREADS = 8
# Longer than what a call from Python takes, by far.
STEP_S = 100e-6
TURNS = 5
GROWTH_MOST, WALL_S_MOST = 3.0, 10.0


def plane(workers: int) -> ErisEvents:
    """So many workers on one machine, as many keys for each of them."""
    threads = THREADS if workers <= 512 else 16
    settings = [
        "machine=hypercube-1024n" if workers > 64 else "machine=amd-8n-ht",
        f"system.nodes={workers // threads}",
        f"system.threads={threads}",
        f"system.buffer_commands={BUFFER}",
        f"workload.objects.index.keys={workers * 100_000}",
    ]
    return ErisEvents(load_scenario("eris-fig8-amd", plane="event", settings=settings), 1)


def costs_ns(sizes: Sequence[int], events_least: int) -> dict[int, tuple[list[float], list[float]]]:
    """By number of workers, the CPU time of an event and of a command, turn by turn: (TURNS,) each.

    A command: half for making it, half for executing it.
    """
    models = {workers: plane(workers) for workers in sizes}
    for workers, model in models.items():
        model.advance(workers * BUFFER * COMMAND_S)
    found: dict[int, tuple[list[float], list[float]]] = {workers: ([], []) for workers in sizes}
    for _ in range(TURNS):
        for workers, model in models.items():
            start_commands, before = commands(model), model.player.model.events
            start = time.process_time()
            while model.player.model.events - before < events_least / TURNS:
                model.advance(model.time_s + STEP_S)
            spent_ns = (time.process_time() - start) * 1e9
            found[workers][0].append(spent_ns / (model.player.model.events - before))
            found[workers][1].append(spent_ns / (commands(model) - start_commands))
    for workers, model in models.items():
        model.player.check()
        tell_hash(f"eris_events/{workers}_aeus", model)
    return found


def commands(model: ErisEvents) -> float:
    """Made and executed so far, in the mean."""
    assert isinstance(model.player, RoutedPlayer)
    counts = model.player.model.counts()
    return (float(counts["made"]) + float(counts["executed"].sum())) / 2


def tell_hash(name: str, model: ErisEvents) -> None:
    """Of all commands that each worker executed: the same on each machine."""
    executed = model.player.counted().executed.astype("<i8").tobytes()
    digest = hashlib.sha256(executed).hexdigest()[:16]
    print(f"{name}: {model.player.model.events} events, executed {digest}", file=sys.stderr)


def tell(name: str, value: float, unit: str, versus: str, ratio: float) -> None:
    """One line; ``ratio``: of what is asked for, over 1 where it is reached."""
    line = {"name": name, "value": value, "unit": unit, "versus": versus, "ratio": round(ratio, 2)}
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 512, 4096])
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--nodes", type=int, default=64, help="of eris-fig1, 8 AEUs each")
    parser.add_argument("--simulated-us", type=int, default=10_000)
    options = parser.parse_args()
    first, *others = options.workers
    costs = costs_ns(options.workers, options.events)
    for workers in others:
        for name, unit, few, many in zip(
            ("cost", "command_cost"),
            ("event", "command"),
            costs[first],
            costs[workers],
            strict=True,
        ):
            growth = median(a / b for a, b in zip(many, few, strict=True))
            held = f"{first} AEUs: {median(few):.0f} ns; at most {GROWTH_MOST:g} x"
            name = f"eris_events/{name}_{workers}_aeus"
            tell(name, round(median(many)), f"ns/{unit}", held, GROWTH_MOST / growth)
            tell(f"{name}_growth", round(growth, 2), "x", held, GROWTH_MOST / growth)
    settings = [f"system.nodes={options.nodes}"]
    start = time.perf_counter()
    model = ErisEvents(load_scenario("eris-fig1", plane="event", settings=settings), 1)
    model.advance(options.simulated_us * 1e-6)
    wall_s = time.perf_counter() - start
    model.player.check()
    count = model.eris.workers.count
    tell_hash(f"eris_events/fig1_{count}_aeus", model)
    tell(
        f"eris_events/fig1_{count}_aeus_{options.simulated_us}_us",
        round(wall_s, 2),
        "s",
        f"at most {WALL_S_MOST:g} s",
        WALL_S_MOST / wall_s,
    )


if __name__ == "__main__":
    main()

"""What measured pairs say of a machine's limits, and what an interleaved scan could reach then.

A pair of nodes tells about what it uses alone: its initiator's lines under way, the links between,
the home. Two readings are compared: links carry what their best pair was seen to draw (as the
planes have it), and links carry their nominal rate while an initiator has no more remote lines
under way than its best pair had. Where a pair fills a link or a home, its lines say nothing about
the initiator, and the second reading is the links' alone.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from numatwin.sim.machine.costs import LINE_BYTES, CostModel
from numatwin.sim.machine.streams import lines_under_way
from numatwin.topologies import load_machine

MACHINES = ("amd-8n-ht", "intel-4s-qpi", "sgi-uv2000-64n", "epyc-2s-nps4")
FULL = 0.85  # of a link's or a home's nominal rate: what holds the pair


@dataclass(frozen=True)
class Limits:
    """Bandwidths of an interleaved scan by all nodes, in bytes per second of all memories.

    ``initiators``: with ``lines`` under way for each; infinite where a pair was held by a link or
    its home.
    """

    machine: str
    lines: float
    memory: float
    links_best_pair: float
    links_nominal: float
    initiators: float


def limits_of(name: str) -> Limits:
    """The limits of a bundled machine; all nodes are taken to be alike."""
    costs = CostModel(load_machine(name))
    n, links = len(costs.cores), costs.machine.links
    nominal = np.repeat([link.bandwidth_Bps for link in links], 2)
    per_byte = costs.wire_Bps(np.ones((n, n)) / n).sum(axis=0) / LINE_BYTES / n
    used = per_byte > 0
    lines, free = 0.0, False
    for home in range(1, n):
        drawn = float(costs.pair_Bps[0, home])
        way = costs.machine.routes.links_of(home, 0)
        wire = drawn * (LINE_BYTES + costs.link_header_bytes[way]) / LINE_BYTES
        held = max(float((wire / nominal[way]).max()), drawn / float(costs.memory_Bps[home])) > FULL
        under_way = lines_under_way(costs, 0, home, drawn)
        if under_way > lines:
            lines, free = under_way, held
    remote_s = float(costs.idle_s[~np.eye(n, dtype=bool)].mean())
    memory = float(costs.memory_Bps.min())

    def spare(each_Bps: float) -> float:
        wait_s = costs.memory_wait_s(np.full(n, each_Bps / memory))[0]
        return float(lines - (n - 1) / n * each_Bps / LINE_BYTES * (remote_s + wait_s))

    held_Bps = n * (memory if spare(memory) > 0 else float(brentq(spare, 0.0, memory)))
    return Limits(
        machine=name,
        lines=lines,
        memory=n * memory,
        links_best_pair=float((costs.link_Bps[used] / per_byte[used]).min()),
        links_nominal=float((nominal[used] / per_byte[used]).min()),
        initiators=float("inf") if free else held_Bps,
    )


def main() -> None:
    """Prints a table or, by default, a JSON object a machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="a table for docs/model.md")
    as_table = parser.parse_args().table
    if as_table:
        print("| machine | lines under way | memory | links, best pair | nominal | initiators |")
        print("| --- | --: | --: | --: | --: | --: |")
    for found in map(limits_of, MACHINES):
        rates = found.memory, found.links_best_pair, found.links_nominal, found.initiators
        if as_table:
            cells = " | ".join("–" if np.isinf(rate) else f"{rate / 1e9:.0f}" for rate in rates)
            print(f"| `{found.machine}` | {found.lines:.1f} | {cells} |")
            continue
        now, then = min(rates[:2]), min(found.memory, *rates[2:])
        value = {"name": f"interleaved scan, {found.machine}", "value": then / 1e9, "unit": "GB/s"}
        print(json.dumps({**value, "versus": now / 1e9, "ratio": then / now}))


if __name__ == "__main__":
    main()

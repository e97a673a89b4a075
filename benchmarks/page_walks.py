"""An interleaved scan page by page, beside the same scan spread over all homes at once.

Each core of a machine streams pages of 64 lines from one home after the other. Rates are max-min
fair over memories, links, initiators and pairs; they change each time that a thread comes to its
next page. The planes spread each thread's reads over all homes instead.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from numatwin.sim._kernel import solve_max_min
from numatwin.sim.machine.costs import LINE_BYTES, CostModel
from numatwin.topologies import load_machine

Floats = npt.NDArray[np.float64]

MACHINES = ("amd-8n-ht", "epyc-2s-nps4", "xeon-8s-ivb")
PAGE_LINES = 64.0
SETTLED = 1 / 3  # of all steps, which are not counted


class Scan:
    """Threads on all cores; ``use`` (n, n, R): time that a line of (node, home) takes of each."""

    def __init__(self, name: str) -> None:
        self.costs = costs = CostModel(load_machine(name))
        self.n, links = len(costs.cores), len(costs.link_Bps)
        memory, self.die_s = costs.memory_Bps, costs.die_s(costs.cores)
        self.use = np.zeros((self.n, self.n, self.n + links + costs.limits.count(self.die_s)))
        for node in range(self.n):
            for home in range(self.n):
                read, _ = costs.line_bytes(node, home)
                self.use[node, home, home] = LINE_BYTES / memory[home]
                self.use[node, home, self.n : self.n + links] = read / costs.link_Bps
        for node, home, column, each_s in zip(*costs.limits.columns(self.die_s), strict=True):
            self.use[node, home, self.n + links + column] = each_s

    def rates(self, use: Floats, cap: Floats) -> Floats:
        """(F,) lines per second of flows that take ``use`` (F, R) for a line."""
        row, resource = np.nonzero(use)
        first = np.searchsorted(row, np.arange(len(use) + 1))
        full = np.ones(use.shape[1])
        rate, _, _ = solve_max_min(
            full, first, resource, use[row, resource], cap, np.ones(len(use))
        )
        return np.asarray(rate)

    def spread_Bps(self) -> float:
        """What all nodes read where each core has lines of all homes under way at once."""
        slots = self.costs.streaming_misses * self.costs.cores
        cap = slots / self.costs.idle_s.mean(axis=1)
        return float(self.rates(self.use.mean(axis=1), cap).sum() * LINE_BYTES)

    def pages_Bps(self, steps: int, *, in_step: bool) -> float:
        """The same page by page, from random phases or all from the first home on."""
        node = np.repeat(np.arange(self.n), self.costs.cores.astype(int))
        rng = np.random.default_rng(1)
        home = np.zeros(len(node), dtype=int) if in_step else rng.integers(0, self.n, len(node))
        left = np.full(len(node), PAGE_LINES) * (1.0 if in_step else rng.random(len(node)))
        lines, time_s = 0.0, 0.0
        for step in range(steps):
            kinds, kind, count = np.unique(
                node * self.n + home, return_inverse=True, return_counts=True
            )
            of, to = np.divmod(kinds, self.n)
            cap = self.costs.streaming_misses[of] / self.costs.idle_s[of, to]
            rate = self.rates(count[:, None] * self.use[of, to], cap)[kind]
            passed_s = float((left / rate).min())
            left -= rate * passed_s
            if step >= SETTLED * steps:
                lines, time_s = lines + float(rate.sum()) * passed_s, time_s + passed_s
            done = left < 1e-6
            home[done], left[done] = (home[done] + 1) % self.n, PAGE_LINES
        return lines * LINE_BYTES / time_s


def figures(name: str, steps: int) -> Iterator[dict[str, object]]:
    """The benchmark's figures of a machine."""
    scan = Scan(name)
    spread = scan.spread_Bps()
    for how, in_step in (("random phases", False), ("in step", True)):
        found = scan.pages_Bps(steps, in_step=in_step)
        yield {
            "name": f"interleaved scan page by page, {how}, {name}",
            "value": round(found / 1e9, 1),
            "unit": "GB/s",
            "versus": round(spread / 1e9, 1),
            "ratio": round(found / spread, 3),
        }


def main() -> None:
    """Prints a JSON object a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2500, help="pages that are read")
    steps = parser.parse_args().steps
    for name in MACHINES:
        for found in figures(name, steps):
            print(json.dumps(found))


if __name__ == "__main__":
    main()

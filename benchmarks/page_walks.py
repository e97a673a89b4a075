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

MACHINES = (
    "amd-8n-ht", "epyc-2s-nps4", "intel-4s-qpi", "opteron-4n", "xeon-2s-spr-snc4", "xeon-8s-ivb"
)  # fmt: skip
AT_RANDOM, IN_ORDER, IN_STEP = "homes at random", "homes in order, random phases", "in step"
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

    def network_Bps(self, rounds: int = 2000) -> float:
        """The same page by page as a closed network: a thread waits at a home for those that it
        meets at the fullest of what its lines take (mean value analysis, Schweitzer 1979).
        """
        threads, free_s = self.costs.cores, self.costs.idle_s / self.costs.streaming_misses[:, None]
        met = np.zeros((self.n, self.use.shape[2]))  # others, by (node of a thread, resource)
        for _ in range(rounds):
            line_s = free_s + (self.use * met[:, None, :]).max(axis=2)
            there = line_s / line_s.sum(axis=1, keepdims=True)
            # Who is held by something else takes less than its share here.
            held = np.minimum(1.0, self.use * (1.0 + met[:, None, :]) / line_s[:, :, None])
            own = np.einsum("ij,ijr->ir", there, held)
            met = 0.9 * met + 0.1 * (threads @ own - own)
        return float((threads * self.n / line_s.sum(axis=1)).sum() * LINE_BYTES)

    def pages_Bps(self, steps: int, how: str) -> float:
        """The same page by page: from random phases on, in order or at random; all from the first
        home on.
        """
        node = np.repeat(np.arange(self.n), self.costs.cores.astype(int))
        rng = np.random.default_rng(1)
        in_step = how == IN_STEP
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
            left[done] = PAGE_LINES
            home[done] = (home[done] + 1) % self.n
            if how == AT_RANDOM:
                home[done] = rng.integers(0, self.n, int(done.sum()))
        return lines * LINE_BYTES / time_s


def figures(name: str, steps: int) -> Iterator[dict[str, object]]:
    """The benchmark's figures of a machine."""
    scan = Scan(name)
    spread = scan.spread_Bps()
    every = {how: scan.pages_Bps(steps, how) for how in (AT_RANDOM, IN_ORDER, IN_STEP)}
    for how, found in ({"as a closed network": scan.network_Bps()} | every).items():
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

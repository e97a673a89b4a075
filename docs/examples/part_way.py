"""A load balancer that goes only part of the way to even loads, so that less data moves at once."""

import numpy as np

from numatwin import BalancingObservation, Rebalance


class PartWay:
    """Moves each bound by ``share`` of its way to where all partitions would have the same load."""

    def __init__(self, share: float = 0.5, threshold: float = 0.1) -> None:
        self.share = share
        self.threshold = threshold

    def decide(self, observation: BalancingObservation) -> list[Rebalance]:
        """New bounds for every index that is uneven and not being balanced already."""
        commands = []
        for name, seen in observation.objects.items():
            if seen.bounds is None or seen.balancing:
                continue
            load = seen.accesses_per_s * seen.execution_s
            if load.std() <= self.threshold * load.mean():
                continue
            below = np.concatenate([[0.0], np.cumsum(load)])
            even = np.interp(np.linspace(0.0, below[-1], len(below)), below, seen.bounds)
            even[0], even[-1] = seen.bounds[0], seen.bounds[-1]
            bounds = np.rint(seen.bounds + self.share * (even - seen.bounds))
            commands.append(Rebalance(name, bounds=bounds))
        return commands

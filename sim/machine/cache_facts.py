"""Caches of one level on each node: how many cores share one, its size, its latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...topologies.machine import CacheLevel, Node
from .link_traffic import LINE_BYTES

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CacheFacts:
    """Caches of one level, arrays (n,): cores that share one, lines of one, latency of a hit.

    0 lines where there is no such cache, 0 s where the latency is unknown. ``exclusive`` (n,): of
    the last level, whether it holds only what those above it have dropped.
    """

    sharers: Floats
    lines: Floats
    latency_s: Floats
    exclusive: npt.NDArray[np.bool_]

    def instances(self, cores: Floats) -> Floats:
        """(n,) how many of them so many ``cores`` (n,) of each node use, at least one."""
        return np.maximum(np.ceil(cores / self.sharers), 1.0)


def cache_facts(nodes: Sequence[Node], below: int) -> CacheFacts:
    """Of the caches so many levels before the last one."""
    caches = [_cache_below(node, below) for node in nodes]
    sharers = np.array([float(cache.shared_by_cores) if cache else 1.0 for cache in caches])
    lines = np.array([cache.size_bytes / LINE_BYTES if cache else 0.0 for cache in caches])
    latency_ns = [cache.latency_ns or 0.0 if cache else 0.0 for cache in caches]
    exclusive = np.array([node.exclusive and below == 0 for node in nodes])
    return CacheFacts(sharers, lines, np.array(latency_ns) * 1e-9, exclusive)


def _cache_below(node: Node, below: int) -> CacheLevel | None:
    """The cache so many levels before the last one; the first level counts as part of the core."""
    levels = sorted((c for c in node.caches if c.level > 1), key=lambda cache: -cache.level)
    if not levels and below == 0:
        return max(node.caches, key=lambda cache: cache.level, default=None)
    return levels[below] if below < len(levels) else None

"""How much of a last-level cache this host has for itself, by the latency of working sets.

The kernel of a virtual machine tells the size of the whole cache, which its guest shares with
others, and other programs take their share on any host. A random cycle that fits into what is left
finds its lines there; a longer one goes to memory. So the working set at which half of the loads
miss is the size that counts, and those at which a fifth and four fifths miss are its range.
"""

import math
from collections.abc import Sequence

from ...inputs import Quantity
from ...topologies.measurements import Measurement
from ...topologies.schema import Cache

# Caches keep less than all of their size for one program's lines on any host.
WHOLE_MIN = 0.7
# A cache as slow as that, against memory, is none: then the curve's own least counts.
CACHE_LIKE_MEMORY = 0.5


def effective_size(
    cache: Cache, private_bytes: float, measurements: Sequence[Measurement], *, virtual: bool
) -> Quantity | None:
    """The size of the last level ``cache`` above caches of ``private_bytes``; None for its own.

    On a ``virtual`` host whose measured working sets end within the cache, its size is doubtful
    from there on.
    """
    curve = sorted(
        (m.parameters.size.value, m.value.value)
        for m in measurements
        if m.name == "latency" and m.parameters.size and m.parameters.size.value > private_bytes
    )
    memory_s = [m.value.value for m in measurements if m.name == "memory.latency"]
    alone_s = [
        m.value.value
        for m in measurements
        if m.name == "cache.latency" and m.parameters.level == cache.level
    ]
    if not curve or not memory_s:
        return None
    nominal, (largest, largest_s) = cache.size.value, curve[-1]
    least_s, miss_s = min(s for _, s in curve), min(memory_s)
    slow_s = CACHE_LIKE_MEMORY * miss_s
    if largest < nominal and (least_s > slow_s or largest_s < slow_s):  # memory was not reached
        last = f"no working set above {_MiB(largest)} was measured"
        return _size(cache, nominal, largest, nominal, last) if virtual else None
    if least_s > slow_s:  # nowhere a cache
        return _size(cache, private_bytes, private_bytes, curve[0][0], "no working set fits")
    # Just above the private caches some loads still hit there.
    hit_s = next((s for s in alone_s if s <= slow_s), least_s)
    missing = [(size, (s - hit_s) / (miss_s - hit_s)) for size, s in curve]
    low, value, high = (min(_crossing(missing, part), nominal) for part in (0.2, 0.5, 0.8))
    if value >= WHOLE_MIN * nominal:
        return None
    return _size(cache, value, low, high, "half of the loads of this working set miss")


def _crossing(missing: Sequence[tuple[float, float]], part: float) -> float:
    """From which size on ``part`` of the loads misses; between sizes on a logarithmic scale."""
    beyond = len(missing)
    while beyond and missing[beyond - 1][1] >= part:
        beyond -= 1
    if beyond == len(missing):
        return math.inf
    if beyond == 0:
        return missing[0][0]
    (smaller, less), (larger, more) = missing[beyond - 1 : beyond + 1]
    return float(smaller * (larger / smaller) ** ((part - less) / (more - less)))


def _size(cache: Cache, value: float, low: float, high: float, why: str) -> Quantity:
    value, low, high = (size // 1024 * 1024 for size in (value, low, high))
    source = f"measured: {why}; of {_MiB(cache.size.value)}, which others use too"
    return Quantity(value, min(low, value), max(high, value), source, doubtful=True)


def _MiB(size: float) -> str:
    return f"{size / 2**20:.4g} MiB"


def shared_text(path: str, cache: Cache, size: Quantity) -> str:
    """A warning that the cache has this ``size`` only; ``path``: of the fact."""
    return (
        f"{path}: the L{cache.level} cache of {_MiB(cache.size.value)} holds about "
        f"{_MiB(size.value)} of one program ({_MiB(size.low)} to {_MiB(size.high)}): others use it"
    )

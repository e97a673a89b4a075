"""How a core goes now slower, now faster, as others use what it shares with them.

On a virtual host another machine's programs run on the other threads of one's cores, for a
millisecond or for hundreds of them, use its last cache and its memory. What one does takes 1.1 to
1.5 times as long meanwhile: that is where most of the tail of latencies comes from, and some
percent of the throughput. What is measured here is no work of the engine's, but of the same kinds:
drawing numbers and loading words from a core's own cache, and from memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...topologies.measurements import Measurement
from ...topologies.schema import PACE_SHARES, Fact, Paces
from .bench import Bench
from .interrupting import CPUS, as_quantity
from .quiet import mostly_calm
from .samples import Floats, Samples

METHOD = (
    "two CPUs at once load words at random, in turn from their own caches and from memory: their "
    "pace in moments of 0.1 ms, 1 as mostly; {}"
)
KINDS = ("cached", "memory")
MOMENT_NS = 100_000
# As long as a real run of the bundled suite.
SECONDS, QUICK_SECONDS, ROUNDS = 0.3, 0.1, 3
CACHED_PART, MEMORY_CACHES = 4, 2
CACHED_BYTES = 1 << 20  # where no cache is known
SLOW = 0.9


def measure(bench: Bench) -> Iterator[float]:
    """The pace by share of the time, and how long slow times last."""
    from ...engine_native._engine import paces

    cpus = list(bench.layout.starts[0].cores[:CPUS])
    caches = sorted(cache.size_bytes for cache in bench.layout.caches)
    cached = int(caches[-2] if len(caches) > 1 else CACHED_BYTES) // CACHED_PART
    memory = MEMORY_CACHES * int(caches[-1] if caches else CACHED_BYTES)
    seconds = QUICK_SECONDS if bench.effort.quick else SECONDS
    rounds: list[Floats] = []
    lengths: list[Floats] = []
    watched = []
    for one in bench.quiet.watch(lambda: paces(cpus, cached, memory, seconds, MOMENT_NS), ROUNDS):
        watched.append(one)
        yield len(watched) / ROUNDS
    found, calm = mostly_calm(watched)
    for ns in found:
        of_cpus = [np.median(one, axis=1, keepdims=True) / one for one in map(np.array, ns)]
        rounds.append(np.quantile(np.concatenate(of_cpus, axis=1), PACE_SHARES, axis=1))
        lengths += [slow_times(kind) for one in of_cpus for kind in one]
    for share, by_kind in zip(PACE_SHARES, np.array(rounds).transpose(1, 2, 0), strict=True):
        what = METHOD.format(f"that of the slowest {share:.1%} of them")
        for kind, of_rounds in zip(KINDS, by_kind, strict=True):
            of = Samples(of_rounds, noisy=not calm)
            bench.add("pace", of, "count", what, place=kind, share=share)
    moments = np.concatenate(lengths)
    mean = float((moments**2).sum() / moments.sum()) if len(moments) else 1.0
    what = METHOD.format("how long it stays below 0.9, in the middle of such a time")
    lasts = Samples(np.array([mean * MOMENT_NS]), noisy=not calm)
    bench.add("pace-lasts", lasts, "time", what)


def slow_times(pace: Floats) -> Floats:
    """Moments that each slow time lasts, in the order of ``pace``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], pace < SLOW, [False]]).astype(int)))
    lengths: Floats = np.diff(edges)[::2].astype(np.float64)
    return lengths


def measured_paces(measurements: Sequence[Measurement]) -> Paces | None:
    """As a machine file has them; None where they were not measured."""
    found = {(m.parameters.place, m.parameters.share): m for m in measurements if m.name == "pace"}
    lasts = [m for m in measurements if m.name == "pace-lasts"]
    if not lasts:
        return None
    facts = {kind: [_fact(found[kind, share]) for share in PACE_SHARES] for kind in KINDS}
    return Paces.model_validate({"lasts": as_quantity(lasts[-1]), **facts})


def _fact(found: Measurement) -> Fact:
    ends = found.quartiles
    return Fact(
        value=found.value.value,
        range=None if ends is None else (ends[0].value, ends[1].value),
        doubtful=found.noisy,
    )

"""How often, and for how long, the operating system or a hypervisor takes a CPU from its program.

While one of several workers stands still, commands for it pile up, and it takes far longer than the
interruption until they are worked off: a part of the tail of latencies comes from there. Only short
interruptions are kept, which are so many that their rate is a fact of the host: timers, their
handlers, exits to the hypervisor. Longer ones are somebody else's turn on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...topologies.measurements import Measurement
from ...topologies.schema import Interruption
from .bench import Bench
from .samples import Samples

METHOD = "looks at the clock, on two CPUs at once, that came late by {}"
# By length, in ns. Shorter than the first is a cache miss, longer than the last another's turn.
KINDS = {"short": (1_000, 5_000), "middle": (5_000, 30_000), "long": (30_000, 100_000)}
CPUS = 2
SECONDS, QUICK_SECONDS, ROUNDS = 0.3, 0.1, 3


def measure(bench: Bench) -> Iterator[float]:
    """Lengths of interruptions, and from one to the next, by kind."""
    from ...engine_native._engine import gaps

    cpus = bench.layout.starts[0].cores[:CPUS]
    seconds = QUICK_SECONDS if bench.effort.quick else SECONDS
    found = []
    for at in range(ROUNDS):
        found += gaps(list(cpus), seconds, KINDS["short"][0])
        yield (at + 1) / ROUNDS
    lengths = np.concatenate([np.array(one) for one in found])
    watched_ns = len(found) * seconds * 1e9
    for kind, (least, most) in KINDS.items():
        some = lengths[(lengths >= least) & (lengths < most)]
        if len(some):
            of = METHOD.format(f"{least / 1000:g} to {most / 1000:g} µs")
            for step, values in (("length", some), ("every", np.array([watched_ns / len(some)]))):
                mean = Samples(np.array([values.mean()]))
                bench.add("interruption", mean, "time", of, operation=kind, step=step)


def interruptions(measurements: Sequence[Measurement]) -> tuple[Interruption, ...]:
    """As a machine file has them; none where they were not measured."""
    times = {
        (m.parameters.operation, m.parameters.step): m.value.value
        for m in measurements
        if m.name == "interruption"
    }
    return tuple(
        Interruption.model_validate(
            {step: f"{times[kind, step] * 1e9:.4g} ns" for step in ("length", "every")}
        )
        for kind in KINDS
        if (kind, "length") in times
    )

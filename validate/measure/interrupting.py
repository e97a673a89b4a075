"""How often, and for how long, the operating system or a hypervisor takes a CPU from its program.

While one of several workers stands still, commands for it pile up, and it takes far longer than the
interruption until they are worked off: a part of the tail of latencies comes from there. These are
timers, their handlers, exits to the hypervisor. And how long a program's own way into the kernel
and back takes.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ...topologies.measurements import Measurement
from ...topologies.schema import Interruption
from .bench import Bench, Floats, Samples

METHOD = "looks at the clock, on two CPUs at once, that came late by {}"
# By length, in ns. Shorter than the first is a cache miss, longer than the last another program's
# turn on the CPU, which pays for no model of it (docs/model/one-host.md).
KINDS = {"short": (1_000, 5_000), "middle": (5_000, 30_000), "long": (30_000, 100_000)}
SYSTEM_CALL = "getppid, over and over on one CPU"
CPUS = 2
SECONDS, QUICK_SECONDS, ROUNDS = 0.5, 0.1, 3
# What was not seen may still come now and then: so many were met in the time watched.
NONE_SEEN = 0.5


def measure(bench: Bench) -> Iterator[float]:
    """Lengths of interruptions, and from one to the next, by kind."""
    from ...engine_native._engine import gaps, system_calls

    cpus = bench.layout.starts[0].cores[:CPUS]
    calls = bench.run([(cpus[0], system_calls())], limit_s=0.1).ns_each()
    bench.add("system_call", calls, "time", SYSTEM_CALL, node=bench.layout.starts[0].id)
    seconds = QUICK_SECONDS if bench.effort.quick else SECONDS
    found: list[Floats] = []
    for at in range(ROUNDS):
        found += [np.array(of_cpu) for of_cpu in gaps(list(cpus), seconds, KINDS["short"][0])]
        yield (at + 1) / ROUNDS
    lengths = np.concatenate(found)
    # Who is away at the end watches for longer.
    watched_ns = sum(max(seconds * 1e9, float(of_cpu.sum())) for of_cpu in found)
    for kind, step, ns in means(lengths, watched_ns):
        least, most = KINDS[kind]
        of = METHOD.format(f"{least / 1000:g} to {most / 1000:g} µs")
        if not ((lengths >= least) & (lengths < most)).any():
            of += "; none did: as if half a one had"
        bench.add("interruption", Samples(np.array([ns])), "time", of, operation=kind, step=step)


def means(lengths_ns: Floats, watched_ns: float) -> Iterator[tuple[str, str, float]]:
    """Of each kind: from the end of one to the next (``every``), and, where any was met, their
    ``length``; in ns, of the ``lengths_ns`` (N,) met in so long."""
    # A look between two of them takes a nanosecond at least.
    left_ns = max(watched_ns - float(lengths_ns.sum()), 1.0 + len(lengths_ns))
    for kind, (least, most) in KINDS.items():
        those = lengths_ns[(lengths_ns >= least) & (lengths_ns < most)]
        yield kind, "every", left_ns / max(len(those), NONE_SEEN)
        if len(those):
            yield kind, "length", float(those.mean())


def interruptions(measurements: Sequence[Measurement]) -> tuple[Interruption, ...] | None:
    """As a machine file has them: those of the kinds that were met; None where nobody looked."""
    found = {
        (m.parameters.operation, m.parameters.step): m
        for m in measurements
        if m.name == "interruption"
    }
    if not found:
        return None
    return tuple(
        Interruption(length=found[kind, "length"].quantity(), every=found[kind, "every"].quantity())
        for kind in KINDS
        if (kind, "length") in found
    )

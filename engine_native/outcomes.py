"""What runs on this host have in common: what holds them back, and outcomes by messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..inputs import InputError
from ..sim.kernel.arrays import Floats
from ..sim.kernel.histogram import Histogram
from ..sim.planes.outcome import ControlEvent, Outcome, ResourceUse, Why

SLICE_S = 0.05  # how often a waiting plane looks whether a worker failed
TAKEN = 0.05  # a host that takes so much of the workers' time is busy with something else
FULL = 0.9  # a worker that is busy for so long has no time left


def no_memory(failure: MemoryError) -> InputError:
    """What to do about it."""
    message = str(failure)
    if not message.startswith("no memory"):  # "std::bad_alloc"
        message = "no memory left for the engine"
    return InputError(message, expected="a smaller --scale")


def limit_of_workers(busy: Floats, paced: bool) -> str:
    """What holds a run back whose workers are busy for such parts of their time; ``paced``: by
    clients that think, or ask at a rate of their own."""
    full = int((busy >= FULL).sum())
    if not full:
        return "what the clients ask for" if paced else "workers that wait for each other"
    if full == len(busy):
        return "time of the workers"
    return f"time of {full} of {len(busy)} workers"


def network_outcome(
    operation: str,
    *,
    passed_s: float,
    operations: int,
    sent_bytes: int,
    resources: Sequence[ResourceUse],
    why: dict[str, Why],
    facts: Mapping[str, Any],
    warnings: Sequence[str],
    steps: int,
    latencies: Histogram,
    events: Sequence[ControlEvent] = (),
) -> Outcome:
    """Of so many operations, all of one kind, in ``passed_s``; this host does not say what memory
    they read and write, nor what energy they take.
    """
    return Outcome(
        throughput={operation: operations / passed_s},
        operations={operation: float(operations)},
        bandwidth_Bps={"memory": None, "links": None, "network": sent_bytes / passed_s},
        resources=tuple(resources),
        why=why,
        events=tuple(events),
        model={operation: facts},
        warnings=tuple(warnings),
        steps=steps,
        latencies_ns={operation: latencies},
    )

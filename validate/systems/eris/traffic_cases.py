"""What ``numatwin crossvalidate --traffic`` counts of ERIS: on machines that are scaled down."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ....sim.run.real_planes import EMULATOR
from ....sim.run.scenario import load_scenario
from ...crossvalidate.traffic import TrafficCase

# Two to three times what the last-level caches hold: neither all of it misses, nor nothing.
KEYS_PER_NODE, ENTRIES_PER_NODE = 400_000, 500_000
# So long that caches are warm on a busy host too: of times nothing is told.
HORIZON_S, WARM_UP_S = 16.0, 8.0
# An incoming buffer holds two rounds of commands, each a full buffer to each worker: how far a
# guest's processors run ahead of each other is the host's matter, and is to take no room in caches.
INCOMING_BYTES_PER_WORKER = 2 * 128 * 16


@dataclass(frozen=True)
class _Machine:
    """A machine and its part: of processors and caches, and how many of its nodes."""

    name: str
    scale: Fraction
    nodes: int
    whole: bool = True


# One processor a node.
MACHINES = (
    _Machine("intel-4s-qpi", Fraction(1, 20), 4),
    _Machine("amd-8n-ht", Fraction(1, 6), 8),
    _Machine("sgi-uv2000-64n", Fraction(1, 16), 16, whole=False),
)
OPERATIONS = {
    "lookup": ("eris-lookup-1e9", "index.keys", KEYS_PER_NODE),
    "upsert": ("eris-upsert-1e9", "index.keys", KEYS_PER_NODE),
    "scan": ("eris-scan-8gb", "column.entries", ENTRIES_PER_NODE),
}
# So few data are interleaved evenly by small pages alone.
PLACEMENTS = {"partitioned": "2 MiB", "interleaved": "4 KiB"}
QUICK = "intel-4s-qpi lookup partitioned"


def traffic_cases(*, quick: bool = False) -> Iterator[TrafficCase]:
    """All of them, or one that is typical."""
    for machine in MACHINES:
        for operation, (workload, size, per_node) in OPERATIONS.items():
            for placement, page_size in PLACEMENTS.items():
                name = f"{machine.name} {operation} {placement}"
                if quick and name != QUICK:
                    continue
                scenario = load_scenario(
                    "eris-fig8-amd",
                    machine=machine.name,
                    workload=workload,
                    plane=EMULATOR,
                    settings=(
                        # The engine that is counted is the one to predict.
                        "machine.engines={eris: {implementation: native}}",
                        f"workload.objects.{size}={per_node * machine.nodes}",
                        f"system.placement={placement}",
                        f"system.page_size={page_size}",
                        f"system.nodes={machine.nodes}",
                        f"system.incoming_size={machine.nodes * INCOMING_BYTES_PER_WORKER} B",
                        f"native_horizon={HORIZON_S} s",
                        f"horizon={HORIZON_S} s",
                        f"statistics.warm_up={WARM_UP_S} s",
                    ),
                )
                nodes = None if machine.whole else machine.nodes
                yield TrafficCase(name, scenario, float(machine.scale), nodes)

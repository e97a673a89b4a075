"""Reads figures of a machine file that ``numatwin machine measure`` wrote as observations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...inputs import Document
from ...topologies.machine import Machine
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from .observation import Kind, Observation, Origin

# Of a normal distribution: standard deviations between its quartiles.
QUARTILES = 1.349
# A noisy figure holds others' work too: so many times its spread.
NOISY = 3.0
# A working set from which a cache level answers for sure: around the size that was chosen for it.
NEAR_LEVEL = (0.75, 1.5)


class HostReader:
    """Reads one file; ``machine`` is the one that it describes, by which sizes are judged."""

    def __init__(
        self, document: Document, description: MachineDescription, machine: Machine
    ) -> None:
        self.document, self.description, self.machine = document, description, machine
        host = description.host
        date = host.date[:10] if host is not None else "date unknown"
        name = document.file.rsplit("/", 1)[-1]
        label = "".join(c if c.isprintable() else "?" for c in name)
        self.origin = Origin(document.file, label, date)
        self.at = 0  # the position of the figure that is read
        self.by_delay: dict[tuple[object, ...], Measurement] = {
            (m.parameters.threads, m.parameters.delay): m
            for m in description.measurements
            if m.name == "loaded.bandwidth"
        }

    def observation(
        self, kind: Kind, measurement: Measurement, label: str, at: Mapping[str, Any], **more: Any
    ) -> Observation:
        """One figure, with its spread and its line."""
        mark = self.document.marks.get(("measurements", self.at))
        value = measurement.value
        return Observation(
            kind,
            label,
            value.value,
            value.unit,
            self.origin,
            spread=spread_of(measurement),
            at=at,
            line=mark[0] if mark else None,
            **more,
        )

    def ends(self, measurement: Measurement) -> dict[str, int]:
        """Node and home; of a host with one node they go without saying."""
        first = next((n.id for n in self.machine.nodes if n.cores), self.machine.nodes[0].id)
        node = measurement.parameters.node if measurement.parameters.node is not None else first
        home = measurement.parameters.home if measurement.parameters.home is not None else node
        return {"node": node, "home": home}

    def sizes(self) -> list[tuple[int, float, float]]:
        """(level, smallest, largest) working sets that a level of the first node answers."""
        node = next((n for n in self.machine.nodes if n.cores), self.machine.nodes[0])
        found, before = [], 0.0
        for cache in node.caches:
            chosen = min(3 * before, math.sqrt(before * cache.size_bytes))
            chosen = chosen or cache.size_bytes / 2
            low = 0.0 if not before else NEAR_LEVEL[0] * chosen
            found.append((cache.level, low, min(NEAR_LEVEL[1] * chosen, 0.8 * cache.size_bytes)))
            before = cache.size_bytes
        return found

    def node_of(self, cpu: int | None) -> int | None:
        """The id of the node that a CPU belongs to; None where that is unknown."""
        return next((n.id for n in self.machine.nodes if cpu in n.cpus), None)

    def private_bytes(self) -> float:
        """The largest cache that a core of the first node has to itself."""
        node = next((n for n in self.machine.nodes if n.cores), self.machine.nodes[0])
        own = [cache.size_bytes for cache in node.caches if cache.shared_by_cores == 1]
        return max(own, default=0.0)


def spread_of(measurement: Measurement) -> float:
    """Relative standard deviation of the figure: by its quartiles, as if it were normal."""
    if measurement.quartiles is None:
        return 0.01
    low, high = measurement.quartiles
    spread = (high.value - low.value) / QUARTILES / max(measurement.value.value, 1e-300)
    return max(spread, 0.005) * (NOISY if measurement.noisy else 1.0)


def size_of(measurement: Measurement) -> float | None:
    """Bytes that it is of; None where that is not said."""
    return measurement.parameters.size.value if measurement.parameters.size is not None else None


def bytes_text(size: float) -> str:
    """``1.5 MiB``."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size:g} B"

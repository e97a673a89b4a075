"""The descriptor of transactions that commit on a cluster, under snapshot isolation."""

from __future__ import annotations

from ..descriptor import Later, System
from .facts import CommitFacts
from .spec import CommitSystem

SYSTEM = System(
    name="commits",
    spec=CommitSystem,
    operations=("transaction",),
    planes={
        "flow": Later(f"{__package__}.flow", "CommitFlow"),
        "event": Later(f"{__package__}.plane", "event_plane"),
        "reference": Later(f"{__package__}.plane", "reference_plane"),
        "native": Later("numatwin.engine_native.systems.commits.plane", "native_commits"),
        "emulator": Later("numatwin.engine_native.systems.commits.emulated", "emulated_commits"),
    },
    machine_parts=("nics", "processes"),
    facts=CommitFacts,
    assumptions=Later(f"{__package__}.assumptions", "adapters_assumed"),
)

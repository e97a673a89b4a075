"""The descriptor of transactions that commit on a cluster, under snapshot isolation."""

from ..descriptor import LazyImport, System
from .facts import CommitFacts
from .spec import CommitSystem

SYSTEM = System(
    name="commits",
    spec=CommitSystem,
    operations=("transaction",),
    planes={
        "flow": LazyImport(f"{__package__}.flow", "CommitFlow"),
        "event": LazyImport(f"{__package__}.plane", "event_plane"),
        "reference": LazyImport(f"{__package__}.plane", "reference_plane"),
    },
    machine_parts=("nics", "processes"),
    facts=CommitFacts,
    shaker=LazyImport(f"{__package__}.shaking", "CommitShaker"),
    assumptions=LazyImport(f"{__package__}.assumptions", "adapters_assumed"),
)

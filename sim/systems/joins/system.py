"""The descriptor of joins and aggregations across a cluster."""

from ..descriptor import LazyImport, System
from .choice import OPERATOR
from .facts import JoinFacts
from .spec import JoinSystem

SYSTEM = System(
    name="joins",
    spec=JoinSystem,
    operations=("join", "aggregate"),
    planes={
        "flow": LazyImport(f"{__package__}.flow", "JoinFlow"),
        "event": LazyImport(f"{__package__}.plane", "event_plane"),
        "reference": LazyImport(f"{__package__}.plane", "reference_plane"),
    },
    families=(OPERATOR,),
    machine_parts=("nics",),
    facts=JoinFacts,
)

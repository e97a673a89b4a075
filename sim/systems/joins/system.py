"""The descriptor of joins and aggregations across a cluster."""

from __future__ import annotations

from ..descriptor import Later, System
from .choice import OPERATOR
from .facts import JoinFacts
from .spec import JoinSystem

SYSTEM = System(
    name="joins",
    spec=JoinSystem,
    operations=("join", "aggregate"),
    planes={
        "flow": Later(f"{__package__}.flow", "JoinFlow"),
        "event": Later(f"{__package__}.plane", "event_plane"),
        "reference": Later(f"{__package__}.plane", "reference_plane"),
        "native": Later("numatwin.engine_native.systems.joins.plane", "native_joins"),
    },
    families=(OPERATOR,),
    machine_parts=("nics",),
    facts=JoinFacts,
)

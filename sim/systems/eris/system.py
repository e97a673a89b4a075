"""The descriptor of ERIS: a data-oriented engine, where commands go to the owner of the data."""

from __future__ import annotations

from ..descriptor import Later, System
from .balancing import BALANCING
from .facts import ErisFacts
from .profile import ErisProfile
from .spec import ErisSystem

SYSTEM = System(
    name="eris",
    spec=ErisSystem,
    operations=("lookup", "upsert", "scan", "route"),
    planes={
        "flow": Later(f"{__package__}.engine", "Eris"),
        "event": Later(f"{__package__}.event_plane", "ErisEvents"),
        "reference": Later(f"{__package__}.reference.player", "eris_reference"),
        "native": Later("numatwin.engine_native.systems.eris.plane", "native_eris"),
        "emulator": Later("numatwin.engine_native.systems.eris.emulated", "emulated_eris"),
    },
    families=(BALANCING,),
    facts=ErisFacts,
    profile=ErisProfile,
    assumptions=Later(f"{__package__}.assumptions", "loops_assumed"),
)

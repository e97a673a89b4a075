"""The descriptor of ERIS: a data-oriented engine, where commands go to the owner of the data."""

from ..descriptor import LazyImport, System
from .balancing import BALANCING
from .facts import ErisFacts
from .profile import ErisProfile
from .spec import ErisSystem

SYSTEM = System(
    name="eris",
    spec=ErisSystem,
    operations=("lookup", "upsert", "scan", "route"),
    planes={
        "flow": LazyImport(f"{__package__}.engine", "Eris"),
        "event": LazyImport(f"{__package__}.event_plane", "ErisEvents"),
        "reference": LazyImport(f"{__package__}.reference.player", "eris_reference"),
    },
    families=(BALANCING,),
    facts=ErisFacts,
    profile=ErisProfile,
    assumptions=LazyImport(f"{__package__}.assumptions", "loops_assumed"),
)

"""The descriptor of tasks: queries of a column store on the workers of a machine's nodes."""

from __future__ import annotations

from ..descriptor import Later, System
from .access_path import ACCESS_PATH
from .cores import CORES
from .facts import TasksFacts
from .placer import PLACER
from .spec import TasksSystem
from .stealing import STEALING

SYSTEM = System(
    name="tasks",
    spec=TasksSystem,
    operations=("query",),
    planes={
        "flow": Later(f"{__package__}.flow", "TasksFlow"),
        "event": Later(f"{__package__}.event_plane", "event_plane"),
        "reference": Later(f"{__package__}.event_plane", "reference_plane"),
    },
    families=(PLACER, STEALING, CORES, ACCESS_PATH),
    trainers={"access-path": Later(f"{__package__}.access_training", "train_on")},
    machine_parts=("copy_engines",),
    facts=TasksFacts,
    threshold=Later(f"{__package__}.threshold", "search_threshold"),
    pictures=Later(f"{__package__}.pictures", "pictures"),
)

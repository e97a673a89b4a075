"""The descriptor of tasks: queries of a column store on the workers of a machine's nodes."""

from ..descriptor import LazyImport, System
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
        "flow": LazyImport(f"{__package__}.flow", "TasksFlow"),
        "event": LazyImport(f"{__package__}.event_plane", "event_plane"),
        "reference": LazyImport(f"{__package__}.event_plane", "reference_plane"),
    },
    families=(PLACER, STEALING, CORES, ACCESS_PATH),
    trainers={"access-path": LazyImport(f"{__package__}.access_training", "train_on")},
    machine_parts=("copy_engines",),
    facts=TasksFacts,
    threshold=LazyImport(f"{__package__}.threshold", "search_threshold"),
    pictures=LazyImport(f"{__package__}.pictures", "pictures"),
)

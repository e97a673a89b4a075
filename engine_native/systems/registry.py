"""The planes that run an engine for real, and of which systems: one line each."""

from ...sim.run.real_planes import RealPlane
from ...sim.systems.descriptor import LazyImport

_ENGINE = __package__.rpartition(".")[0]

REAL_PLANES = {
    "native": RealPlane(
        {
            "eris": LazyImport(f"{__package__}.eris.plane", "native_eris"),
            "commits": LazyImport(f"{__package__}.commits.plane", "native_commits"),
            "joins": LazyImport(f"{__package__}.joins.plane", "native_joins"),
            "tasks": LazyImport(f"{__package__}.tasks.plane", "native_tasks"),
        },
        LazyImport(_ENGINE, "run_native"),
    ),
    "emulator": RealPlane(
        {
            "eris": LazyImport(f"{__package__}.eris.emulated", "emulated_eris"),
            "commits": LazyImport(f"{__package__}.commits.emulated", "emulated_commits"),
            "tasks": LazyImport(f"{__package__}.tasks.emulated", "emulated_tasks"),
        },
        LazyImport(f"{_ENGINE}.emulated", "run_emulated"),
    ),
}

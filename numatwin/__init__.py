"""numatwin predicts how in-memory databases behave on NUMA machines and RDMA clusters.

What follows is its public interface. A name is imported when it is first asked for, so that
``import numatwin`` and ``numatwin --help`` wait for no library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__
from .sim.run import real_planes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .inputs import InputError
    from .reports import write_report
    from .reports.comparison import Comparison, compare_records
    from .sim.run.record import Record, load_record
    from .sim.run.runner import run_scenario
    from .sim.run.scenario import Scenario, load_scenario
    from .sim.studies.python import run_scenarios, study
    from .sim.studies.sweep import sweep
    from .sim.systems.eris.commands import BalancingObservation, ObjectObservation, Rebalance
    from .sim.systems.joins.choice import ChooseOperator, OperatorObservation
    from .sim.systems.tasks.commands import (
        AccessPathObservation,
        AllocateCore,
        AllowStealing,
        ChoosePath,
        CoresObservation,
        MergeTable,
        MovePart,
        PartitionTable,
        PartUse,
        PlacerObservation,
        ReleaseCore,
        ScanSeen,
        StealingObservation,
    )
    from .topologies import Machine, load_machine
    from .workloads import Workload, load_workload

__all__ = ["AccessPathObservation", "AllocateCore", "AllowStealing", "BalancingObservation"]
__all__ += ["ChooseOperator", "ChoosePath", "Comparison", "CoresObservation", "InputError"]
__all__ += ["Machine", "MergeTable", "MovePart", "ObjectObservation", "OperatorObservation"]
__all__ += ["PartUse", "PartitionTable", "PlacerObservation", "Rebalance", "Record", "ReleaseCore"]
__all__ += ["ScanSeen", "Scenario", "StealingObservation", "Workload", "__version__"]
__all__ += ["compare_records", "load_machine", "load_record", "load_scenario", "load_workload"]
__all__ += ["run_scenario", "run_scenarios", "study", "sweep", "write_report"]

_NAMES = {
    "inputs": "InputError",
    "reports": "write_report",
    "reports.comparison": "Comparison compare_records",
    "sim.run.record": "Record load_record",
    "sim.run.runner": "run_scenario",
    "sim.run.scenario": "Scenario load_scenario",
    "sim.studies.python": "run_scenarios study",
    "sim.studies.sweep": "sweep",
    "sim.systems.eris.commands": "BalancingObservation ObjectObservation Rebalance",
    "sim.systems.joins.choice": "ChooseOperator OperatorObservation",
    "sim.systems.tasks.commands": (
        "AccessPathObservation AllocateCore AllowStealing ChoosePath CoresObservation "
        "MergeTable MovePart PartUse PartitionTable PlacerObservation ReleaseCore ScanSeen "
        "StealingObservation"
    ),
    "topologies": "Machine load_machine",
    "workloads": "Workload load_workload",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # or a type checker would take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = found  # the next time it is there at once
        return found


def _real_planes() -> "Mapping[str, real_planes.RealPlane]":
    from .engine_native.systems.registry import REAL_PLANES

    return REAL_PLANES


real_planes.register(_real_planes)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

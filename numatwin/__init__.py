"""numatwin predicts how in-memory databases behave on NUMA machines and RDMA clusters.

What follows is its public interface. A name is imported when it is first asked for, so that
``import numatwin`` and ``numatwin --help`` wait for no library.
"""

from __future__ import annotations

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
    from .sim.studies.python import study
    from .sim.studies.tables import run_scenarios
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

__all__ = [
    "AccessPathObservation",
    "AllocateCore",
    "AllowStealing",
    "BalancingObservation",
    "ChooseOperator",
    "ChoosePath",
    "Comparison",
    "CoresObservation",
    "InputError",
    "Machine",
    "MergeTable",
    "MovePart",
    "ObjectObservation",
    "OperatorObservation",
    "PartUse",
    "PartitionTable",
    "PlacerObservation",
    "Rebalance",
    "Record",
    "ReleaseCore",
    "ScanSeen",
    "Scenario",
    "StealingObservation",
    "Workload",
    "__version__",
    "compare_records",
    "load_machine",
    "load_record",
    "load_scenario",
    "load_workload",
    "run_scenario",
    "run_scenarios",
    "study",
    "write_report",
]

_MODULES = {
    "AccessPathObservation": "sim.systems.tasks.commands",
    "AllocateCore": "sim.systems.tasks.commands",
    "AllowStealing": "sim.systems.tasks.commands",
    "ChooseOperator": "sim.systems.joins.choice",
    "ChoosePath": "sim.systems.tasks.commands",
    "Comparison": "reports.comparison",
    "CoresObservation": "sim.systems.tasks.commands",
    "InputError": "inputs",
    "Machine": "topologies",
    "MergeTable": "sim.systems.tasks.commands",
    "MovePart": "sim.systems.tasks.commands",
    "ObjectObservation": "sim.systems.eris.commands",
    "BalancingObservation": "sim.systems.eris.commands",
    "OperatorObservation": "sim.systems.joins.choice",
    "PartUse": "sim.systems.tasks.commands",
    "PartitionTable": "sim.systems.tasks.commands",
    "PlacerObservation": "sim.systems.tasks.commands",
    "Rebalance": "sim.systems.eris.commands",
    "Record": "sim.run.record",
    "ReleaseCore": "sim.systems.tasks.commands",
    "ScanSeen": "sim.systems.tasks.commands",
    "Scenario": "sim.run.scenario",
    "StealingObservation": "sim.systems.tasks.commands",
    "Workload": "workloads",
    "compare_records": "reports.comparison",
    "load_machine": "topologies",
    "load_record": "sim.run.record",
    "load_scenario": "sim.run.scenario",
    "load_workload": "workloads",
    "run_scenario": "sim.run.runner",
    "run_scenarios": "sim.studies.tables",
    "study": "sim.studies.python",
    "write_report": "reports",
}


if not TYPE_CHECKING:  # or a type checker would take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = found  # the next time it is there at once
        return found


def _real_planes() -> Mapping[str, real_planes.RealPlane]:
    from .engine_native.systems.registry import REAL_PLANES

    return REAL_PLANES


real_planes.register(_real_planes)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""numatwin predicts how in-memory databases behave on NUMA machines and RDMA clusters.

What follows is its public interface. A name is imported when it is first asked for, so that
``import numatwin`` and ``numatwin --help`` wait for no library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from .inputs import InputError
    from .reports import write_report
    from .reports.comparison import Comparison, compare_records
    from .sim.run.record import Record, load_record
    from .sim.run.runner import run_scenario
    from .sim.run.scenario import Scenario, load_scenario
    from .sim.studies.python import study
    from .sim.studies.tables import run_scenarios
    from .sim.systems.eris.commands import Observation, Rebalance
    from .topologies import Machine, load_machine
    from .workloads import Workload, load_workload

__all__ = [
    "Comparison",
    "InputError",
    "Machine",
    "Observation",
    "Rebalance",
    "Record",
    "Scenario",
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
    "Comparison": "reports.comparison",
    "InputError": "inputs",
    "Machine": "topologies",
    "Observation": "sim.systems.eris.commands",
    "Rebalance": "sim.systems.eris.commands",
    "Record": "sim.run.record",
    "Scenario": "sim.run.scenario",
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

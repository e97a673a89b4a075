"""Measurements from a native run's Record: times of its workers' steps, and its throughput.

The steps are fitted to. Throughput is the end result, and only predicted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...inputs import InputError
from ...sim.run.real_planes import NATIVE
from ...sim.run.record import Record, load_record
from ...sim.run.record_files import HEAD_FILE
from ...sim.run.scenario import scenario_from_settings
from ...sim.systems.registry import default_kind, system_named
from ...topologies.machine import Machine
from .observation import STEP, THROUGHPUT, Measured, Observation, Origin
from .predictions import Candidate, NativeRun, native_step_s, native_steps

NOT_PLAYED = "a step that the flow plane does not take in such a run"
# Relative standard deviation of a figure of one run alone, and the least of several.
ONE_RUN, RUNS_MIN = 0.03, 0.005


def read_native(path: Path, machine: Machine) -> Measured:
    """The Record's steps and throughputs; raises InputError where it does not fit ``machine``."""
    record = load_record(path)
    file = str(path / HEAD_FILE if path.is_dir() else path)
    check_record(record, file, machine)
    created = str(record.provenance.get("created", ""))[:10] or "date unknown"
    label = path.name if path.name != HEAD_FILE else path.parent.name
    origin = Origin(file, f"{record.scenario} ({label})", created)
    kind = str((record.settings.get("system") or {}).get("kind", default_kind()))
    engine = native_steps(kind)
    if "flow" not in system_named(kind).planes or engine is None:
        return Measured(
            origin, (), {f"{kind}: no flow plane predicts them": len(record.throughput)}
        )
    run = NativeRun(scenario_from_settings({**record.settings, "plane": "flow"}, file))
    if run.scenario.workload.change_times(run.scenario.horizon_s):
        return Measured(origin, (), {"of a workload that changes": len(record.throughput)})
    steps = _steps(record, engine.steps, run, origin)
    own = Candidate(machine, (), {})
    found = [step for step in steps if native_step_s(own, step) > 0]
    unused = {NOT_PLAYED: len(steps) - len(found)} if len(found) < len(steps) else {}
    for name, rate in record.throughput.items():
        if rate > 0:
            spread = _spread(record.replicates.get("throughput", {}).get(name))
            label, at = f"{record.scenario}: {name}", {"run": run, "operation": name}
            found.append(Observation(THROUGHPUT, label, rate, "/s", origin, spread, at))
    return Measured(origin, tuple(found), unused, frozenset())


def check_record(record: Record, file: str, machine: Machine) -> None:
    """Raises InputError for a run that was not native, or of another machine."""
    if record.plane != NATIVE:
        raise InputError(
            f"a run of the {record.plane} plane: a prediction is no measurement",
            file,
            expected="a Record of 'numatwin run --on native'",
        )
    name = record.machine.get("name")
    if name != machine.name:
        raise InputError(
            "a run of another machine",
            file,
            token=str(name),
            expected=f"one of 'numatwin run --on native --machine' with '{machine.name}'",
        )
    cores = record.machine.get("nodes", ())
    if len(cores) != len(machine.nodes):
        raise InputError(
            f"a run of {len(cores)} nodes, but {machine.name} has {len(machine.nodes)}", file
        )
    mapped = [text for text in record.warnings if "stand for" in text or "mapped onto" in text]
    if mapped:
        raise InputError(f"this run was not on {machine.name} itself: {mapped[0]}", file)


def _steps(
    record: Record, step_of: Mapping[str, str], run: NativeRun, origin: Origin
) -> list[Observation]:
    reported = record.model.get("step_ns_per_command")
    if not isinstance(reported, Mapping):
        return []
    sums: dict[str, float] = {}
    for name, spent_ns in reported.items():
        if name in step_of and isinstance(spent_ns, (int, float)) and spent_ns > 0:
            step = step_of[name]
            sums[step] = sums.get(step, 0.0) + float(spent_ns)
    spreads = [_spread(values) for values in record.replicates.get("throughput", {}).values()]
    spread = max(spreads, default=ONE_RUN)
    return [
        Observation(
            STEP, f"{record.scenario}: {step}", spent_ns * 1e-9, "s", origin, spread,
            {"run": run, "step": step},
        )
        for step, spent_ns in sums.items()
    ]  # fmt: skip


def _spread(values: Sequence[float] | None) -> float:
    """Relative standard error of the mean of the replications."""
    if values is None or len(values) < 2:
        return ONE_RUN
    found = np.asarray(values, dtype=np.float64)
    return max(float(found.std(ddof=1) / np.sqrt(len(found)) / found.mean()), RUNS_MIN)

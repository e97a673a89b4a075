"""Runs a scenario: control plane over data plane; the result is a Record."""

import logging
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._version import __version__
from ...inputs import InputError
from ...inputs.progress import Progress, part_of, silent
from ...inputs.shared_work import shared
from ...topologies.picture import picture_data
from ..control.control_plane import ControlPlane
from ..machine.costs import CostModel
from ..planes.outcome import Outcome
from ..planes.plane import FlowingPlane, Maker
from ..systems.registry import system_of
from .assumptions import assumptions_in, described_assumptions
from .real_planes import NATIVE, REAL, real_planes
from .record import Record
from .recovery import recovery_notes
from .scenario import Scenario, load_scenario
from .what_if import FLOW, costs_of, flow_plane, predictor_of

if TYPE_CHECKING:
    from .combined import Combined
    from .replications import Replication, WarmUp


_LOGGER = logging.getLogger("numatwin")
FIGURES = (
    "throughput", "operations", "bandwidth_Bps", "resources", "latency_ns", "energy_J", "model",
    "series",
)  # fmt: skip


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run of several replications; ``record`` is of those that were finished.

    ``lost``: why it stopped, where it was not Ctrl-C.
    """

    def __init__(self, record: Record, lost: str | None = None) -> None:
        super().__init__()
        self.record, self.lost = record, lost


def run_scenario(
    scenario: Scenario | str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    loading: Progress | None = None,
    effects: bool = False,
    machine_scale: float | None = None,
) -> Record:
    """Run a scenario on its plane.

    Parameters
    ----------
    scenario : Scenario, str or Path
        A loaded scenario, or the name or path of one.
    workers : int, optional
        Processes that replications of a random plane run on, one a processor by default; the
        Record does not depend on it.
    progress, loading : callable, optional
        Called with the part of the work that is done, from 0 to 1; ``loading`` before that, on a
        plane that loads data.
    effects : bool
        Whether each assumption comes with what it decides of the answer: two more predictions
        each, of milliseconds on the flow plane.
    machine_scale : float, optional
        On plane ``emulator``: the part of the machine's processors, memory and caches that its
        guest has; as much as fits by default.

    Returns
    -------
    Record

    Raises
    ------
    InputError
        If the scenario cannot be run, or a policy of the user's fails.
    RunInterrupted
        On Ctrl-C after the first of several replications; ``record`` has those that finished.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    _LOGGER.info(
        "running %s (%s) on plane %s, seed %d",
        scenario.name,
        scenario.hash[:12],
        scenario.plane,
        scenario.seed,
    )
    try:
        record = _run(scenario, workers, machine_scale, progress or silent, loading)
    except InputError as failure:
        if failure.place == ("workload",) and failure.file is None:
            failure.file, failure.line, failure.column = scenario.workload_at
        raise
    _LOGGER.info("ran %s in %.3g s", scenario.name, record.provenance.get("wall_s") or 0.0)
    return with_effects(record, scenario) if effects else record


def bare_record(
    scenario: Scenario, *, gains: bool = False, progress: Progress = silent, workers: int | None = 1
) -> Record:
    """The Record of ``scenario`` without what studies do not read of each run: the machine's
    picture, assumptions, and, unless ``gains``, what more of each
    resource would bring. All else is as ``run_scenario`` has it.
    """
    if scenario.plane in REAL:
        raise InputError(
            f"studies do not run on plane {scenario.plane}", expected="a simulated plane"
        )
    return _simulated(scenario, workers, progress, whole=False, gains=gains)


def with_effects(record: Record, scenario: Scenario) -> Record:
    """The Record of a run of ``scenario`` with what each assumption decides of the answer."""
    with shared():  # variants have most of the machine in common
        found = assumptions_in(scenario, costs_of(scenario))
        rows = described_assumptions(found, predictor_of(scenario))
    return replace(record, assumptions=rows)


def _run(
    scenario: Scenario,
    workers: int | None,
    machine_scale: float | None,
    progress: Progress,
    loading: Progress | None,
) -> Record:
    if scenario.plane in REAL:
        run = real_planes()[scenario.plane].run.load()
        record: Record = run(scenario, machine_scale, progress=progress, loading=loading)
        return record
    return _simulated(scenario, workers, progress)


def _simulated(
    scenario: Scenario,
    workers: int | None,
    progress: Progress,
    *,
    whole: bool = True,
    gains: bool = True,
) -> Record:
    if scenario.plane != FLOW:
        return run_random(maker_of(scenario), scenario, workers, progress, whole=whole)
    began = time.perf_counter()
    control, plane = _flows(scenario, progress)
    outcome = plane.outcome(with_gains=gains)
    events = sorted([*control.events, *outcome.events], key=lambda event: event.time_s)
    return _recorded(
        scenario,
        outcome,
        lambda: plane.costs,
        scenario.system.notes(scenario.machine, scenario.workload),
        whole,
        why=outcome.why,
        control_events=tuple(events),
        provenance=provenance(time.perf_counter() - began, outcome.steps),
    )


def _recorded(
    scenario: Scenario,
    found: "Outcome | Combined",
    costs: Callable[[], CostModel | None],
    notes: Iterable[str],
    whole: bool,
    **own: Any,
) -> Record:
    """The Record of what was ``found``; ``own``: fields that each kind of run has in its way."""
    misfit = scenario.machine.description.engine_misfit
    doubtful = [] if misfit is None or misfit.warning is None else [f"engine: {misfit.warning}"]
    record = Record(
        **identity(scenario, whole),
        **{name: getattr(found, name) for name in FIGURES},
        warnings=(*doubtful, *found.warnings, *notes),
        **own,
    )
    if not whole:
        return record
    return replace(
        record,
        warnings=(*record.warnings, *recovery_notes(record)),
        assumptions=described_assumptions(assumptions_in(scenario, costs()), None),
    )


def _flows(scenario: Scenario, progress: Progress) -> tuple[ControlPlane, FlowingPlane]:
    """The flow plane at the end of the scenario, and the control plane that steered it."""
    plane = flow_plane(scenario)
    control = ControlPlane(scenario, plane)
    control.run(progress)
    return control, plane


def outcome_of_flows(scenario: Scenario) -> Outcome:
    """What the flow plane makes of the scenario."""
    return _flows(scenario, silent)[1].outcome()


def maker_of(scenario: Scenario) -> Maker:
    """What makes the plane of a scenario that draws at random, for one replication."""
    make: Maker = system_of(scenario.system).model(scenario.plane)
    return make


def run_random(
    make: Maker,
    scenario: Scenario,
    workers: int | None = None,
    progress: Progress | None = None,
    warm_up_s: float | None = None,
    whole: bool = True,
) -> Record:
    """The Record of ``scenario`` on planes that ``make`` makes; see ``run_scenario``.

    ``warm_up_s`` stands in for a pilot run; what the scenario states comes before it. ``whole``:
    with all that ``bare_record`` leaves out.
    """
    # With SciPy, which flows do without.
    from .replications import WarmUp, WorkerLost, replicate, warm_up_of

    began, plan, report = time.perf_counter(), scenario.statistics, progress or silent
    done: list[Replication] = []
    try:
        known = plan.warm_up_s is not None or warm_up_s is not None
        # A pilot run takes as long as a replication.
        pilot = 0.0 if known else 1.0 / (1.0 + plan.replications)
        if plan.warm_up_s is None and warm_up_s is not None:
            warm_up = WarmUp(warm_up_s)
        else:
            warm_up = warm_up_of(make, scenario, part_of(report, 0.0, pilot))
        if warm_up.notes:  # no number of replications makes it sure
            plan = plan.model_copy(update={"half_width": None})
            scenario = replace(scenario, statistics=plan)
        report = part_of(report, pilot, 1.0)
        for replication in replicate(make, scenario, warm_up, workers, report):
            done.append(replication)  # noqa: PERF402 (one by one: those before Ctrl-C are kept)
    except (KeyboardInterrupt, WorkerLost) as stopped:
        if not done:
            raise
        wall_s = time.perf_counter() - began
        lost = stopped.message if isinstance(stopped, WorkerLost) else None
        record = _random_record(scenario, warm_up, done, wall_s, whole)
        raise RunInterrupted(record, lost) from None
    return _random_record(scenario, warm_up, done, time.perf_counter() - began, whole)


def _random_record(
    scenario: Scenario, warm_up: "WarmUp", done: "list[Replication]", wall_s: float, whole: bool
) -> Record:
    from .combined import Combined

    plan = scenario.statistics
    settled = not warm_up.notes
    together = Combined(done, plan.confidence, warm_up.warm_up_s, settled)
    steps = warm_up.steps + sum(replication.outcome.steps for replication in done)
    played_s = warm_up.wall_s + sum(replication.wall_s for replication in done)
    # Where time is real, what is done in a second is what was measured: no speed of a simulator.
    native = scenario.plane == NATIVE
    rate = {} if native else {"events_per_s": steps / max(played_s, 1e-9)}
    return _recorded(
        scenario,
        together,
        lambda: costs_of(scenario),
        [*warm_up.notes, *_notes(scenario, done)],
        whole,
        why=done[0].outcome.why,
        control_events=done[0].events,
        confidence=together.confidence,
        provenance=provenance(wall_s, steps) | rate,
        replications=len(done),
        warm_up_s=warm_up.warm_up_s,
        replicates=together.replicates,
    )


def _notes(scenario: Scenario, done: "list[Replication]") -> list[str]:
    """What was asked for and not reached."""
    plan = scenario.statistics
    notes = [scenario.shortened] if scenario.shortened else []
    notes += scenario.system.notes(scenario.machine, scenario.workload)
    if len(done) < plan.replications:
        return [*notes, f"interrupted: {len(done)} of {plan.replications} replications"]
    if plan.half_width is None:
        return notes
    from .replications import relative_half_width

    reached = relative_half_width(done, plan.confidence)
    if reached <= plan.half_width:
        return notes
    return [
        *notes,
        f"throughput is known to ±{100 * reached:.2g}% after {len(done)} replications, "
        f"not to the ±{100 * plan.half_width:.2g}% asked for",
    ]


def identity(scenario: Scenario, whole: bool) -> dict[str, Any]:
    """The fields of a Record that say what was run."""
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "scenario_hash": scenario.hash,
        "plane": scenario.plane,
        "policy": scenario.policy_name,
        "policies": dict(scenario.policy_names),
        "seed": scenario.seed,
        "horizon_s": scenario.horizon_s,
        "machine": picture_data(scenario.machine) if whole else {"name": scenario.machine.name},
        "settings": scenario.settings,
    }


def provenance(wall_s: float, events: int) -> dict[str, Any]:
    """How long a run took, of how many events, with which version, when and where."""
    return {
        "wall_s": wall_s,
        "events": events,
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": dict(_host()),
    }


@cache
def _host() -> Mapping[str, Any]:
    """The facts of this host that a Record has."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }

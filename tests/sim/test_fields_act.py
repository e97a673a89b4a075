"""Every field of machine, workload and scenario is read by a model, or listed with a reason.

Each case is a scenario and one setting: with and without it something that is predicted differs.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from schema_fields import fields_of

from numatwin.sim.run.replications import play
from numatwin.sim.run.runner import maker_of
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.run.scenario_description import description_of
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.registry import system_named
from numatwin.topologies.schema import MachineDescription
from numatwin.workloads.schema import WorkloadDescription

Base = tuple[str, ...]
"""A scenario and its settings; ``machine=M`` and ``plane=P`` among them are options."""

ROOT = Path(__file__).parents[2]
TOLD: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("fields_act.yaml").read_text())
CASES: dict[str, tuple[Base, str]] = {
    field: ((*TOLD["bases"][base], *more), change.replace("docs/", f"{ROOT}/docs/"))
    for field, (base, *more, change) in TOLD["cases"].items()
}


def scenario_of(base: Base, *more: str) -> Scenario:
    name, *settings = base
    options: dict[str, str | None] = {"machine": None, "plane": None, "policy": None}
    for option in options:
        for setting in [one for one in settings if one.startswith(f"{option}=")]:
            settings.remove(setting)
            options[option] = setting.partition("=")[2]
    return load_scenario(
        name,
        settings=(*settings, *more),
        machine=options["machine"],
        plane=options["plane"],
        policy=options["policy"],
    )


def predicted(scenario: Scenario) -> str:
    """All that a short run says; of a host's processes, what the model is given."""
    if getattr(scenario.system, "layout", "") == "host":
        shown = repr(commit_parameters(scenario)[0])
        assert "object at" not in shown  # an address, which differs whatever the fields are
        return shown
    if scenario.plane != "flow":
        outcome = play(maker_of(scenario), scenario, 2, 0.0).outcome
        means = {name: found.count and found.mean for name, found in outcome.latencies_ns.items()}
        return repr((outcome.throughput, outcome.resources, outcome.energy_J, means))
    if scenario.policies or len(scenario.workload.phases) > 1:
        from numatwin.sim.run.runner import outcome_of_flows

        outcome = outcome_of_flows(scenario)
    else:
        plane = flow_plane(scenario)
        plane.advance(1e-3)
        outcome = plane.outcome(with_gains=False)
    return repr((outcome.throughput, outcome.resources, outcome.energy_J, outcome.events))


@pytest.mark.parametrize("field", CASES)
def test_changing_it_changes_a_prediction(field: str) -> None:
    base, change = CASES[field]
    assert predicted(scenario_of(base, change)) != predicted_before(base)


@cache
def predicted_before(base: Base) -> str:
    """Of a scenario to which several cases belong, once."""
    return predicted(scenario_of(base))


# What a line costs on its way is one thing for all systems; of event planes see
# test_one_hardware.py.
REMOTE: Base = ("eris-fig12-scan", "system.placement=interleaved", "machine=xeon-4s-ivb")
SYSTEMS: dict[str, Base] = {
    "eris": REMOTE,
    "tasks": ("hana-steal-worst", "policies.stealing=always"),
}
OF_LINES = (
    "machine.coherence.directory_in_memory=false",
    "machine.coherence.completion=true",
    "machine.coherence.replacement_probes=true",
    "machine.coherence={protocol: snoop, snoop_domain: machine}",
    "machine.link_types.qpi.data_header=30 B",
    "machine.link_types.qpi.request=40 B",
    "machine.link_types.qpi.bandwidth=7 GB/s",
)


@pytest.mark.parametrize("change", OF_LINES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_what_lines_cost_counts_in_all_systems(system: str, change: str) -> None:
    base = SYSTEMS[system]
    assert predicted(scenario_of(base, change)) != predicted_before(base)


def test_every_field_has_a_case_or_a_reason() -> None:
    schemas: list[type[BaseModel]] = [
        MachineDescription,
        WorkloadDescription,
        *(description_of(system_named(name)) for name in ("eris", "commits")),
    ]
    reasons = TOLD["descriptive"] | TOLD["structure"]
    listed = reasons.keys() | set(TOLD["of-tasks"])
    missing = set()
    for kind, name in set().union(*map(fields_of, schemas)):
        field = f"{kind}.{name}"
        assert (field in CASES) + (field in listed) + (kind in listed) <= 1, f"{field}: twice"
        if not (field in CASES or field in listed or kind in listed):
            missing.add(field)
    assert not missing
    assert all(reasons.values())

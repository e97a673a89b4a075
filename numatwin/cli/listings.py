"""What is bundled: scenarios, workloads, policies by name, and their files to start from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ..inputs import InputError, write_text_atomically
from .files import as_start, check_file
from .options import Json, ScenarioName, argument, bundled_workloads, option
from .output import present, whole_table


def list_scenarios(json: Json = False) -> None:
    """List the bundled scenarios, each with its default machine."""
    from ..sim.run.scenario import load_scenario, scenario_names

    loaded = {name: load_scenario(name) for name in scenario_names()}
    rows = [(name, scenario.title, scenario.machine.name) for name, scenario in loaded.items()]
    _list("scenarios", ("name", "title", "machine"), ("scenario", "what", "machine"), rows, json)


def show_scenario(scenario: ScenarioName) -> None:
    """Print a scenario's file, as a start for your own."""
    from ..sim.run.scenario import CATALOGUE, load_scenario

    load_scenario(scenario)
    print(as_start(CATALOGUE.path(scenario)), end="")


def list_workloads(json: Json = False) -> None:
    """List the bundled workloads."""
    from ..workloads import load_workload, workload_names

    loaded = {name: load_workload(name) for name in workload_names()}
    rows = [(name, workload.description.title) for name, workload in loaded.items()]
    _list("workloads", ("name", "title"), ("workload", "what"), rows, json)


def show_workload(
    workload: Annotated[
        str, argument("WORKLOAD", "A bundled workload.", autocompletion=bundled_workloads)
    ],
) -> None:
    """Print a workload's file, as a start for your own."""
    from ..workloads import load_workload
    from ..workloads.catalogue import CATALOGUE

    load_workload(workload)
    print(as_start(CATALOGUE.path(workload)), end="")


def list_policies(json: Json = False) -> None:
    """List the policies, by what they control."""
    from ..sim.systems.registry import systems

    rows = [
        (name, title, family.name, system.name)
        for system in systems()
        for family in system.families
        for name, title in family.titles.items()
    ]
    keys = ("name", "title", "family", "system")
    _list("policies", keys, ("policy", "what", "family", "system"), rows, json)


def _list(
    what: str,
    keys: Sequence[str],
    heads: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    json: bool,
) -> None:
    """``rows`` as a table below ``heads``, or as objects with ``keys``."""
    plain = [dict(zip(keys, row, strict=True)) for row in rows]
    present(json, lambda: {what: plain}, [whole_table(heads, rows, left=len(heads))])


def draw_policy(
    policy: Annotated[
        str, argument("FAMILY=POLICY", "A policy that has a picture, such as cores=adaptive.")
    ],
    out: Annotated[Path, option("FILE", "The picture to write, an .svg file.")],
) -> None:
    """Draw a policy: the Petri net of an allocator of cores, its places and guards."""
    from ..sim.systems.registry import systems

    check_file(out, ".svg")
    family_name, _, name = policy.rpartition("=")
    drawn = {
        f"{family.name}={title}": picture
        for system in systems()
        for family in system.families
        for title in family.titles
        if (picture := family.draw(title)) is not None
    }
    found = [
        key for key in drawn if key == policy or (not family_name and key.endswith(f"={name}"))
    ]
    if len(found) != 1:
        raise InputError(
            "no policy with a picture", token=policy, expected=f"one of {', '.join(drawn)}"
        )
    print(write_text_atomically(out, drawn[found[0]]))

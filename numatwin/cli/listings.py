"""What is bundled: scenarios, workloads, policies by name, and their files to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .files import as_start, check_ending
from .options import Json, bundled_scenarios, bundled_workloads
from .output import console, print_json, print_whole, table


def list_scenarios(json: Json = False) -> None:
    """List the bundled scenarios, each with its default machine."""
    from ..sim.run.scenario import load_scenario, scenario_names

    loaded = {name: load_scenario(name) for name in scenario_names()}
    rows = [(name, scenario.title, scenario.machine.name) for name, scenario in loaded.items()]
    if json:
        keys = ("name", "title", "machine")
        print_json({"scenarios": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    print_whole(console(), table(("scenario", "what", "machine"), rows, left=3))


def show_scenario(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="A bundled scenario.",
            autocompletion=bundled_scenarios,
            show_default=False,
        ),
    ],
) -> None:
    """Print a scenario's file, as a start for your own."""
    from ..sim.run.scenario import CATALOGUE, load_scenario

    load_scenario(scenario)
    print(as_start(CATALOGUE.path(scenario)), end="")


def list_workloads(json: Json = False) -> None:
    """List the bundled workloads."""
    from ..workloads import load_workload, workload_names

    loaded = {name: load_workload(name) for name in workload_names()}
    titles = {name: workload.description.title for name, workload in loaded.items()}
    _print_named(titles, "workload", json)


def show_workload(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD",
            help="A bundled workload.",
            autocompletion=bundled_workloads,
            show_default=False,
        ),
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
        {"name": name, "title": title, "family": family.name, "system": system.name}
        for system in systems()
        for family in system.families
        for name, title in family.titles.items()
    ]
    if json:
        print_json({"policies": rows})
        return
    columns = ("policy", "what", "family", "system")
    cells = ([row["name"], row["title"], row["family"], row["system"]] for row in rows)
    print_whole(console(), table(columns, cells, left=4))


def draw_policy(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY=POLICY",
            help="A policy that has a picture, such as cores=adaptive.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The picture to write, an .svg file.", show_default=False
        ),
    ],
) -> None:
    """Draw a policy: the Petri net of an allocator of cores, its places and guards."""
    from ..inputs import InputError
    from ..inputs.atomic import write_text_atomically
    from ..sim.systems.registry import systems

    check_ending(out, ".svg")
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


def _print_named(titles: dict[str, str], noun: str, json: bool) -> None:
    if json:
        print_json({f"{noun}s": [{"name": name, "title": title} for name, title in titles.items()]})
        return
    print_whole(console(), table((noun, "what"), titles.items(), left=2))

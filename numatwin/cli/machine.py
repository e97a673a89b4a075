"""``numatwin machine``: list, show, import and draw machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .files import as_start, check_ending
from .machine_build import Cores
from .options import Json, bundled_machines
from .output import binary_size, console, print_json, table

MachineArgument = Annotated[
    str,
    typer.Argument(
        metavar="MACHINE",
        help="A bundled machine, or a machine file (.yaml).",
        autocompletion=bundled_machines,
        show_default=False,
    ),
]


def list_(json: Json = False) -> None:
    """List the bundled machines."""
    from ..topologies import load_machine, machine_names

    machines = [load_machine(name) for name in machine_names()]
    if json:
        rows = [
            {
                "name": machine.name,
                "title": machine.description.title,
                "nodes": len(machine.nodes),
                "cores": sum(node.cores for node in machine.nodes),
                "memory_bytes": int(sum(node.memory_bytes for node in machine.nodes)),
            }
            for machine in machines
        ]
        print_json({"machines": rows})
        return
    console().print(
        table(
            ("machine", "what", "nodes", "cores", "memory"),
            (
                (
                    machine.name,
                    machine.description.title,
                    str(len(machine.nodes)),
                    str(sum(node.cores for node in machine.nodes)),
                    binary_size(sum(node.memory_bytes for node in machine.nodes)),
                )
                for machine in machines
            ),
            left=2,
        )
    )


def show(
    machine: MachineArgument,
    matrices: Annotated[
        bool, typer.Option("--matrices", help="Print the pair tables, even if they are large.")
    ] = False,
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Print the machine file, as a start for your own.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a machine's facts: nodes, links, distances, routes."""
    from ..sim.systems.registry import check_engines
    from ..topologies import load_machine

    if yaml and json:
        raise typer.BadParameter("expected at most one of --yaml and --json")
    loaded = load_machine(machine)
    check_engines(loaded)
    if json:
        print_json(loaded.as_json())
    elif yaml:
        from ..topologies.catalogue import CATALOGUE

        print(as_start(CATALOGUE.path(machine)), end="")
    else:
        from .machine_facts import print_machine

        print_machine(loaded, console(), matrices=matrices)


def import_(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="hwloc XML, a libvirt domain, a saved sysfs tree (folder or tar archive), the "
            "output of 'numactl -H', 'lscpu', 'likwid-topology' or MLC; without it, this host.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a machine file (.yaml) here; by default it is printed.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its name; by default that of FILE.", show_default=False),
    ] = None,
    processor: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model of its processors, such as 'Xeon Gold 6148', where FILE does not "
            "tell it.",
            show_default=False,
        ),
    ] = None,
    cores: Cores = None,
    catalogue: Annotated[
        bool,
        typer.Option(
            "--catalogue/--no-catalogue",
            help="Complete missing facts from the catalogue, marked as such.",
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Make a machine file from the output of a machine's tools.

    Missing facts (bandwidths, latencies, links) come from a catalogue of processors, with
    ranges and marked as doubtful: replace them by measurements where you can.
    """
    from ..inputs import write_text_atomically
    from ..topologies import build_machine
    from ..topologies.export import machine_yaml
    from ..topologies.facts import Completed, complete
    from ..topologies.importers import import_machine

    if out is not None:
        check_ending(out, ".yaml", ".yml")
    if cores is not None and processor is None:
        raise typer.BadParameter("--cores needs --processor")
    if processor is not None and not catalogue:
        raise typer.BadParameter("expected at most one of --processor and --no-catalogue")
    description = import_machine(file, name=name)
    left_out = description.notes
    done = complete(description, processor, cores) if catalogue else Completed(description, (), ())
    description = done.description
    machine = build_machine(description)
    # The lines are also comments in the file.
    lines = [*done.taken, *_how_to_learn(done.unknown)]
    text = "".join(f"# {line}\n" for line in lines) + machine_yaml(description)
    if out is not None:
        write_text_atomically(out, text)
    if json:
        print_json(machine.as_json())
    elif out is None:
        print(text, end="")
    else:
        count, cores = len(machine.nodes), sum(node.cores for node in machine.nodes)
        memory = binary_size(sum(node.memory_bytes for node in machine.nodes))
        print(
            f"{out}: {count} node{'s' if count > 1 else ''}, "
            f"{f'{cores} cores' if cores else 'cores unknown'}, "
            f"{'memory unknown' if memory == '–' else memory}"
        )
        for line in (*left_out, *lines):
            print(line)
        print(f"'numatwin machine show {out}' shows it")


def _how_to_learn(unknown: tuple[str, ...]) -> list[str]:
    """The facts that a file lacks, and how to obtain them."""
    lines = [f"Still unknown: {', '.join(unknown)}."] if unknown else []
    if any(not what.startswith(("measured", "which processor")) for what in unknown):
        lines.append("Cores, caches and sizes: import the output of 'lstopo mine.xml' there.")
    if any(what.startswith("measured") for what in unknown):
        lines.append(
            "To measure: 'numatwin machine measure' on the machine itself, or the output of Intel "
            "MLC there ('mlc > mlc.txt', then 'numatwin calibrate')."
        )
    return lines


def draw(
    machine: MachineArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The picture to write: .html, .svg or .png, by its extension.",
            show_default=False,
        ),
    ],
) -> None:
    """Draw a machine: sockets, hubs, links by bandwidth."""
    from ..topologies import load_machine
    from ..topologies.draw import write_picture

    write_picture(load_machine(machine), out)
    print(out)

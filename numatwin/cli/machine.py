"""``numatwin machine``: list, show, import and draw machines."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..inputs import write_text_atomically
from . import output
from .files import as_start, check_file
from .machine_build import Cores, Modules
from .options import Json, argument, bundled_machines, flag, grouped, option
from .output import binary_size, present, print_json, table

if TYPE_CHECKING:
    from ..topologies import Machine

MachineArgument = Annotated[
    str,
    argument(
        "MACHINE", "A bundled machine, or a machine file (.yaml).", autocompletion=bundled_machines
    ),
]


def list_(json: Json = False) -> None:
    """List the bundled machines."""
    from ..topologies import load_machine, machine_names

    machines = [load_machine(name) for name in machine_names()]
    keys = ("name", "title", "nodes", "cores", "memory_bytes")
    rows = [
        (
            machine.name,
            machine.description.title,
            len(machine.nodes),
            sum(node.cores for node in machine.nodes),
            int(sum(node.memory_bytes for node in machine.nodes)),
        )
        for machine in machines
    ]
    plain = [dict(zip(keys, row, strict=True)) for row in rows]
    cells = ((name, title, *map(str, of), binary_size(size)) for name, title, *of, size in rows)
    shown = table(("machine", "what", "nodes", "cores", "memory"), cells, left=2)
    present(json, lambda: {"machines": plain}, [shown])


def show(
    machine: MachineArgument,
    matrices: Annotated[
        bool, flag("--matrices", "Print the pair tables, even if they are large.")
    ] = False,
    yaml: Annotated[
        bool, flag("--yaml", "Print the machine file, as a start for your own.")
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
        from .machine_facts import machine_parts

        output.show(machine_parts(loaded, matrices=matrices))


@dataclass(frozen=True)
class Completion:
    """What a machine file gets besides what was imported, and where it goes."""

    out: Annotated[
        Path | None, option("FILE", "Write a machine file (.yaml) here; by default it is printed.")
    ] = None
    name: Annotated[str | None, option("NAME", "Its name; by default that of FILE.")] = None
    processor: Annotated[
        str | None,
        option(
            "MODEL",
            "The model of its processors, such as 'Xeon Gold 6148', where FILE does not tell it.",
        ),
    ] = None
    cores: Cores = None
    modules: Modules = None
    catalogue: Annotated[
        bool,
        typer.Option(
            "--catalogue/--no-catalogue",
            help="Complete missing facts from the catalogue, marked as such.",
        ),
    ] = True
    json: Json = False

    def check(self) -> None:
        """Refuses what does not go together, and a file that cannot be written."""
        check_file(self.out, ".yaml", ".yml")
        if self.cores is not None and self.processor is None:
            raise typer.BadParameter("--cores needs --processor")
        for name, said in (("--processor", self.processor), ("--modules", self.modules)):
            if said is not None and not self.catalogue:
                raise typer.BadParameter(f"expected at most one of {name} and --no-catalogue")


@grouped
def import_(
    file: Annotated[
        Path | None,
        argument(
            "FILE",
            "hwloc XML, a libvirt domain, a saved sysfs tree (folder or tar archive), the output "
            "of 'numactl -H', 'lscpu', 'likwid-topology' or MLC; without it, this host.",
        ),
    ] = None,
    of: Completion = Completion(),
) -> None:
    """Make a machine file from the output of a machine's tools.

    Missing facts (bandwidths, latencies, links) come from a catalogue of processors, with
    ranges and marked as doubtful: replace them by measurements where you can.
    """
    from ..topologies import build_machine
    from ..topologies.export import machine_yaml
    from ..topologies.facts import Completed, complete
    from ..topologies.importers import import_machine

    of.check()
    found = import_machine(file, name=of.name)
    none = Completed(found, (), ())
    done = complete(found, of.processor, of.cores, of.modules) if of.catalogue else none
    machine = build_machine(done.description)
    # The lines are also comments in the file.
    lines = [*done.taken, *_how_to_learn(done.unknown)]
    text = "".join(f"# {line}\n" for line in lines) + machine_yaml(done.description)
    if of.out is not None:
        write_text_atomically(of.out, text)
    if of.out is None and not of.json:
        print(text, end="")
    else:
        said = [f"{of.out}: {_size(machine)}", *found.notes, *lines, _TO_SHOW.format(of.out)]
        present(of.json, machine.as_json, said)


_TO_SHOW = "'numatwin machine show {}' shows it"


def _size(machine: "Machine") -> str:
    """``8 nodes, 64 cores, 128 GiB``, as far as it is known."""
    count, cores = len(machine.nodes), sum(node.cores for node in machine.nodes)
    memory = binary_size(sum(node.memory_bytes for node in machine.nodes))
    return ", ".join(
        (
            f"{count} node{'s' if count > 1 else ''}",
            f"{cores} cores" if cores else "cores unknown",
            "memory unknown" if memory == "–" else memory,
        )
    )


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
    out: Annotated[Path, option("FILE", "The picture to write: .html or .svg, by its extension.")],
) -> None:
    """Draw a machine: sockets, hubs, links by bandwidth."""
    from ..topologies import load_machine
    from ..topologies.draw import write_picture

    write_picture(load_machine(machine), out)
    print(out)

"""``numatwin machine threshold``: the throughput above which stealing a task does not pay off."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from ..inputs import write_text_atomically
from .files import check_file
from .machine import MachineArgument
from .options import Json, Simulated, option
from .output import Part, number, percent, present, progress_bar, table


def find_threshold(
    machine: MachineArgument,
    on: Annotated[Simulated, typer.Option(help="The data plane to run on.")] = Simulated.flow,
    backlog: Annotated[
        bool,
        typer.Option(
            help="More tasks than workers, so that some always wait; with --no-backlog, as many "
            "tasks as workers, and any worker takes any task (--on event only)."
        ),
    ] = True,
    out: Annotated[
        Path | None,
        option(
            "FILE",
            "Write the machine file with the threshold in it (.yaml); MACHINE itself to have it "
            "there, without its comments.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find a machine's stealing threshold.

    Idle nodes should steal tasks that are bound by the CPU; those bound by memory run no faster
    elsewhere and take the interconnect from others. Plays sums of v^n with vectors on half of the
    nodes, with and without stealing. The threshold is the memory throughput of a task at which both
    are equally fast; the policy 'stealing: adaptive' applies it.
    """
    from ..sim.systems.registry import threshold_search
    from ..topologies import load_machine
    from ..topologies.export import machine_yaml

    check_file(out, ".yaml", ".yml")
    loaded = load_machine(machine)
    with progress_bar("searching") as progress:
        found = threshold_search()(loaded, on.value, progress, backlog=backlog)
    if out is not None:
        write_text_atomically(out, machine_yaml(found.description))
    files = [] if out is None else [f"Machine: {out}"]
    present(json, lambda: found.plain, chain(_parts(found), files))


def _parts(found: Any) -> Iterator[Part]:
    rows = [
        (
            str(point.power),
            number(point.task_Bps, "B/s"),
            number(point.alone_Bps, "B/s"),
            number(point.stolen_Bps, "B/s"),
            percent(point.gain),
        )
        for point in found.crossings[0].points
    ]
    yield table(("n", "of a task", "without stealing", "with stealing", "gain"), rows, left=0)
    value, low, high = (
        number(one, "B/s")
        for one in (found.threshold.value, found.threshold.low, found.threshold.high)
    )
    yield f"\nThreshold: {value} a task, between {low} and {high}"

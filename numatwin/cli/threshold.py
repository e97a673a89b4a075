"""``numatwin machine threshold``: the throughput above which stealing a task does not pay off."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .files import check_ending
from .long_work import announce, long_time
from .machine import MachineArgument
from .options import Json
from .output import console, number, percent, print_json, progress_bar, table


class Plane(StrEnum):
    """Where the micro-benchmark is played."""

    FLOW = "flow"
    EVENT = "event"


def find_threshold(
    machine: MachineArgument,
    on: Annotated[Plane, typer.Option(help="The data plane to run on.")] = Plane.FLOW,
    backlog: Annotated[
        bool,
        typer.Option(
            help="More tasks than workers, so that some always wait; with --no-backlog, as many "
            "tasks as workers, and any worker takes any task (--on event only)."
        ),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the machine file with the threshold in it (.yaml); MACHINE itself to "
            "have it there, without its comments.",
            show_default=False,
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
    from ..inputs.atomic import check_writable, write_text_atomically
    from ..sim.systems.registry import threshold_search
    from ..topologies import load_machine
    from ..topologies.export import machine_yaml

    if out is not None:
        check_ending(out, ".yaml", ".yml")
        check_writable(out)
    loaded = load_machine(machine)
    with progress_bar("searching") as progress:
        found = threshold_search()(loaded, on.value, progress, backlog=backlog, before=_announce)
    if out is not None:
        write_text_atomically(out, machine_yaml(found.description))
    if json:
        print_json(found.plain)
        return
    to = console()
    crossing = found.crossings[0]
    rows = [
        (
            str(point.power),
            number(point.task_Bps, "B/s"),
            number(point.alone_Bps, "B/s"),
            number(point.stolen_Bps, "B/s"),
            percent(point.gain),
        )
        for point in crossing.points
    ]
    to.print(table(("n", "of a task", "without stealing", "with stealing", "gain"), rows, left=0))
    low, high = found.threshold.low, found.threshold.high
    to.print(
        f"\nThreshold: {number(found.threshold.value, 'B/s')} a task, between "
        f"{number(low, 'B/s')} and {number(high, 'B/s')}"
    )
    if out is not None:
        to.print(f"Machine: {out}")


def _announce(runs: int, each_s: float) -> None:
    work = f"{runs} runs, {long_time(each_s)} each, or fewer"
    announce(runs * each_s, work, "on the flow plane it takes seconds", "at most")

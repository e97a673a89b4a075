"""``numatwin run``: one scenario, played; its result as a table, a record and a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import console, print_json

if TYPE_CHECKING:
    from ..sim.record import Record

REPORT_FILE = "report.html"


class Plane(StrEnum):
    """The data planes: who does the work between two control events."""

    flow = "flow"
    event = "event"
    reference = "reference"
    native = "native"


def run(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="A bundled scenario, or a scenario file (.yaml).",
            show_default=False,
        ),
    ],
    machine: Annotated[
        str | None,
        typer.Option(metavar="M", help="Another machine: a name or a file.", show_default=False),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="W", help="Another workload: a name or a file.", show_default=False),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="P", help="Another load-balancing policy.", show_default=False),
    ] = None,
    on: Annotated[
        Plane | None, typer.Option(help="Another data plane to run on.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Another seed.", show_default=False),
    ] = None,
    replications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Runs with independent random draws.")
    ] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Another value for any field; may be given again.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where record and report go: else out/SCENARIO[-POLICY], nowhere with --json.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Run a scenario: how fast it goes, what limits it."""
    from ..sim.scenario import load_scenario

    loaded = load_scenario(
        scenario,
        machine=machine,
        workload=workload,
        policy=policy,
        plane=on.value if on else None,
        seed=seed,
        settings=set_ or [],
    )
    if replications > 1 and loaded.plane == "flow":
        print(
            f"numatwin: the flow plane computes expected rates and draws nothing at random: "
            f"{replications} replications would be equal, so it runs one",
            file=sys.stderr,
        )
    from ..sim.run import run_scenario

    with _progress() as progress:
        record = run_scenario(loaded, progress=progress)
    if out is None and not json:
        out = default_folder(record, with_policy=policy is not None)
    if out is not None:
        from ..reports import write_report

        record.save(out)
        write_report([record], out / REPORT_FILE)
    if json:
        print_json(record.as_json())
        return
    from .record_facts import print_record

    to = console()
    print_record(record, to)
    to.print(f"\nRecord: {out}\nReport: {out}/{REPORT_FILE}", soft_wrap=True)


def default_folder(record: Record, *, with_policy: bool) -> Path:
    """``out/<scenario>``, or ``out/<scenario>-<policy>`` where the policy was asked for."""
    return Path("out") / (f"{record.scenario}-{record.policy}" if with_policy else record.scenario)


@contextmanager
def _progress() -> Iterator[Callable[[float], None] | None]:
    """A progress bar on standard error while the scenario runs, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=1.0)
        yield lambda fraction: bar.update(task, completed=fraction)

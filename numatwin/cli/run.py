"""``numatwin run``: runs one scenario; prints its result, writes a record and a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import console, print_json

if TYPE_CHECKING:
    from ..sim.run.record import Record

REPORT_FILE = "report.html"
DIGEST_SHOWN = 8
EFFECTS_NODES_MAX = 16


class Plane(StrEnum):
    """The data planes: who does the work between two control events."""

    flow = "flow"
    event = "event"
    reference = "reference"
    native = "native"


def _fraction(text: str | float) -> float:
    """The number in ``text``, such as 1/50 or 0.02."""
    try:
        return float(Fraction(str(text)))
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text!r}: expected a part, such as 1/50 or 0.02") from None


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
        list[str] | None,
        typer.Option(
            metavar="P",
            help="Another policy: a name, or FILE.py:CLASS; after FAMILY= where the system has "
            "several families; may be repeated.",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        Plane | None, typer.Option(help="Another data plane to run on.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Another seed.", show_default=False),
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Another number of runs with independent random draws.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            parser=_fraction,
            metavar="PART",
            help="Scale of the workload's objects, such as 1/50 or 0.02.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Another value for any field; may be repeated.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder for record and report; by default a folder in out/ named after "
            "SCENARIO and these options, or nowhere with --json.",
            show_default=False,
        ),
    ] = None,
    assumptions: Annotated[
        bool,
        typer.Option(
            "--assumptions",
            help="List what the run assumed, with sources, and what each decides of the result.",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Run a scenario: its throughput and the bottleneck."""
    from ..inputs import check_folder
    from ..sim.run.scenario import load_scenario

    if out is not None:
        check_folder(out)  # now, not after a long run
    load = partial(
        load_scenario,
        scenario,
        machine=machine,
        workload=workload,
        policy=policy,
        plane=on.value if on else None,
        seed=seed,
        replications=replications,
        scale=scale,
    )
    loaded = load(settings=set_ or [])
    if replications is not None and replications > 1 and loaded.plane == "flow":
        print(
            f"numatwin: the flow plane computes expected rates and draws nothing at random: "
            f"{replications} replications would be equal, so it runs one",
            file=sys.stderr,
        )
    from ..sim.run.runner import RunInterrupted, run_scenario, with_effects

    interrupted: RunInterrupted | None = None
    work = "running" if loaded.plane == "native" else "simulating"
    with progress_bars("loading", work) as (loading, progress):
        try:
            record = run_scenario(loaded, progress=progress, loading=loading)
        except RunInterrupted as failure:
            interrupted, record = failure, failure.record
    if set_ and interrupted is None:
        from ..sim.run.setting_effects import idle_settings

        idle = idle_settings(record, set_, lambda settings: load(settings=settings))
        record = replace(record, idle_settings=idle)
    # On a large machine a prediction takes a while, and this is two for each assumption.
    if interrupted is None and (assumptions or len(loaded.machine.nodes) <= EFFECTS_NODES_MAX):
        record = with_effects(record, loaded)
    if out is None and not json:
        names = [scenario, *(policy or []), *(name for name in (machine, workload) if name)]
        values = {"on": on, "seed": seed, "replications": replications, "scale": scale}
        out = default_folder(names, values, record.scenario_hash if set_ else "")
    try:
        _print(record, json, assumptions)
    # The result is printed before a disk can be full, and kept even if the reader closed the pipe.
    finally:
        if out is not None:
            _keep(record, out)
    if out is not None and not json:
        console().print(f"\nRecord: {out}\nReport: {out}/{REPORT_FILE}", soft_wrap=True)
    if interrupted is not None:
        raise interrupted


def default_folder(names: Iterable[str], values: Mapping[str, object], digest: str) -> Path:
    """The folder in ``out`` whose name distinguishes a run from others of its scenario.

    It joins the ``names`` (of files, without folder and ending), the ``values`` that are not None,
    each after its option, and the first digits of a ``digest`` where there is one.
    """
    parts = [_short(name) for name in names]
    parts += [f"{option}-{value}" for option, value in values.items() if value is not None]
    return Path("out") / "-".join([*parts, *([digest[:DIGEST_SHOWN]] if digest else [])])


def _short(name: str) -> str:
    """``mine`` of ``files/mine.yaml``, ``mine-Balancer`` of ``mine.py:Balancer``,
    ``balancing-ma-8`` of ``balancing=ma-8``; else the name.
    """
    family, of_family, policy = name.partition("=")
    if of_family and family.isidentifier():
        return f"{family}-{_short(policy)}"
    file, of_file, class_name = name.rpartition(".py:")
    if of_file:
        return f"{Path(file).name}-{class_name}"
    return Path(name).stem if name.endswith((".yaml", ".yml")) else Path(name).name


def _print(record: Record, json: bool, assumptions: bool) -> None:
    from .record_facts import idle_setting, print_record

    if json:
        for idle in record.idle_settings:
            print(f"numatwin: {idle_setting(idle)}", file=sys.stderr)
        print_json(record.as_json())
        return

    print_record(record, console())
    if assumptions:
        from .assumptions import print_assumptions

        print_assumptions(record, console())


def _keep(record: Record, out: Path) -> None:
    """Writes record and report into ``out``; a report that cannot be written costs no record."""
    from ..inputs import InputError
    from ..reports import write_report

    record.save(out)
    try:
        write_report([record], out / REPORT_FILE)
    except InputError as failure:
        failure.message += f"; the record is kept in {out}"
        raise


Progress = Callable[[float], None]


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A progress bar on standard error if that is a terminal; it takes the part that is done."""
    with progress_bars(what) as (bar,):
        yield bar


@contextmanager
def progress_bars(*whats: str) -> Iterator[tuple[Progress | None, ...]]:
    """One for each of the consecutive ``whats``; each is visible while it progresses."""
    if not sys.stderr.isatty():
        yield (None,) * len(whats)
        return
    from rich.progress import Progress as Display

    with Display(console=console(stderr=True), transient=True) as display:
        tasks = [display.add_task(what, total=1.0, visible=what == whats[-1]) for what in whats]

        def teller(at: int) -> Progress:
            def tell(fraction: float) -> None:
                display.update(tasks[at], completed=fraction, visible=True)
                for other in tasks[:at] if fraction < 1.0 else ():
                    display.update(other, visible=False)
                for other in tasks[at + 1 :]:
                    display.update(other, visible=fraction >= 1.0)

            return tell

        yield tuple(map(teller, range(len(whats))))

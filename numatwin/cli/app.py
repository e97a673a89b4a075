"""The commands of the command line, and an example of each.

Commands import what they need when they run, so that ``numatwin --help`` is fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer

from .calibrate import calibrate
from .compare import compare
from .crossvalidate import crossvalidate
from .failures import exit_status
from .listings import (
    draw_policy,
    list_policies,
    list_scenarios,
    list_workloads,
    show_scenario,
    show_workload,
)
from .machine import build, draw, import_, list_, show
from .measure import measure
from .published import published
from .regress import regress
from .report import report
from .run import run

Command = Callable[..., None]


def _group(text: str) -> typer.Typer:
    group = typer.Typer(
        help=text,
        rich_markup_mode=None,  # plain help: the same in every terminal, and at once
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.callback(invoke_without_command=True)(_help_alone)
    return group


def _help_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _add(group: typer.Typer, name: str, command: Command, example: str) -> None:
    """Adds a command; ``example`` ends its help and is run by a test as it stands."""
    group.command(name, epilog=f"Example: numatwin {example}")(command)


app = _group("""Predict the performance of in-memory databases on NUMA machines.

A scenario names a machine, a workload and policies; 'numatwin run' runs it and reports its
throughput and the bottleneck. In place of every name you may give the path of your own file.""")
_add(app, "run", run, "run eris-fig13 --policy ma-8")
_add(app, "compare", compare, "compare out/eris-fig13-none out/eris-fig13-ma-8")
_add(app, "report", report, "report out/eris-fig13-none out/eris-fig13-ma-8")
_add(app, "published", published, "published --id eris-fig9")
_add(
    app,
    "calibrate",
    calibrate,
    "calibrate server-2s.yaml --from mlc-2s.txt --out fitted.yaml",
)
_add(app, "regress", regress, "regress policies --check eris-beats-the-shared-index")
_add(app, "crossvalidate", crossvalidate, "crossvalidate host --list")

machine = _group("List, show, import, build, measure and draw machines.")
_add(machine, "list", list_, "machine list")
_add(machine, "show", show, "machine show amd-8n-ht")
_add(machine, "import", import_, "machine import --out this-host.yaml")
_add(
    machine,
    "build",
    build,
    "machine build --processor 'EPYC 7763' --adapter roce-100 --servers 8 --out cluster.yaml",
)
_add(machine, "measure", measure, "machine measure --quick --out measured.yaml")
_add(machine, "draw", draw, "machine draw amd-8n-ht --out amd.html")
app.add_typer(machine, name="machine")

scenario = _group("List and show the bundled scenarios.")
_add(scenario, "list", list_scenarios, "scenario list")
_add(scenario, "show", show_scenario, "scenario show eris-fig13 > mine.yaml")
app.add_typer(scenario, name="scenario")

workload = _group("List and show the bundled workloads.")
_add(workload, "list", list_workloads, "workload list")
_add(workload, "show", show_workload, "workload show lookup-zipf > mine.yaml")
app.add_typer(workload, name="workload")

policy = _group("List and draw the policies of the control plane.")
_add(policy, "list", list_policies, "policy list")
_add(policy, "draw", draw_policy, "policy draw cores=adaptive --out net.svg")
app.add_typer(policy, name="policy")


def _print_version(wanted: bool) -> None:
    if wanted:
        from .._version import __version__

        print(f"numatwin {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    _help_alone(context)


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """See ``main``."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that knows no '×' gets a '?'
    words = list(sys.argv[1:] if arguments is None else arguments)
    return exit_status(lambda: _run(words))


def _run(words: Sequence[str]) -> object:
    _refuse_empty(words)
    return app(words, prog_name="numatwin", standalone_mode=False)


def _refuse_empty(words: Sequence[str]) -> None:
    """Nothing here may be empty; a path would quietly be the current folder."""
    for before, word in pairwise(["", *words]):
        option, equals, value = word.partition("=")
        if not word or (option.startswith("--") and equals and not value):
            name = option or (before if before.startswith("-") else "argument")
            raise typer.BadParameter("it is empty", param_hint=name)

"""The commands of the command line, and an example of each.

Commands import what they need when they run, so that ``numatwin --help`` is fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from itertools import pairwise
from typing import Annotated, Any

import typer

from .calibrate import calibrate
from .check import check_machine, check_scenario, check_study, check_workload
from .compare import compare
from .crossvalidate import crossvalidate
from .decision_scores import decisions
from .doctor import doctor
from .emulate import emulate
from .explore import explore
from .failures import LOGGER, begin, end, exit_status, with_log_options_first
from .infer import infer
from .listings import (
    draw_policy,
    list_policies,
    list_scenarios,
    list_workloads,
    show_scenario,
    show_workload,
)
from .live import cores, observe
from .machine import draw, import_, list_, show
from .machine_build import build
from .measure import measure
from .profile import profile
from .published import published
from .regress import regress
from .report import report
from .run import run
from .schema import schema
from .shake import shake
from .study import run_study_file, show_study, study_report, study_status
from .study_answers import explain_step, study_frontier, study_sensitivity
from .study_search import study_search
from .sweep import sweep
from .threshold import find_threshold
from .train import train_access_path
from .trust import trust
from .what_if import what_if

Command = Callable[..., None]


def _group(text: str, *, completion: bool = False) -> typer.Typer:
    group = typer.Typer(
        help=text,
        rich_markup_mode=None,  # plain help: the same in every terminal, and at once
        add_completion=completion,
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


app = _group(
    """Predict the performance of in-memory databases on NUMA machines.

A scenario names a machine, a workload and policies; 'numatwin run' runs it and reports its
throughput and the bottleneck. In place of every name you may give the path of your own file.""",
    completion=True,
)
_add(app, "run", run, "run eris-fig13 --policy ma-8")
_add(app, "compare", compare, "compare out/eris-fig13-none out/eris-fig13-ma-8")
_add(app, "explore", explore, "explore eris-fig8-amd")
_add(app, "sweep", sweep, "sweep eris-fig5 --set system.buffer_commands=1:1024:11log")
_add(app, "report", report, "report out/eris-fig13-none out/eris-fig13-ma-8")
_add(app, "published", published, "published --id eris-fig9")
_add(app, "decisions", decisions, "decisions --id cxl-triad")
_add(app, "trust", trust, "trust")
_add(app, "calibrate", calibrate, "calibrate server-2s.yaml --from mlc-2s.txt --out fitted.yaml")
_add(app, "infer", infer, "infer fig8-unknown.yaml --from fig8-runs.csv")
_add(app, "emulate", emulate, "emulate opteron-4n --scale 1/16 -- numactl -H")
_add(app, "profile", profile, "profile groups.callgrind.out --name groups")
_add(app, "observe", observe, "observe --pid 1 --for 1s")
_add(app, "cores", cores, "cores --pid 1 --for 1s --dry-run")
_add(app, "what-if", what_if, "what-if groups.callgrind.out --machine xeon-4s-ivb")
_add(app, "regress", regress, "regress policies --check eris-beats-the-shared-index")
_add(app, "crossvalidate", crossvalidate, "crossvalidate host --list")
_add(app, "shake", shake, "shake nam-fig6-rsi --runs 100")

_add(app, "doctor", doctor, "doctor")
_add(app, "schema", schema, "schema scenario > scenario.schema.json")

machine = _group("Show, check, import, measure, draw machines.")
_add(machine, "list", list_, "machine list")
_add(machine, "show", show, "machine show amd-8n-ht")
_add(machine, "check", check_machine, "machine check amd-8n-ht")
_add(machine, "import", import_, "machine import --out this-host.yaml")
_add(
    machine,
    "build",
    build,
    "machine build --processor 'EPYC 9554' --sockets 2 --nodes-per-socket 4 --out server.yaml",
)
_add(machine, "measure", measure, "machine measure --quick --out measured.yaml")
_add(machine, "draw", draw, "machine draw amd-8n-ht --out amd.html")
_add(machine, "threshold", find_threshold, "machine threshold xeon-4s-ivb --out mine.yaml")
app.add_typer(machine, name="machine")

study = _group("Check, run, show and report studies.")
_add(study, "run", run_study_file, "study run buffers.yaml --limit 20")
_add(study, "show", show_study, "study show buffers.yaml")
_add(study, "check", check_study, "study check buffers.yaml")
_add(study, "status", study_status, "study status buffers.yaml")
_add(study, "report", study_report, "study report buffers.yaml")
_add(study, "frontier", study_frontier, "study frontier buffers.yaml")
_add(study, "explain", explain_step, "study explain buffers.yaml")
_add(study, "sensitivity", study_sensitivity, "study sensitivity buffers.yaml --points 8")
_add(study, "search", study_search, "study search buffers.yaml --no-verify")
app.add_typer(study, name="study")

scenario = _group("List, show and check scenarios.")
_add(scenario, "list", list_scenarios, "scenario list")
_add(scenario, "show", show_scenario, "scenario show eris-fig13 > mine.yaml")
_add(scenario, "check", check_scenario, "scenario check eris-fig13")
app.add_typer(scenario, name="scenario")

workload = _group("List, show and check workloads.")
_add(workload, "list", list_workloads, "workload list")
_add(workload, "show", show_workload, "workload show lookup-zipf > mine.yaml")
_add(workload, "check", check_workload, "workload check lookup-zipf")
app.add_typer(workload, name="workload")

policy = _group("List and draw the policies of the control plane.")
_add(policy, "list", list_policies, "policy list")
_add(policy, "draw", draw_policy, "policy draw cores=adaptive --out net.svg")
app.add_typer(policy, name="policy")

train = _group("Train models for policies.")
_add(
    train,
    "access-path",
    train_access_path,
    "train access-path --machine sgi-uv300h-8s --observations 5000 --out model.json",
)
app.add_typer(train, name="train")


def _print_version(wanted: bool) -> None:
    if wanted:
        from .._version import __version__

        print(f"numatwin {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Log what is read and run to standard error."),
    ] = False,
    log_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Add the same, with times, to this file.")
    ] = None,
) -> None:
    begin(verbose, log_file)
    _help_alone(context)


app.callback(invoke_without_command=True)(_root)


def _only(word: str) -> typer.Typer:
    """The application with no other command or group than this; all of it where there is none such.

    To read the parameters of all commands takes longer than to print an answer.
    """
    commands = [one for one in app.registered_commands if one.name == word]
    groups = [one for one in app.registered_groups if one.name == word]
    if not commands and not groups:
        return app
    only = copy(app)
    only.registered_commands, only.registered_groups = commands, groups
    return only


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """See ``main``."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that knows no '×' gets a '?'
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = exit_status(lambda: _run(words))
        LOGGER.info("exit status %d", status)
        return status
    finally:
        end()


def _run(words: Sequence[str]) -> object:
    _refuse_empty(words)
    chosen = _only(words[0]) if words else app
    return chosen(
        with_log_options_first(words), prog_name="numatwin", standalone_mode=False, obj=words
    )


def _refuse_empty(words: Sequence[str]) -> None:
    """Nothing here may be empty; a path would quietly be the current folder."""
    for before, word in pairwise(["", *words]):
        option, equals, value = word.partition("=")
        if not word or (option.startswith("--") and equals and not value):
            name = option or (before if before.startswith("-") else "argument")
            raise typer.BadParameter("it is empty", param_hint=name)

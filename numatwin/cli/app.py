"""The commands of the command line, and an example of each.

Commands import what they need when they run, so that ``numatwin --help`` is fast.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer

from .failures import LOGGER, begin, end, exit_status, with_log_options_first
from .options import option

ABOUT = """Predict the performance of in-memory databases on NUMA machines.

A scenario names a machine, a workload and policies; 'numatwin run' runs it and reports its
throughput and the bottleneck. In place of every name you may give the path of your own file."""

# Each command: its words, its function in a module beside this one, what follows the words in an
# example that ends its help and is run by a test as it stands.
COMMANDS = (
    ("run", "run:run", "eris-fig13 --policy ma-8"),
    ("compare", "compare:compare", "out/eris-fig13-none out/eris-fig13-ma-8"),
    ("explore", "explore:explore", "eris-fig8-amd"),
    ("sweep", "sweep:sweep", "eris-fig5 --set system.buffer_commands=1:1024:11log"),
    ("report", "report:report", "out/eris-fig13-none out/eris-fig13-ma-8"),
    ("published", "published:published", "--id eris-fig9"),
    ("decisions", "decision_scores:decisions", "--id cxl-triad"),
    ("trust", "trust:trust", ""),
    ("calibrate", "calibrate:calibrate", "server-2s.yaml --from mlc-2s.txt --out fitted.yaml"),
    ("infer", "infer:infer", "fig8-unknown.yaml --from fig8-runs.csv"),
    ("emulate", "emulate:emulate", "opteron-4n --scale 1/16 -- numactl -H"),
    ("profile", "profile:profile", "groups.callgrind.out --name groups"),
    ("observe", "live:observe", "--pid 1 --for 1s"),
    ("cores", "live:cores", "--pid 1 --for 1s --dry-run"),
    ("what-if", "what_if:what_if", "groups.callgrind.out --machine xeon-4s-ivb"),
    ("regress", "regress:regress", "policies --check eris-beats-the-shared-index"),
    ("crossvalidate", "crossvalidate:crossvalidate", "host --list"),
    ("shake", "shake:shake", "nam-fig6-rsi --runs 100"),
    ("doctor", "doctor:doctor", ""),
    ("schema", "schema:schema", "scenario > scenario.schema.json"),
    ("machine list", "machine:list_", ""),
    ("machine show", "machine:show", "amd-8n-ht"),
    ("machine check", "check:check_machine", "amd-8n-ht"),
    ("machine import", "machine:import_", "--out this-host.yaml"),
    (
        "machine build",
        "machine_build:build",
        "--processor 'EPYC 9554' --sockets 2 --nodes-per-socket 4 --out server.yaml",
    ),
    ("machine measure", "measure:measure", "--quick --out measured.yaml"),
    ("machine draw", "machine:draw", "amd-8n-ht --out amd.html"),
    ("machine threshold", "threshold:find_threshold", "xeon-4s-ivb --out mine.yaml"),
    ("study run", "study:run_study_file", "buffers.yaml --limit 20"),
    ("study show", "study:show_study", "buffers.yaml"),
    ("study check", "check:check_study", "buffers.yaml"),
    ("study status", "study:study_status", "buffers.yaml"),
    ("study report", "study:study_report", "buffers.yaml"),
    ("study frontier", "study_answers:study_frontier", "buffers.yaml"),
    ("study explain", "study_answers:explain_step", "buffers.yaml"),
    ("study sensitivity", "study_answers:study_sensitivity", "buffers.yaml --points 8"),
    ("study search", "study_search:study_search", "buffers.yaml --no-verify"),
    ("scenario list", "listings:list_scenarios", ""),
    ("scenario show", "listings:show_scenario", "eris-fig13 > mine.yaml"),
    ("scenario check", "check:check_scenario", "eris-fig13"),
    ("workload list", "listings:list_workloads", ""),
    ("workload show", "listings:show_workload", "lookup-zipf > mine.yaml"),
    ("workload check", "check:check_workload", "lookup-zipf"),
    ("policy list", "listings:list_policies", ""),
    ("policy draw", "listings:draw_policy", "cores=adaptive --out net.svg"),
    (
        "train access-path",
        "train:train_access_path",
        "--machine sgi-uv300h-8s --observations 5000 --out model.json",
    ),
)
GROUPS = {
    "machine": "Show, check, import, measure, draw machines.",
    "study": "Check, run, show and report studies.",
    "scenario": "List, show and check scenarios.",
    "workload": "List, show and check workloads.",
    "policy": "List and draw the policies of the control plane.",
    "train": "Train models for policies.",
}


def application(word: str = "") -> typer.Typer:
    """The command line with no other command or group than this; all of it where there is none
    such. To import all commands and read their parameters takes longer than to print an answer.
    """
    app, groups = _group(ABOUT, completion=True), dict[str, typer.Typer]()
    app.callback(invoke_without_command=True)(_root)
    known = any(words.split()[0] == word for words, *_ in COMMANDS)
    for words, place, following in COMMANDS:
        first, _, name = words.partition(" ")
        if known and first != word:
            continue
        if name and first not in groups:
            groups[first] = _group(GROUPS[first])
            app.add_typer(groups[first], name=first)
        module, _, function = place.partition(":")
        example = f"Example: numatwin {words} {following}".rstrip()
        add = groups.get(first, app).command(name or first, epilog=example)
        add(getattr(import_module(f".{module}", __package__), function))
    return app


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
        bool, typer.Option("--verbose", help="Log what is read and run to standard error.")
    ] = False,
    log_file: Annotated[
        str | None, option("FILE", "Add the same, with times, to this file.")
    ] = None,
) -> None:
    begin(verbose, log_file)
    _help_alone(context)


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
    return application(words[0] if words else "")(
        with_log_options_first(words), prog_name="numatwin", standalone_mode=False, obj=words
    )


def _refuse_empty(words: Sequence[str]) -> None:
    """Nothing here may be empty; a path would quietly be the current folder."""
    for before, word in pairwise(["", *words]):
        option, equals, value = word.partition("=")
        if not word or (option.startswith("--") and equals and not value):
            name = option or (before if before.startswith("-") else "argument")
            raise typer.BadParameter("it is empty", param_hint=name)

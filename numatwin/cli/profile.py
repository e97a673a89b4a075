"""``numatwin profile``: a workload file of what an engine's tools have counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .files import check_file
from .options import Json
from .output import print_json

if TYPE_CHECKING:
    from ..validate.profile import Found

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES | -- COMMAND",
        help="Of one query: callgrind's output, a plan of DuckDB or PostgreSQL as JSON, the "
        "output of 'perf stat -x,'. Or a command, which runs under callgrind, three times at once.",
        show_default=False,
    ),
]
PlanOption = Annotated[
    Path | None,
    typer.Option(
        "--plan", metavar="FILE", help="The plan of a command's query.", show_default=False
    ),
]
Region = Annotated[
    bool,
    typer.Option(
        "--region",
        help="Count only what the command marks by 'callgrind_control -i on' and 'off'.",
    ),
]
Prefetched = Annotated[
    list[Path] | None,
    typer.Option(
        "--prefetched",
        metavar="FILE",
        help="Callgrind's output of a run with --simulate-hwpref=yes, which tells misses in order "
        "from those at random.",
        show_default=False,
    ),
]
Queries = Annotated[
    int, typer.Option("--queries", metavar="N", min=1, help="Runs of the query while it counted.")
]


def profile(
    words: Words,
    plan: PlanOption = None,
    region: Region = False,
    prefetched: Prefetched = None,
    queries: Queries = 1,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the workload and its query.")] = "q",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the workload (.yaml) here; by default it is printed.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a workload of what tools have counted.

    Its operators are lists of loops, one for each function that takes its time: instructions, bytes
    in order, random accesses by size of structure. What the files do not tell has a range, and a
    note at the head of the workload file.
    """
    from ..inputs.atomic import write_text_atomically
    from ..inputs.yaml_file import parse_yaml
    from ..validate.profile import workload_text
    from ..workloads import workload_from_document

    check_file(out, ".yaml", ".yml")
    found = found_in(words, plan, region=region, prefetched=prefetched or [])
    text = workload_text(found, name, queries)
    workload = workload_from_document(parse_yaml(text, str(out or "profile")), Path())
    if out is not None:
        write_text_atomically(out, text)
    if json:
        print_json(workload.plain)
    elif out is None:
        print(text, end="")


def found_in(words: list[str], plan: Path | None, *, region: bool, prefetched: list[Path]) -> Found:
    """What files tell, or the counts of a command."""
    from dataclasses import replace

    from ..validate.profile import read_profiles
    from ..validate.profile.run_counted import run_counted

    extra = [] if plan is None else [plan]
    first = Path(words[0])
    if first.is_file() and not os.access(first, os.X_OK):
        return read_profiles([*map(Path, words), *extra], prefetched)
    if region or not first.suffix or first.is_file():
        return replace(read_profiles(extra), graphs=run_counted(words, region=region))
    return read_profiles([*map(Path, words), *extra], prefetched)

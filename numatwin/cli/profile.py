"""``numatwin profile``: a workload file of what an engine's tools have counted."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..inputs import write_text_atomically
from .files import check_file
from .options import Json, argument, bundled_machines, duration, flag, grouped, option
from .output import print_json

if TYPE_CHECKING:
    from ..validate.profile import Found, Timed

Words = Annotated[
    list[str],
    argument(
        "FILES | -- COMMAND",
        "Of one query: callgrind's output, a plan of DuckDB or PostgreSQL or ClickHouse's log of "
        "processors as JSON, MonetDB's TRACE, the output of 'perf stat -x,', 'perf script' and "
        "'perf mem report'. "
        "Or a command, which runs under callgrind, six times at once, and once without.",
    ),
]


@dataclass(frozen=True)
class Counting:
    """What else tells of the query, and how often it ran."""

    plan: Annotated[Path | None, option("FILE", "The plan of a command's query.", "--plan")] = None
    region: Annotated[
        bool,
        flag(
            "--region", "Count only what the command marks by 'callgrind_control -i on' and 'off'."
        ),
    ] = False
    prefetched: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Callgrind's output of a run with --simulate-hwpref=yes, which tells misses in order "
            "from those at random (with --LL=2097152,16,256 also of strides).",
            "--prefetched",
        ),
    ] = None
    queries: Annotated[
        int, option("N", "Runs of the query while it counted.", "--queries", min=1)
    ] = 1
    time: Annotated[
        list[str] | None,
        option(
            "TIME",
            "Processor time of the query on one thread, such as 31ms, of several runs or one: "
            "tells how many instructions per cycle it executes.",
            "--time",
        ),
    ] = None
    timed: Annotated[
        Path | None,
        option(
            "FILE",
            "The workload that took this time, where it is not this one: of the same engine, such "
            "as the same query on smaller tables.",
            "--timed",
        ),
    ] = None
    timed_on: Annotated[
        str | None,
        option(
            "M",
            "The machine on which it took this time; by default this host.",
            "--timed-on",
            autocompletion=bundled_machines,
        ),
    ] = None

    def workload(self, words: list[str], name: str) -> str:
        """The workload file of what files tell, or the counts of a command."""
        from ..validate.profile import workload_text

        return workload_text(self._found(words), name, self.queries, self._timed())

    def _found(self, words: list[str]) -> "Found":
        from ..validate.profile import read_profiles
        from ..validate.profile.callgrind import run_counted
        from ..validate.profile.native_run import run_native

        extra, prefetched = [] if self.plan is None else [self.plan], self.prefetched or []
        first = Path(words[0])
        is_command = self.region or not first.suffix
        if os.access(first, os.X_OK) if first.is_file() else is_command:
            graphs = run_counted(words, region=self.region)
            totals = run_native(words, region=self.region)
            return replace(read_profiles(extra), graphs=graphs, totals=totals)
        return read_profiles([*map(Path, words), *extra], prefetched)

    def _timed(self) -> "Timed | None":
        from ..validate.profile import Timed

        if self.time:
            return Timed(tuple(map(duration, self.time)), self.timed_on, self.timed)
        if self.timed is not None or self.timed_on is not None:
            raise typer.BadParameter(f"{'--timed' if self.timed else '--timed-on'} without --time")
        return None


@grouped
def profile(
    words: Words,
    of: Counting = Counting(),
    name: Annotated[str, option("NAME", "Of the workload and its query.")] = "q",
    out: Annotated[
        Path | None, option("FILE", "Write the workload (.yaml) here; by default it is printed.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a workload of what tools have counted.

    Its operators are lists of loops, one for each function that takes its time: instructions, bytes
    in order, random accesses by size of structure. What the files do not tell has a range, and a
    note at the head of the workload file.
    """
    from ..inputs.yaml_file import parse_yaml
    from ..workloads import workload_from_document

    check_file(out, ".yaml", ".yml")
    text = of.workload(words, name)
    workload = workload_from_document(parse_yaml(text, str(out or "profile")), Path())
    if out is not None:
        write_text_atomically(out, text)
    if json:
        print_json(workload.plain)
    elif out is None:
        print(text, end="")

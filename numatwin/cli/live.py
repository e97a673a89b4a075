"""``numatwin observe`` and ``numatwin cores``: processes of others on this host."""

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .files import check_file
from .options import Json, duration, flag, grouped, option
from .output import Part, binary_size, facts, percent, present, progress_bar, written_to

if TYPE_CHECKING:
    from ..sim.run.record import Record


class Metric(StrEnum):
    """What the policy looks at."""

    load = "load"
    interconnect = "interconnect"


def _duration(text: str | float) -> float:
    """Seconds of a duration such as 60s or 500ms."""
    if isinstance(text, float):  # a default
        return text
    return duration(str(text), 0.01)


Pid = Annotated[int | None, option("P", "The process.", "--pid", min=1)]
Out = Annotated[Path | None, option("DIR", "Write the record here.")]


def observe(
    pid: Pid = None,
    for_: Annotated[
        float, option("TIME", "For how long.", "--for", parser=_duration, show_default="10s")
    ] = 10.0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Observe a process: its pages, threads, and traffic."""
    from ..validate.live import observe as observe_process

    if pid is None:
        raise typer.BadParameter("no process: expected --pid P")
    check_file(out)
    with progress_bar("observing") as progress:
        record = observe_process(pid, for_, progress)
    _end(record, out, json=json)


@dataclass(frozen=True)
class Steering:
    """Whose cores are steered, by what, and for how long."""

    pid: Pid = None
    cgroup: Annotated[str | None, option("G", "A control group with a cpuset.")] = None
    policy: Annotated[str, option("NAME", "Of the family cores, or FILE.py:CLASS.")] = "adaptive"
    metric: Annotated[Metric, typer.Option(help="What it looks at.")] = Metric.load
    period: Annotated[
        float, option("TIME", "How often it is asked.", parser=_duration, show_default="1s")
    ] = 1.0
    for_: Annotated[
        float | None,
        option(
            "TIME", "For how long; by default until the process ends.", "--for", parser=_duration
        ),
    ] = None
    dry_run: Annotated[bool, flag("--dry-run", "Print decisions, and change nothing.")] = False

    def run(self, said: Callable[[str], None]) -> "Record":
        """Until the time is up, the process ends, or Ctrl-C; decisions are ``said``."""
        from ..validate.systems.steering import Steered, chosen_policy, steer

        chosen = chosen_policy(self.policy, str(self.metric), self.period)
        forever = float("inf") if self.for_ is None else self.for_
        signal.signal(signal.SIGHUP, signal.default_int_handler)  # a closed terminal is Ctrl-C, too
        try:
            whom = self.pid, self.cgroup, chosen
            return steer(Steered(*whom, str(self.metric), forever, self.dry_run, said))
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)


@grouped
def cores(
    of: Steering = Steering(),
    restore: Annotated[
        bool, flag("--restore", "Give back CPUs that a killed 'numatwin cores' held.")
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Steer the cores of a running process by a policy."""
    from ..validate.live import left_behind
    from ..validate.systems.steering import give_back

    if restore:
        for whom in give_back():
            print(f"given back: the CPUs of {whom}")
        if of.pid is None and of.cgroup is None:
            return
    if (of.pid is None) == (of.cgroup is None):
        raise typer.BadParameter("whom to steer: expected either --pid P or --cgroup G")
    check_file(out)
    if any(left_behind()):
        print(
            "numatwin: an earlier 'numatwin cores' was killed: 'numatwin cores --restore' gives "
            "back the CPUs that it held",
            file=sys.stderr,
        )
    record = of.run((lambda line: print(line, file=sys.stderr)) if json else print)
    _end(record, out, json=json)


def _end(record: "Record", out: Path | None, *, json: bool) -> None:
    if out is not None:
        record.save(out)
    present(json, record.as_json, chain(_parts(record), written_to({"Record": out})))


def _parts(record: "Record") -> Iterator[Part]:
    seen = record.model
    pages = seen.get("pages_bytes_at_the_end") or seen.get("pages_bytes") or {}
    rows = [
        ("process", record.title),
        ("seen for", f"{record.horizon_s:.3g} s"),
        *(
            (use.name, percent(use.utilisation))
            for use in record.resources
            if use.utilisation or len(record.resources) == 1
        ),
        *((f"pages, {kind}", _nodes(of_nodes)) for kind, of_nodes in pages.items()),
        ("threads", str(seen["threads"]) if "threads" in seen else None),
        ("moves", f"{seen['moves']} between CPUs, {seen['moves_between_nodes']} between nodes"),
        *(
            (f"traffic, {what}", None if rate is None else f"{rate / 1e9:.3g} GB/s, all programs")
            for what, rate in record.bandwidth_Bps.items()
        ),
        ("decisions", str(len(record.control_events)) if record.policy != "none" else None),
    ]
    yield facts(rows)
    yield from (f"Note: {warning}" for warning in record.warnings)


def _nodes(of_nodes: dict[Any, int]) -> str:
    return ", ".join(f"node {node}: {binary_size(size)}" for node, size in sorted(of_nodes.items()))

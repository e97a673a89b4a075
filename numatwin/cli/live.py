"""``numatwin observe`` and ``numatwin cores``: processes of others on this host."""

from __future__ import annotations

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json
from .output import (
    binary_size,
    console,
    facts,
    percent,
    print_json,
    progress_bar,
    show,
)

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
    from ..inputs import parse_quantity

    try:
        found = parse_quantity(str(text), "time")
    except ValueError as failure:
        raise typer.BadParameter(f"{text!r}: {failure}") from None
    if not 0.01 <= found <= 1e6:
        raise typer.BadParameter(f"{text!r}: expected from 10 ms to 10^6 s")
    return found


Pid = Annotated[
    int | None, typer.Option("--pid", metavar="P", min=1, help="The process.", show_default=False)
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write the record here.", show_default=False)
]


def observe(
    pid: Pid = None,
    for_: Annotated[
        float,
        typer.Option(
            "--for", parser=_duration, metavar="TIME", help="For how long.", show_default="10s"
        ),
    ] = 10.0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Observe a process: its pages, threads, and traffic."""
    from ..inputs import check_writable
    from ..validate.live import observe as observe_process

    if pid is None:
        raise typer.BadParameter("no process: expected --pid P")
    if out is not None:
        check_writable(out)
    with progress_bar("observing") as progress:
        record = observe_process(pid, for_, progress)
    _end(record, out, json=json)


def cores(
    pid: Pid = None,
    cgroup: Annotated[
        str | None,
        typer.Option(metavar="G", help="A control group with a cpuset.", show_default=False),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="Of the family cores, or FILE.py:CLASS.")
    ] = "adaptive",
    metric: Annotated[Metric, typer.Option(help="What it looks at.")] = Metric.load,
    period: Annotated[
        float,
        typer.Option(
            parser=_duration, metavar="TIME", help="How often it is asked.", show_default="1s"
        ),
    ] = 1.0,
    for_: Annotated[
        float | None,
        typer.Option(
            "--for",
            parser=_duration,
            metavar="TIME",
            help="For how long; by default until the process ends.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print decisions, and change nothing.")
    ] = False,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Give back CPUs that a killed 'numatwin cores' held."),
    ] = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Steer the cores of a running process by a policy."""
    from ..inputs import check_writable
    from ..validate.live import left_behind
    from ..validate.systems.steering import Steered, chosen_policy, give_back, steer

    if restore:
        for whom in give_back():
            print(f"given back: the CPUs of {whom}")
        if pid is None and cgroup is None:
            return
    if (pid is None) == (cgroup is None):
        raise typer.BadParameter("nothing to steer: expected --pid P or --cgroup G")
    if out is not None:
        check_writable(out)
    if any(left_behind()):
        print(
            "numatwin: an earlier 'numatwin cores' was killed: 'numatwin cores --restore' gives "
            "back the CPUs that it held",
            file=sys.stderr,
        )
    said = (lambda line: print(line, file=sys.stderr)) if json else print
    chosen = chosen_policy(policy, str(metric), period)
    forever = float("inf") if for_ is None else for_
    signal.signal(signal.SIGHUP, signal.default_int_handler)  # a closed terminal is Ctrl-C, too
    try:
        steered = Steered(pid, cgroup, chosen, str(metric), forever, dry_run, said)
        record = steer(steered)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _end(record, out, json=json)


def _end(record: Record, out: Path | None, *, json: bool) -> None:
    if out is not None:
        record.save(out)
    if json:
        print_json(record.as_json())
        return
    _print(record)
    if out is not None:
        console().print(f"\nRecord: {out}", soft_wrap=True)


def _print(record: Record) -> None:
    seen, to = record.model, console()
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
    show([facts(rows)])
    for warning in record.warnings:
        to.print(f"Note: {warning}", soft_wrap=True)


def _nodes(of_nodes: dict[Any, int]) -> str:
    return ", ".join(f"node {node}: {binary_size(size)}" for node, size in sorted(of_nodes.items()))

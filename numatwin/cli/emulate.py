"""``numatwin emulate``: a machine as a Linux guest, in which any program runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import check_folder
from .failures import Ended
from .machine import MachineArgument
from .options import argument, flag, fraction, grouped, option
from .output import console, print_json, show

if TYPE_CHECKING:
    from ..sim.run.record import Record
    from ..topologies.emulator import GuestMachine, GuestRun, Share


class Detail(StrEnum):
    """What is counted; each takes longer than the one before."""

    accesses = "accesses"
    caches = "caches"
    coherence = "coherence"


def run_and_count(
    guest: GuestMachine,
    command: Sequence[str],
    detail: Detail,
    interval: int = 0,
    region: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> tuple[GuestRun, Record]:
    """Runs the command with its traffic counted, also where it is stopped before it ends.

    ``interval``: instructions of an interval, where the command's time is to be predicted; else 0.
    ``region``: the seconds from which on, and for which, it is counted. ``options`` are those of
    ``run_in_guest``.
    """
    from ..sim.run.counted import counted_record
    from ..topologies.emulator.counting import Counting, run_counted

    began = time.perf_counter()
    from_s, for_s = region
    counting = Counting(
        detail is not Detail.accesses,
        detail is Detail.coherence,
        interval,
        from_s=from_s,
        for_s=for_s,
    )
    done = run_counted(guest, command, counting, keep_stopped=True, **options)
    wall_s = time.perf_counter() - began
    return done.run, counted_record(done.traffic, command, wall_s, done.run)


def print_counted(record: Record) -> None:
    """To standard error: standard output is the command's."""
    from .record_facts import record_parts

    sys.stdout.flush()
    show(record_parts(record), console(stderr=True))


WRITABLE = ":rw"


def _memory(text: str | float) -> float:
    """Bytes of a size such as 2GiB."""
    from ..inputs import parse_quantity

    try:
        return parse_quantity(str(text), "size")
    except ValueError as failure:
        raise typer.BadParameter(f"{text!r}: {failure}") from None


@dataclass(frozen=True)
class GuestOptions:
    """What the guest has."""

    nodes: Annotated[int | None, option("N", "The first N nodes only.", min=1)] = None
    memory: Annotated[
        float | None, option("SIZE", "Memory in all, such as 2GiB.", parser=_memory)
    ] = None
    scale: Annotated[
        float | None,
        option(
            "PART",
            "The part of memory, processors and caches to have, such as 1/16; by default as much "
            "as fits on this host, and 64 processors at most.",
            parser=fraction,
        ),
    ] = None
    share: Annotated[
        list[str] | None,
        option(
            "DIR[:rw]",
            "A folder that the guest sees as it is, and with :rw may write to; may be repeated. "
            "All other files it sees too; what it writes there is lost with it.",
        ),
    ] = None
    architecture: Annotated[
        str | None,
        option(
            "NAME",
            "The processors' architecture: x86_64 or aarch64; by default this host's. With another "
            "one, programs need to bring their own libraries.",
        ),
    ] = None

    def guest(self, machine: str) -> GuestMachine:
        """The machine as a guest; raises InputError."""
        from ..topologies import load_machine
        from ..topologies.emulator import guest_machine

        return guest_machine(
            load_machine(machine),
            nodes=self.nodes,
            memory_bytes=self.memory,
            scale=self.scale,
            architecture=self.architecture,
        )


@dataclass(frozen=True)
class CountOptions:
    """What is counted."""

    time_limit: Annotated[float | None, option("S", "End COMMAND after S seconds.", min=0.001)] = (
        None
    )
    count: Annotated[bool, flag("--count", "Count COMMAND's memory traffic, node by node.")] = False
    count_from: Annotated[
        float | None, option("S", "Count from S seconds of COMMAND on.", min=0)
    ] = None
    count_for: Annotated[
        float | None,
        option("S", "Count S seconds, then end COMMAND: for servers, which do not end.", min=0.001),
    ] = None
    detail: Annotated[
        Detail | None,
        typer.Option(
            help="Count accesses only, also cache misses, or also transfers between caches (the "
            "default)."
        ),
    ] = None
    predict: Annotated[
        bool,
        flag(
            "--predict",
            "Count, and predict how long COMMAND would take on the machine, what would limit "
            "it, and what other placements of its data would gain.",
        ),
    ] = False
    interval: Annotated[
        int,
        option(
            "N",
            "With --predict: instructions of a processor between two reports of its counts; what "
            "processors do within one interval is taken to be concurrent.",
            min=100_000,
        ),
    ] = 50_000_000
    out: Annotated[Path | None, option("DIR", "Count, and keep the record in this folder.")] = None
    json: Annotated[
        bool, flag("--json", "Print one JSON object, which includes COMMAND's output.")
    ] = False

    @property
    def counts(self) -> bool:
        """Whether anything is."""
        given = (self.out, self.detail, *self.region)
        return self.count or self.predict or any(one is not None for one in given)

    @property
    def region(self) -> tuple[float | None, float | None]:
        """Seconds of the command from which, and for how long, it is counted."""
        return self.count_from, self.count_for

    def check(self, command: list[str] | None) -> None:
        """Refuses what does not go together."""
        if self.predict and self.detail is Detail.accesses:
            raise typer.BadParameter(
                "--predict needs misses: expected --detail caches or coherence"
            )
        if self.counts and not command:
            raise typer.BadParameter("--count: expected a command after '--'")
        if self.out is not None:
            check_folder(self.out)  # now, not after a long run

    def check_guest(self, guest: GuestMachine) -> None:
        """Refuses a prediction without caches."""
        if self.predict and not any(node.caches for node in guest.machine.nodes):
            raise typer.BadParameter(
                f"--predict needs misses, and no caches of {guest.machine.name} are known: "
                "expected caches in the machine file, or --count only"
            )


Command = Annotated[
    list[str] | None,
    argument("[-- COMMAND]", "What to run, with its arguments; without one, a shell."),
]


@grouped
def emulate(
    machine: MachineArgument,
    command: Command = None,
    has: GuestOptions = GuestOptions(),
    wanted: CountOptions = CountOptions(),
) -> None:
    """Boot a machine as a Linux guest and run a command in it.

    Needs QEMU. The command sees your files. The exit status is the command's; 124 means that the
    time limit was reached, 125 that the guest crashed. Times in the guest are meaningless. Traffic
    is counted over the whole command, or over the regions that it marks, or --count-from and
    --count-for; what was counted before a time limit or Ctrl-C is kept. 'report' and 'compare' show
    it. An example: numatwin emulate amd-8n-ht --scale 1/8 --memory 2GiB --predict -- ./program
    """
    from ..topologies.emulator import GuestFailure, run_shell
    from ..topologies.emulator.counting import NotStarted

    wanted.check(command)
    shares = [_share(text) for text in has.share or ()]
    guest = has.guest(machine)
    wanted.check_guest(guest)
    if guest.notes:
        print(f"numatwin: {guest.machine.name}: {'; '.join(guest.notes)}", file=sys.stderr)
    if not command and (wanted.json or not sys.stdin.isatty()):
        raise typer.BadParameter("no command: expected one after '--', or a terminal for a shell")
    try:
        if not command:
            raise Ended(run_shell(guest, shares=shares))
        done, record = _run(guest, command, shares, wanted)
    except NotStarted as failure:  # which the guest's line said
        if wanted.json:
            print_json(as_json(guest, failure.run))
        raise Ended(failure.status) from None
    except GuestFailure as failure:
        print(f"numatwin: error: {failure}", file=sys.stderr)
        raise Ended(failure.status) from None
    _tell(guest, done, record, wanted.json)
    if record is not None and wanted.out is not None:
        record.save(wanted.out)
    raise Ended(done.status)


def _run(
    guest: GuestMachine, command: list[str], shares: list[Share], wanted: CountOptions
) -> tuple[GuestRun, Record | None]:
    from ..topologies.emulator import run_in_guest

    options: dict[str, Any] = {
        "shares": shares,
        "time_limit_s": wanted.time_limit,
        "stdin": sys.stdin.fileno() if sys.stdin is not None else None,
        "stdout": None if wanted.json else _to(sys.stdout.buffer),
        "stderr": None if wanted.json else _to(sys.stderr.buffer),
    }
    if not wanted.counts:
        return run_in_guest(guest, command, **options), None
    each = wanted.interval if wanted.predict else 0
    return run_and_count(
        guest, command, wanted.detail or Detail.coherence, each, wanted.region, **options
    )


def _tell(guest: GuestMachine, done: GuestRun, record: Record | None, json: bool) -> None:
    if done.stopped is not None:
        print(f"numatwin: {done.stopped}; what was counted is kept", file=sys.stderr)
    if done.out_of_memory is not None:
        print(f"numatwin: the guest ran out of memory: {done.out_of_memory}", file=sys.stderr)
    if json:
        counted = {} if record is None else {"record": record.as_json()}
        print_json(as_json(guest, done) | counted)
    elif record is not None:
        print_counted(record)


def _share(text: str) -> Share:
    from ..topologies.emulator import Share

    writable = text.endswith(WRITABLE)
    return Share(Path(text.removesuffix(WRITABLE)).absolute(), writable)


def _to(stream: Any) -> Any:
    def write(piece: bytes) -> None:
        stream.write(piece)
        stream.flush()

    return write


def as_json(guest: GuestMachine, done: GuestRun) -> dict[str, Any]:
    """The stable form of ``--json``."""
    return {
        "machine": guest.machine.name,
        "notes": list(guest.notes),
        "nodes": [
            {"id": k, "processors": guest.node(k).threads, "memory_bytes": guest.memory_bytes[k]}
            for k in range(len(guest.nodes))
        ],
        "status": done.status,
        "output": done.output.decode(errors="replace"),
        "errors": done.errors.decode(errors="replace"),
        "boot_s": round(done.boot_s, 3),
        "qemu_cpu_s": round(done.qemu_cpu_s, 3),
    }

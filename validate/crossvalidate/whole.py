"""A whole cross-validation: the host measured, its file written, the suite played, rows made."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ...inputs import InputError, write_text_atomically
from ...sim.record import Record
from ...sim.run import run_scenario
from ...topologies import Machine, load_machine
from ...topologies.export import machine_yaml
from ...topologies.schema import MachineDescription
from ..measure import measure_host, measured_description
from ..measure.layout import host_layout
from ..measure.quiet import Quiet, core_probe
from ..measure.session import check_engine
from .corners import corners
from .primitives import primitive_rows
from .result import Result
from .session import Play, Session
from .suite import Suite, load_suite

Progress = Callable[[float, str], None]

MACHINE_FILE, RECORDS = "machine.yaml", "records"
# Of the progress, what measuring the host takes.
MEASURING = 0.15
# What may be spent on waiting for a quiet host and on real runs in vain: in all, and for one run.
PATIENCE_S, PATIENCE_QUICK_S, PATIENCE_EACH_S = 240.0, 8.0, 6.0


class MeasuringInterrupted(KeyboardInterrupt):
    """While the host was measured; so many parts were finished, and stand in the machine file."""

    def __init__(self, parts: int, path: Path) -> None:
        super().__init__()
        self.parts, self.path = parts, path


def crossvalidated(
    suite: str,
    machine: str | None,
    folder: Path,
    *,
    quick: bool = False,
    play: Play | None = None,
    progress: Progress | None = None,
) -> Result:
    """Cross-validates this host on a bundled suite, or one in a file.

    ``machine``: a machine file of this host; without it, the host is measured now. ``folder`` gets
    the machine file and the records. Raises InputError, for bad input before anything is measured.
    """
    ready = planned(suite, machine, folder, quick=quick)  # its mistakes now, not after a minute
    path, measured = folder / MACHINE_FILE, 0.0
    if machine is None:
        measured = MEASURING
        told = None if progress is None else _part(progress, 0.0, MEASURING)
        result = measure_host(quick=quick, progress=told)
        _written(measured_description(result), path)
        if result.interrupted:
            raise MeasuringInterrupted(len(result.host.parts), path)
        ready = load_suite(suite, path, load_machine(str(path)), quick=quick)

    if not ready.cases:  # a host that is not measured yet may be able to after all
        raise InputError(
            f"no run of the suite can be played here: {ready.left_out[0].reason}", str(ready.path)
        )

    def keep(case: str, name: str, record: Record) -> None:
        record.save(folder / RECORDS / slug(case) / name)

    session = Session(
        ready.cases,
        ready.rounds,
        corners=corners(ready.machine.description) or (),
        play=play or run_scenario,
        quiet=Quiet(
            core_probe(host_layout()), PATIENCE_QUICK_S if quick else PATIENCE_S, PATIENCE_EACH_S
        ),
        keep=keep,
        progress=None if progress is None else _part(progress, measured, 1.0),
    )
    found = session.run()
    return Result(ready, tuple(primitive_rows(ready.machine)), found)


def planned(suite: str, machine: str | None, folder: Path, *, quick: bool = False) -> Suite:
    """The suite on this host, before anything is measured: sizes and counts from the kernel.

    The machine file is in ``folder`` then: what was loaded, as all rows come from it.
    """
    check_engine()
    _make(folder)
    path = folder / MACHINE_FILE
    if machine is None:
        loaded = _written(host_layout().description, path)
    else:
        loaded = _written(load_machine(machine).description, path)
        _check_host(loaded, machine)
    return load_suite(suite, path, loaded, quick=quick)


def slug(name: str) -> str:
    """A name as a folder may have it."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "case"


def _written(description: MachineDescription, path: Path) -> Machine:
    write_text_atomically(path, machine_yaml(description))
    return load_machine(str(path))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InputError(f"cannot be written: {failure.strerror}", str(folder)) from None


def _check_host(machine: Machine, name: str) -> None:
    """Refuses a machine that cannot be this host: predictions would be of another one."""
    here = len(host_layout().cpus)
    threads = sum(node.threads for node in machine.nodes)
    if threads != here:
        raise InputError(
            f"machine '{machine.name}' has {threads} hardware threads, and this host may use "
            f"{here}",
            name,
            expected="a machine file of this host, as 'numatwin machine measure' writes",
        )


def _part(progress: Progress, first: float, last: float) -> Progress:
    return lambda share, what: progress(first + share * (last - first), what)

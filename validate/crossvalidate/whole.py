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
from ..measure.session import check_engine
from .primitives import primitive_rows
from .result import Result
from .session import Play, Session
from .suite import load_suite

Progress = Callable[[float, str], None]

MACHINE_FILE, RECORDS = "machine.yaml", "records"
# Of the progress, what measuring the host takes.
MEASURING = 0.15


def crossvalidated(
    suite: str,
    machine: str | None,
    folder: Path,
    *,
    quick: bool = False,
    play: Play = run_scenario,
    progress: Progress | None = None,
) -> Result:
    """Cross-validates this host on a bundled suite, or one in a file.

    ``machine``: a machine file of this host; without it, the host is measured now. ``folder`` gets
    the machine file and the records. Raises InputError, for bad input before anything is measured.
    """
    check_engine()
    _make(folder)
    path = folder / MACHINE_FILE
    if machine is not None:
        # What was loaded, not where it was: the folder holds all that the rows come from.
        described = load_machine(machine).description
        loaded = _written(described, path)
        _check_host(loaded, machine)
        measured = 0.0
        ready = load_suite(suite, path, loaded, quick=quick)
    else:
        layout = _written(host_layout().description, path)
        load_suite(suite, path, layout, quick=quick)  # its mistakes now, not after a minute
        told = None if progress is None else _part(progress, 0.0, MEASURING)
        result = measure_host(quick=quick, progress=told)
        if result.interrupted:
            raise KeyboardInterrupt
        loaded = _written(measured_description(result), path)
        measured = MEASURING
        ready = load_suite(suite, path, loaded, quick=quick)

    def keep(case: str, name: str, record: Record) -> None:
        record.save(folder / RECORDS / slug(case) / name)

    session = Session(
        ready.cases,
        ready.rounds,
        play=play,
        keep=keep,
        progress=None if progress is None else _part(progress, measured, 1.0),
    )
    found = session.run()
    return Result(ready, loaded, tuple(primitive_rows(path, loaded)), found)


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

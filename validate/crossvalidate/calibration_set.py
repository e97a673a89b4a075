"""The calibration set of some parts of ``machine measure`` alone: measured now, without any run."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...engine_native import require_engine
from ...inputs import InputError, write_json, write_text_atomically
from ...inputs.progress import StepProgress, part_of, silent
from ...sim.run.record import Record
from ...sim.run.runner import run_scenario
from ...topologies import Machine, load_machine
from ...topologies.export import machine_yaml
from ...topologies.schema import MachineDescription
from ..measure import Result as Measured
from ..measure import measure_pass, measured_description, merged
from ..measure.layout import host_layout
from .primitives import primitive_rows
from .result import ROWS_FILE, Errors, Result, errors_of
from .rows import Row
from .session import Found, Session
from .suite import Case, Suite, load_suite

# Of all that is asked for, as these parts are held against one another and against nothing else.
PASSES = 5


@dataclass(frozen=True)
class CalibrationSet:
    """``rows``: of each figure of these ``parts`` that the cost model can predict."""

    machine: Machine
    parts: tuple[str, ...]
    rows: tuple[Row, ...]

    @cached_property
    def errors(self) -> list[Errors]:
        """By kind."""
        return errors_of(self.rows)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the measurements."""
        return tuple(self.machine.description.warnings)

    def as_json(self) -> dict[str, Any]:
        """The stable form of ``--json``."""
        host = self.machine.description.host
        return {
            "only": list(self.parts),
            "version": __version__,
            "machine": self.machine.name,
            "host": None if host is None else host.model_dump(mode="json", exclude_none=True),
            "warnings": list(self.warnings),
            "summary": [asdict(errors) for errors in self.errors],
            "rows": [row.as_json() for row in self.rows],
        }


def calibration_set(
    parts: Sequence[str], folder: Path, *, quick: bool = False, progress: StepProgress = silent
) -> CalibrationSet:
    """Measures these parts of this host; ``folder`` gets the machine file and, by each pass, rows.

    Raises InputError for an unknown part, and where nothing of them is predicted;
    KeyboardInterrupt where it was interrupted.
    """
    make_folder(folder)
    passes = 1 if quick else PASSES
    found = []
    for pass_number in range(passes):
        share = part_of(progress, pass_number / passes, (pass_number + 1) / passes)
        found.append(measure_pass(quick=quick, only=parts, progress=share))
        if found[-1].interrupted:
            raise KeyboardInterrupt
        machine = written_machine(measured_description(merged(found)), folder / MACHINE_FILE)
        rows = tuple(primitive_rows(machine))
        if not rows:
            raise InputError(
                f"--only: the cost model predicts no figure of {', '.join(parts)} from others",
                expected="a part such as buffering, copies or bandwidth",
            )
        known = CalibrationSet(machine, tuple(parts), rows)
        write_json(folder / ROWS_FILE, known.as_json())
    return known


MACHINE_FILE, RECORDS = "machine.yaml", "records"
# Of the progress, what the first pass over the host takes.
MEASURING = 0.1


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
    progress: StepProgress = silent,
) -> Result:
    """Cross-validates this host on a bundled suite, or one in a file.

    ``machine``: a machine file of this host; without it, the host is measured now. ``folder`` gets
    the machine file, the records, and after each run all rows so far.
    Raises InputError, for bad input before anything is measured.
    """
    ready = planned(suite, machine, folder, quick=quick)  # its mistakes now, not after a minute
    host, measured = None, 0.0
    if machine is None:
        host, measured = _Host(suite, folder / MACHINE_FILE, ready.rounds, quick), MEASURING
        ready = host.first(part_of(progress, 0.0, MEASURING))

    if not ready.cases:  # a host that is not measured yet may be able to after all
        raise InputError(
            f"no run of the suite can run here: {ready.left_out[0].reason}", str(ready.path)
        )

    def keep(case: str, name: str, record: Record) -> None:
        record.save(folder / RECORDS / slug(case) / name)

    primitives = tuple(primitive_rows(ready.machine))
    known = ready

    def store(found: Found) -> None:
        Result(known, primitives, found).save(folder)

    session = Session(
        ready.cases,
        ready.rounds,
        host=host,
        play=run_scenario,
        keep=keep,
        store=store,
        progress=part_of(progress, measured, 1.0),
    )
    found = session.run()
    if host is not None:
        ready = host.suite(1 if not found.predicted_again else len(host.passes))
    return Result(ready, tuple(primitive_rows(ready.machine)), found)


class _Host:
    """This host, measured in a pass before each round. Its machine file is at ``path``."""

    def __init__(self, suite: str, path: Path, passes: int, quick: bool) -> None:
        self._suite, self._path, self._number, self._quick = suite, path, passes, quick
        self.passes: list[Measured] = []

    def first(self, progress: StepProgress) -> Suite:
        """The suite after the first pass; what it found stays where it is interrupted."""
        self._measured(progress)
        ready = self.suite(1)
        if self.passes[0].interrupted:
            raise MeasuringInterrupted(len(self.passes[0].host.parts), self._path)
        return ready

    def measure(self, progress: StepProgress) -> None:
        """One more pass."""
        self._measured(progress)
        if self.passes[-1].interrupted:
            self.passes.pop()
            raise KeyboardInterrupt

    def cases(self) -> Sequence[Case]:
        """By all passes."""
        return self.suite(len(self.passes)).cases

    def suite(self, passes: int) -> Suite:
        """On the machine as so many passes found it, which then stands in the file."""
        machine = written_machine(measured_description(merged(self.passes[:passes])), self._path)
        return load_suite(self._suite, self._path, machine, quick=self._quick)

    def _measured(self, progress: StepProgress) -> None:
        again = bool(self.passes)
        self.passes.append(
            measure_pass(quick=self._quick, passes=self._number, again=again, progress=progress)
        )


def planned(suite: str, machine: str | None, folder: Path, *, quick: bool = False) -> Suite:
    """The suite on this host, before anything is measured: sizes and counts from the kernel.

    The machine file is in ``folder`` then: what was loaded, as all rows come from it.
    """
    require_engine()
    make_folder(folder)
    path = folder / MACHINE_FILE
    if machine is None:
        loaded = written_machine(host_layout().description, path)
    else:
        loaded = written_machine(load_machine(machine).description, path)
        _check_host(loaded, machine)
    return load_suite(suite, path, loaded, quick=quick)


def slug(name: str) -> str:
    """A name as a folder may have it."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "case"


def written_machine(description: MachineDescription, path: Path) -> Machine:
    """The machine as its file has it, which is written first."""
    write_text_atomically(path, machine_yaml(description))
    return load_machine(str(path))


def make_folder(folder: Path) -> None:
    """Makes it where it is missing. Raises InputError."""
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

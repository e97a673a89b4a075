"""The calibration set of some parts of ``machine measure`` alone: measured now, without any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...inputs import InputError, write_json
from ...topologies import Machine
from ..measure import measure_pass, measured_description, merged
from ..measure.passes import part_of
from .primitives import primitive_rows
from .result import ROWS_FILE
from .rows import Row
from .summary import Errors, errors_of
from .whole import MACHINE_FILE, Progress, make_folder, written_machine

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
            "summary": [error.as_json() for error in self.errors],
            "rows": [row.as_json() for row in self.rows],
        }

    def save(self, folder: Path) -> None:
        """Writes the rows into ``folder``, whole or not at all."""
        write_json(folder / ROWS_FILE, self.as_json())


def calibration_set(
    parts: Sequence[str], folder: Path, *, quick: bool = False, progress: Progress | None = None
) -> CalibrationSet:
    """Measures these parts of this host; ``folder`` gets the machine file and, by each pass, rows.

    Raises InputError for an unknown part, and where nothing of them is predicted;
    KeyboardInterrupt where it was interrupted.
    """
    make_folder(folder)
    passes = 1 if quick else PASSES
    found = []
    for pass_number in range(passes):
        share = (
            None
            if progress is None
            else part_of(progress, pass_number / passes, (pass_number + 1) / passes)
        )
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
        known.save(folder)
    return known

"""The result of a cross-validation: rows, their summary, the state of the host, and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...inputs import write_json
from ...topologies import Machine
from ..trust import AIM, LEVEL, Coverage
from .rows import Row
from .session import Found
from .suite import LeftOut, Suite
from .summary import (
    MEDIAN_MAX,
    NEAR,
    NEAR_SHARE,
    WORST_MAX,
    Check,
    Errors,
    checks_of,
    coverage_of,
    errors_of,
    spread_warnings,
)

ROWS_FILE = "rows.json"
NOISY = "noisy host"


@dataclass(frozen=True)
class Result:
    """``primitives``: the calibration set; ``found``: what the session found."""

    suite: Suite
    primitives: tuple[Row, ...]
    found: Found

    @property
    def machine(self) -> Machine:
        """The host, as its machine file has it."""
        return self.suite.machine

    @cached_property
    def rows(self) -> list[Row]:
        """The calibration set, then the test set."""
        return [*self.primitives, *self.found.rows()]

    @cached_property
    def noise(self) -> list[str]:
        """Reasons to distrust what was measured; those of the machine file come first."""
        warnings = [
            f"{text} (when it was measured)"
            for text in self.machine.description.warnings
            if text.startswith(NOISY)
        ]
        return [*warnings, *self.found.noise(), *spread_warnings(self.rows)]

    @property
    def left_out(self) -> list[LeftOut]:
        """What has no row, and why."""
        return [*self.suite.left_out, *self.found.left_out()]

    @property
    def warnings(self) -> list[str]:
        """All that a reader should know, of noise and else."""
        return self.noise + ([self.found.not_kept] if self.found.not_kept is not None else [])

    @cached_property
    def errors(self) -> list[Errors]:
        """By set, kind and plane."""
        return errors_of(self.rows)

    @cached_property
    def checks(self) -> list[Check]:
        """The aim, part by part."""
        return checks_of(self.rows)

    @cached_property
    def coverage(self) -> list[Coverage]:
        """By kind, how many measurements 90% intervals hold that the other runs' errors make."""
        return coverage_of(self.rows)

    @property
    def holds(self) -> bool:
        """Whether every run came to its end, and the aim is reached; nothing to judge is no."""
        return (
            not self.found.failures
            and bool(self.checks)
            and all(check.holds for check in self.checks)
        )

    def as_json(self) -> dict[str, Any]:
        """The stable form of ``--json``."""
        host = self.machine.description.host
        return {
            "suite": self.suite.name,
            "version": __version__,
            "machine": self.machine.name,
            "host": None if host is None else host.model_dump(mode="json", exclude_none=True),
            "rounds": self.found.rounds,
            "interrupted": self.found.interrupted,
            "noisy": bool(self.noise),
            "noise": self.noise,
            "warnings": self.warnings,
            "aim": {
                "median_error": MEDIAN_MAX,
                "within_10_percent": NEAR_SHARE,
                "near": NEAR,
                "worst_error": WORST_MAX,
            },
            "summary": [error.as_json() for error in self.errors],
            "coverage": [
                {
                    "kind": one.group,
                    "rows": one.rows,
                    "level": LEVEL,
                    "held": one.held,
                    "width": one.width,
                    "aim": list(AIM),
                    "judgeable": one.judgeable,
                }
                for one in self.coverage
            ],
            "checks": [check.as_json() for check in self.checks],
            "holds": self.holds,
            "rows": [row.as_json() for row in self.rows],
            "left_out": [left_out.as_json() for left_out in self.left_out],
            "failures": [failure.as_json() for failure in self.found.failures],
        }

    def save(self, folder: Path) -> None:
        """Writes the rows into ``folder``, whole or not at all."""
        write_json(folder / ROWS_FILE, self.as_json())

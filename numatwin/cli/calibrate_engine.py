"""``numatwin calibrate --from FILE.csv``: the costs of a user's own engine, and its profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import Part, present, progress_bar, whole_table

if TYPE_CHECKING:
    from ..validate.calibrate import Calibration
    from ..validate.calibrate.engine_fit import EngineFit
    from .calibrate import FitOptions

Rows = Callable[["Calibration"], Iterator[Part]]


def calibrate_own(machine: str, source: list[Path], fit: FitOptions, rows: Rows) -> None:
    """Fits, writes what was asked for, and prints; what is to be written can be."""
    from ..inputs import InputError
    from ..validate.calibrate.engine_fit import calibrate_engine, profile_yaml

    if len(source) > 1:
        raise InputError(
            "--from: an engine's throughputs cannot be combined with other files",
            token=str(source[1]),
            expected="only one .csv file",
        )
    with progress_bar("fitting") as progress:
        found = calibrate_engine(
            machine,
            source[0],
            scenario=fit.scenario,
            settings=fit.set_ or [],
            share=fit.held_out,
            progress=progress,
        )
    fit.keep(found.calibration, profile_yaml(found, fit.out.stem) if fit.out else "")
    parts = chain(_parts(found, rows), fit.files("Engine profile"))
    present(fit.json, lambda: _as_json(found), parts)


def _as_json(found: EngineFit) -> dict[str, Any]:
    from ..validate.calibrate import as_json

    plain: dict[str, Any] = as_json(found.calibration)
    plain |= {"system": found.system, "scenario": found.scenario, "facts": dict(found.facts)}
    return plain | {"warning": found.warning(), "misfit": found.misfit}


def _parts(found: EngineFit, residuals: Rows) -> Iterator[Part]:
    from ..validate.calibrate.engine_fit import LOCK

    fit = found.calibration.fit
    yield f"engine of kind {found.system}, as in {found.scenario}\n"
    rows = [
        (
            one.parameter.name,
            "none" if one.parameter.unit == LOCK else f"{one.parameter.start:.4g}",
            f"{one.value:.4g}{' at its bound' if one.at_bound else ''}",
            f"{one.low:.4g} – {one.high:.4g}",
        )
        for one in fit.estimates.values()
    ]
    yield whole_table(("fitted", "default", "now", "95% interval"), rows)
    for left in fit.left:
        low, high = found.facts[left.parameter.name]["range"]
        yield (
            f"\nnot determined, {left.parameter.start:g} by default, assumed between {low:g} and "
            f"{high:g}: {left.parameter.name}: {left.reason}"
        )
    if found.layouts:
        ran = "; ".join(f"{threads}: {layout}" for threads, layout in found.layouts.items())
        yield f"\nrows ran with (system.threads: of each node) {ran}"
    yield ""
    yield from residuals(found.calibration)
    if (warning := found.warning()) is not None:
        yield f"\nwarning: {warning}"


def is_own(source: list[Path], fit: FitOptions) -> bool:
    """Whether ``source`` has throughputs of an engine; raises InputError for options of the other
    kind of fit.
    """
    from ..inputs import InputError
    from ..validate.calibrate.engine_rows import SUFFIX

    if any(path.suffix.lower() == SUFFIX for path in source):
        return True
    first = fit.set_[0] if fit.set_ else None
    for option, value in (("--scenario", fit.scenario), ("--set", first)):
        if value is not None:
            raise InputError(
                f"{option}: only for the throughputs of an engine",
                token=value,
                expected=f"a {SUFFIX} file after --from",
            )
    return False

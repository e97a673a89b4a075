"""``numatwin calibrate``: a machine's low-level parameters, fitted to measurements."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..inputs import InputError, write_text_atomically
from .files import check_file
from .machine import MachineArgument
from .options import Json, flag, grouped, option
from .output import Part, present, progress_bar, report_parts, whole_table, written_to

if TYPE_CHECKING:
    from ..validate.calibrate import Calibration
    from ..validate.calibrate.engine_fit import EngineFit


@dataclass(frozen=True)
class FitOptions:
    """How it is fitted, and where the result goes."""

    out: Annotated[
        Path | None,
        option("FILE", "Write the calibrated machine, or the engine's profile (.yaml), here."),
    ] = None
    held_out: Annotated[
        float | None,
        option(
            "SHARE",
            "Share of each kind of measurement that is held out; by default 0.2. From MLC's "
            "output: every other point of the loaded-latency curve, and all mixes. From an "
            "engine's throughputs: every third configuration.",
        ),
    ] = None
    seed: Annotated[int, option("N", "Seed that selects the held-out measurements.", min=0)] = 0
    force: Annotated[bool, flag("--force", "Accept measurements of another machine.")] = False
    scenario: Annotated[
        str | None,
        option(
            "SCENARIO",
            "What your engine ran, with a .csv file; by default lookups and upserts of an index.",
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        option(
            "PATH=VALUE", "Another value for any field of that scenario; may be repeated.", "--set"
        ),
    ] = None
    report: Annotated[Path | None, option("FILE", "Write a report (.html) on the fit.")] = None
    json: Json = False

    def check(self, source: list[Path]) -> None:
        """Refuses files that cannot be written; raises InputError."""
        check_file(self.out, ".yaml", ".yml")
        check_file(self.report, ".html", ".htm", option="--report")
        if self.out is not None and realpath(self.out) in map(realpath, source):
            raise InputError(
                "--out: it is a file of --from", token=str(self.out), expected="another file"
            )

    def keep(self, found: "Calibration", text: str) -> None:
        """Writes the result and a report on the fit, where they are wanted."""
        from ..reports.predicted_measured import write_validation
        from ..validate.calibrate.report import validation_of

        if self.out is not None:
            write_text_atomically(self.out, text)
        if self.report is not None:
            write_validation(validation_of(found), self.report)

    def files(self, what: str) -> Iterator[Part]:
        """Where these are; ``what`` the result is."""
        return written_to({what: self.out, "Report": self.report})


@grouped
def calibrate(
    machine: MachineArgument,
    source: Annotated[
        list[Path],
        option(
            "FILE",
            "A file of 'numatwin machine measure', the output of Intel MLC, or the folder of a "
            "Record of 'numatwin run --on native'; may be repeated. Or one .csv file with the "
            "throughputs of your own engine.",
            "--from",
        ),
    ],
    fit: FitOptions = FitOptions(),
) -> None:
    """Fit a machine, or your own engine, to measurements.

    For a machine it fits the low-level parameters. For an engine, given as a .csv file of
    throughputs, it fits the cost of each step: 'numatwin calibrate amd-8n-ht --from store.csv --out
    store.yaml', then 'numatwin run SCENARIO --set engine=store.yaml'.
    """
    from ..sim.systems.registry import check_engines
    from ..topologies import load_machine
    from ..topologies.export import machine_yaml
    from ..validate.calibrate import as_json
    from ..validate.calibrate import calibrate as fitted

    fit.check(source)
    if _is_own(source, fit):
        _calibrate_own(machine, source, fit)
        return
    loaded = load_machine(machine)
    check_engines(loaded)
    with progress_bar("fitting") as progress:
        found = fitted(
            loaded, source, share=fit.held_out, seed=fit.seed, force=fit.force, progress=progress
        )
    fit.keep(found, machine_yaml(found.description))
    present(fit.json, lambda: as_json(found), chain(_parts(found), fit.files("Machine file")))


def _parts(found: "Calibration") -> Iterator[Part]:
    from ..validate.calibrate.report import tables_of, validation_of

    yield validation_of(found).answer
    yield from report_parts(tables_of(found))
    yield from (f"\nwarning: {text}" for text in found.warnings)


def _calibrate_own(machine: str, source: list[Path], fit: FitOptions) -> None:
    """Fits, writes what was asked for, and prints; what is to be written can be."""
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
    parts = chain(_engine_parts(found), fit.files("Engine profile"))
    present(fit.json, lambda: _engine_json(found), parts)


def _engine_json(found: "EngineFit") -> dict[str, Any]:
    from ..validate.calibrate import as_json

    plain: dict[str, Any] = as_json(found.calibration)
    plain |= {"system": found.system, "scenario": found.scenario, "facts": dict(found.facts)}
    return plain | {"warning": found.warning(), "misfit": found.misfit}


def _engine_parts(found: "EngineFit") -> Iterator[Part]:
    from ..validate.calibrate.engine_fit import LOCK
    from ..validate.calibrate.report import errors_table, row_tables

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
    yield from report_parts([errors_table(found.calibration), *row_tables(found.calibration)])
    if (warning := found.warning()) is not None:
        yield f"\nwarning: {warning}"


def _is_own(source: list[Path], fit: FitOptions) -> bool:
    """Whether ``source`` has throughputs of an engine; raises InputError for options of the other
    kind of fit.
    """
    from ..validate.calibrate.engine_rows import SUFFIX

    if any(path.suffix.lower() == SUFFIX for path in source):
        return True
    first = fit.set_[0] if fit.set_ else None
    for name, value in (("--scenario", fit.scenario), ("--set", first)):
        if value is not None:
            raise InputError(
                f"{name}: only for the throughputs of an engine",
                token=value,
                expected=f"a {SUFFIX} file after --from",
            )
    return False

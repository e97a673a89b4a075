"""``numatwin run``: runs one scenario; prints its result, writes a record and a report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..inputs import InputError, check_folder
from ..inputs.file_names import without_endings
from .failures import Ended, after_interrupt
from .files import alone_in
from .options import (
    Json,
    OtherMachine,
    OtherPlane,
    Replications,
    ScenarioName,
    Seed,
    Settings,
    bundled_policies,
    bundled_workloads,
    flag,
    fraction,
    grouped,
    option,
)
from .output import present, progress_bar, progress_bars, show
from .status import INTERRUPTED

if TYPE_CHECKING:
    from ..sim.run.record import Record
    from ..sim.run.runner import RunInterrupted
    from ..sim.run.scenario import Scenario

REPORT_FILE = "report.html"
DIGEST_SHOWN = 8
EFFECTS_NODES_MAX = 16


@dataclass(frozen=True)
class Variant:
    """How a run differs from its scenario."""

    machine: OtherMachine = None
    workload: Annotated[
        str | None,
        option("W", "Another workload: a name or a file.", autocompletion=bundled_workloads),
    ] = None
    policy: Annotated[
        list[str] | None,
        option(
            "P",
            "Another policy: a name, or FILE.py:CLASS; after FAMILY= where the system has several "
            "families; may be repeated.",
            autocompletion=bundled_policies,
        ),
    ] = None
    on: OtherPlane = None
    seed: Seed = None
    replications: Replications = None
    scale: Annotated[
        float | None,
        option("PART", "Scale of the workload's objects, such as 1/50 or 0.02.", parser=fraction),
    ] = None
    machine_scale: Annotated[
        float | None,
        option(
            "PART",
            "With --on emulator: the part of the machine's processors, memory and caches that its "
            "guest has, such as 1/8; by default as much as fits on this host.",
            parser=fraction,
        ),
    ] = None
    numactl: Annotated[
        str | None,
        option(
            "OPTIONS",
            "Place memory and threads as numactl's options say, such as '--membind=1 "
            "--cpunodebind=0' or '-w 0:9,1:1'.",
        ),
    ] = None
    set_: Settings = None

    def load(self, scenario: str, settings: list[str]) -> Scenario:
        """The scenario with these options and ``settings``; raises InputError."""
        from ..sim.run.scenario import load_scenario

        return load_scenario(
            scenario,
            machine=self.machine,
            workload=self.workload,
            policy=self.policy,
            plane=self.on.value if self.on else None,
            seed=self.seed,
            replications=self.replications,
            scale=self.scale,
            settings=settings,
        )

    def settings(self) -> list[str]:
        """Those that numactl's options mean, which are told, and those that are set."""
        from ..sim.run.numactl import numactl_settings

        meant = [] if self.numactl is None else numactl_settings(self.numactl)
        if self.numactl is not None:
            words = " --set ".join(map(shlex.quote, meant))
            print(f"numatwin: numactl means --set {words}", file=sys.stderr)
        return [*meant, *(self.set_ or [])]

    def check(self, loaded: Scenario) -> None:
        """Refuses, or tells, what means nothing on the plane."""
        if self.machine_scale is not None and loaded.plane != "emulator":
            raise typer.BadParameter("--machine-scale: expected with --on emulator")
        if self.replications is not None and self.replications > 1 and loaded.plane == "flow":
            print(
                f"numatwin: the flow plane computes expected rates and draws nothing at random: "
                f"{self.replications} replications would be equal, so it runs one",
                file=sys.stderr,
            )

    def folder(self, scenario: str, digest: str) -> Path:
        """Where the run is kept by default; see ``default_folder``."""
        others = (name for name in (self.machine, self.workload) if name)
        values = {
            "on": self.on,
            "seed": self.seed,
            "replications": self.replications,
            "scale": self.scale,
            "machine-scale": self.machine_scale,
        }
        return default_folder([scenario, *(self.policy or []), *others], values, digest)


@dataclass(frozen=True)
class Result:
    """What becomes of a result."""

    out: Annotated[
        Path | None,
        option(
            "DIR",
            "The folder for record and report; by default a folder in out/ named after SCENARIO "
            "and these options, or nowhere with --json.",
        ),
    ] = None
    assumptions: Annotated[
        bool,
        flag(
            "--assumptions",
            "List what the run assumed, with sources and the effect of each on the result.",
        ),
    ] = False
    uncertainty: Annotated[
        bool | None,
        typer.Option(
            "--uncertainty/--exact",
            help="Give a 90% interval of the throughput, from the ranges of the machine's facts, "
            "from what was assumed, and from the spread of replications; or leave it out. "
            f"By default it is given on machines of up to {EFFECTS_NODES_MAX} nodes, and in JSON.",
        ),
    ] = None
    json: Json = False


@grouped
def run(context: typer.Context, scenario: ScenarioName, variant: Variant, result: Result) -> None:
    """Run a scenario: its throughput and the bottleneck."""
    if result.out is not None:
        check_folder(result.out)  # now, not after a long run
    settings = variant.settings()
    load = partial(variant.load, scenario)
    with _others_counted(scenario):
        loaded = load(settings)
    variant.check(loaded)
    if result.out is None and not result.json:
        out = variant.folder(scenario, loaded.hash if settings else "")
        result = replace(result, out=out)
    with alone_in(result.out):
        record = _run_and_keep(loaded, settings, load, result, variant.machine_scale)
    if not result.json and (words := _longer(record, context.obj)):
        show([f"\nFor long enough to settle: {words}"])


def _run_and_keep(
    loaded: Scenario,
    settings: list[str],
    load: Callable[[list[str]], Scenario],
    result: Result,
    machine_scale: float | None,
) -> Record:
    """Runs ``loaded``, prints its result and keeps it; ``load`` takes other settings."""
    from ..inputs.shared_work import shared
    from ..sim.run.real_planes import REAL

    out = result.out
    record, interrupted = _played(loaded, machine_scale)
    # On a large machine a prediction takes a while, and this is two for each assumption.
    small = _is_small(loaded)
    effects = loaded.plane != "emulator" and interrupted is None and (result.assumptions or small)
    shown = result.assumptions or result.json
    with shared():  # the interval and effects have a predictor in common
        if interrupted is None:
            record = _with_idle_settings(record, settings, load)
            record = _with_effects(record, loaded) if effects and shown else record
            record = _with_uncertainty(record, loaded, result)
        try:
            _print(record, result.json, result.assumptions)
        # Printed before a disk can be full, and kept even if the reader closed the pipe.
        finally:
            if out is not None:
                _keep(record, out, loaded if effects and not shown else None)
    if out is not None and not result.json:
        show([f"\nRecord: {out}\nReport: {out}/{REPORT_FILE}"])
    if result.uncertainty is None and not (small or result.json or loaded.plane in REAL):
        show([f"\nNo interval by default above {EFFECTS_NODES_MAX} nodes: --uncertainty has it."])
    fate = "printed" if out is None else "kept"
    if interrupted is not None and interrupted.lost is not None:
        raise InputError(f"{interrupted.lost}; what was finished is {fate}")
    if interrupted is not None:
        raise after_interrupt(fate)
    return record


def _played(loaded: Scenario, machine_scale: float | None) -> tuple[Record, RunInterrupted | None]:
    """The run, or as much of it as there was before an interruption."""
    from ..sim.run.real_planes import REAL
    from ..sim.run.runner import RunInterrupted, run_scenario

    work = "running" if loaded.plane in REAL else "simulating"
    with progress_bars("loading", work) as (loading, progress):
        try:
            record = run_scenario(
                loaded, progress=progress, loading=loading, machine_scale=machine_scale
            )
        except RunInterrupted as failure:
            return failure.record, failure
    return record, None


def _with_idle_settings(
    record: Record, settings: list[str], load: Callable[[list[str]], Scenario]
) -> Record:
    from ..sim.run.setting_effects import idle_settings

    if not settings:
        return record
    with progress_bar("leaving out settings") as leaving:
        idle = idle_settings(record, settings, lambda chosen: load(list(chosen)), leaving)
    return replace(record, idle_settings=idle)


def _is_small(loaded: Scenario) -> bool:
    return len(loaded.machine.nodes) <= EFFECTS_NODES_MAX


def _with_uncertainty(record: Record, loaded: Scenario, result: Result) -> Record:
    """With a likely interval, where it is wanted; scripts always get it by default."""
    from ..sim.run.real_planes import REAL
    from ..sim.run.uncertainty import with_uncertainty

    wanted = result.uncertainty
    if wanted is None:
        wanted = loaded.plane not in REAL and (result.json or _is_small(loaded))
    if not wanted:
        return record
    with progress_bar("drawing facts") as drawing:
        return with_uncertainty(record, loaded, drawing)


def _longer(record: Record, words: Sequence[str]) -> str:
    """The command of these words with a longer horizon, where that is what a run lacked that did
    not settle; empty of others.
    """
    from ..sim.run.comparison import settled

    if settled([record]):
        return ""
    from ..sim.run.replications import longer_horizon

    setting = longer_horizon(record.horizon_s)
    if not any(f"'{setting}'" in warning for warning in record.warnings):
        return ""
    return shlex.join(["numatwin", *words, "--set", setting])


@contextmanager
def _others_counted(scenario: str) -> Iterator[None]:
    """Of a scenario with several errors, the one line tells where to see all."""
    try:
        yield
    except InputError as failure:
        from .check import scenario_errors

        count = 0
        with suppress(InputError):  # no such file: there is nothing more to say
            count = len(scenario_errors(scenario))
        if count > 1:
            failure.hint = f"'numatwin scenario check {scenario}' lists all {count} errors"
        raise


def _with_effects(record: Record, loaded: Scenario) -> Record:
    from ..sim.run.runner import with_effects

    return with_effects(record, loaded)


def default_folder(names: Iterable[str], values: Mapping[str, object], digest: str) -> Path:
    """The folder in ``out`` whose name distinguishes a run from others of its scenario.

    It joins the ``names`` (of files, without folder and ending), the ``values`` that are not None,
    each after its option, and the first digits of a ``digest`` where there is one.
    """
    parts = [_short(name) for name in names]
    parts += [f"{option}-{value}" for option, value in values.items() if value is not None]
    return Path("out") / "-".join([*parts, *([digest[:DIGEST_SHOWN]] if digest else [])])


def _short(name: str) -> str:
    """``mine`` of ``files/mine.yaml`` or ``mine.tar.gz.yaml``, ``mine-Balancer`` of
    ``mine.py:Balancer``, ``balancing-ma-8`` of ``balancing=ma-8``; else the name.
    """
    family, of_family, policy = name.partition("=")
    if of_family and family.isidentifier():
        return f"{family}-{_short(policy)}"
    file, of_file, class_name = name.rpartition(".py:")
    if of_file:
        return f"{Path(file).name}-{class_name}"
    return without_endings(Path(name).name)


def _print(record: Record, json: bool, assumptions: bool) -> None:
    from .assumptions import assumption_parts
    from .record_facts import idle_setting, record_parts

    for idle in record.idle_settings if json else ():
        print(f"numatwin: {idle_setting(idle)}", file=sys.stderr)
    parts = chain(record_parts(record), assumption_parts(record) if assumptions else ())
    present(json, record.as_json, parts)
    sys.stdout.flush()  # what else is written may take a moment


def _keep(record: Record, out: Path, assumed: Scenario | None) -> None:
    """Writes record and report into ``out``, of the scenario ``assumed`` with the effects of what
    was assumed, as nobody waits for them; a report that cannot be written costs no record.
    """
    from ..reports import write_report

    report, kept = out / REPORT_FILE, f"the record is kept in {out}"
    try:
        if assumed is not None:
            record = _with_effects(record, assumed)
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED, f"interrupted; {kept}, its report in {report}") from None
    finally:
        record.save(out)
        try:
            write_report([record], report)
        except InputError as failure:
            failure.message += f"; {kept}"
            raise
        except KeyboardInterrupt:
            command = shlex.join(["numatwin", "report", str(out), "--out", str(report)])
            text = f"interrupted; {kept}; for its report: {command}"
            raise Ended(INTERRUPTED, text) from None

"""The runs that rows of measured throughputs are of."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import Document, InputError
from ...sim.run.scenario import Scenario, scenario_of_document
from ...sim.run.what_if import Predictor
from ...sim.systems.registry import system_of
from .engine_calibration import OwnEngine
from .engine_rows import EngineRow


def run_of_row(
    base: Document,
    settings: Sequence[str],
    machine: str | None,
    whole: Scenario,
    own: OwnEngine | None,
    row: EngineRow,
) -> Scenario:
    """The scenario that a row is of; raises InputError with the row's place."""
    operations = whole.workload.at(0.0).operations
    if row.operation not in operations:
        raise row.error(
            "operation",
            f"scenario {whole.name} has no such operation",
            row.operation,
            f"one of {', '.join(operations)}, or another --scenario",
        )
    lines = [
        f"workload.operations.{name}.share={float(name == row.operation):g}" for name in operations
    ]
    lines += _counted(whole, own, row)
    try:
        run = scenario_of_document(
            base,
            (*settings, *lines, *(f"{path}={value}" for path, value in row.fields)),
            machine=machine,
            plane="flow" if "flow" in system_of(whole.system).planes else None,
        )
        Predictor(run)  # which tells whether the data fit
        return run
    except InputError as failure:
        path = next((p for p, _ in row.fields if p in f"{failure.file} {failure.message}"), "")
        raise row.error(path, f"cannot be run: {failure}") from None


def _counted(whole: Scenario, own: OwnEngine | None, row: EngineRow) -> Sequence[str]:
    """What a row's threads, nodes and size mean in the scenario."""
    if own is not None:
        return own.settings(whole, row)
    for column, count in (("threads", row.threads), ("nodes", row.nodes), ("size", row.size)):
        if count is not None:
            raise row.error(
                column,
                f"{column}: systems of this kind say it by fields of the scenario",
                str(count),
                "a column such as system.nodes",
            )
    return ()

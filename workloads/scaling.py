"""Scaling of a workload: all objects and ranges of keys shrink by the same factor."""

from __future__ import annotations

from dataclasses import replace

from ..inputs import DescriptionError
from .schema import DataObject
from .workload import PhaseState, ResolvedOperation, Workload


def scaled(workload: Workload, factor: float) -> Workload:
    """``workload`` with ``factor`` times the keys, entries, records and rows, 0 < factor <= 1.

    Hot ranges and recorded keys shrink with their object; mix, popularity and phases stay. A column
    whose values are all different keeps that; else it has the same values, as long as there are
    rows for them. Raises DescriptionError where so few records are left that a transaction cannot
    read different ones, or fewer rows than parts.
    """
    if factor == 1.0:
        return workload
    objects = {name: _object(name, stored, factor) for name, stored in workload.objects.items()}
    for name, operation in workload.operations.items():
        if operation.kind == "query":
            continue
        reads, records = operation.reads or 0, objects[operation.object].records
        if operation.kind == "transaction" and records < reads:
            raise DescriptionError(
                ("scale",),
                f"operation '{name}' reads {reads} different records, and table "
                f"'{operation.object}' has {records} left: expected a larger scale",
            )
    description = workload.description.model_copy(update={"objects": objects})
    return Workload(description, tuple(_phase(phase, objects, factor) for phase in workload.phases))


def _object(name: str, stored: DataObject, factor: float) -> DataObject:
    changed: dict[str, object] = {}
    if stored.rows is not None and stored.columns is not None:
        rows = max(round(stored.rows * factor), 1)
        if rows < stored.parts:
            raise DescriptionError(
                ("scale",),
                f"table '{name}' has {rows} rows left in {stored.parts} parts: expected a larger "
                "scale",
            )
        changed["rows"], changed["columns"] = (
            rows,
            {
                column: described.model_copy(
                    update={
                        "distinct": rows
                        if described.distinct == stored.rows
                        else min(described.distinct, rows)
                    }
                )
                for column, described in stored.columns.items()
            },
        )
    for field in ("keys", "entries", "records"):
        amount = getattr(stored, field)
        if amount:
            changed[field] = max(round(amount * factor), 1)
    return stored.model_copy(update=changed)


def _phase(phase: PhaseState, objects: dict[str, DataObject], factor: float) -> PhaseState:
    def scaled_operation(operation: ResolvedOperation) -> ResolvedOperation:
        if operation.keys is None or operation.kind == "aggregate":  # as many groups as before
            return operation
        stored = objects[operation.object]
        keys = stored.records if stored.kind == "table" else stored.keys
        assert keys
        return replace(operation, keys=operation.keys.scaled(keys))

    return replace(
        phase, operations={name: scaled_operation(o) for name, o in phase.operations.items()}
    )

"""A workload made smaller: every object and every range of keys shrinks alike."""

from __future__ import annotations

from dataclasses import replace

from ..inputs import DescriptionError
from .schema import DataObject
from .workload import PhaseState, ResolvedOperation, Workload


def scaled(workload: Workload, factor: float) -> Workload:
    """``workload`` with ``factor`` times the keys, entries and records, 0 < factor <= 1.

    Hot ranges and recorded keys shrink with their object; mix, popularity and phases stay. Raises
    DescriptionError where so few records are left that a transaction cannot read different ones.
    """
    if factor == 1.0:
        return workload
    objects = {name: _object(stored, factor) for name, stored in workload.objects.items()}
    for name, operation in workload.operations.items():
        reads, records = operation.reads or 0, objects[operation.object].records
        if operation.kind == "transaction" and records < reads:
            raise DescriptionError(
                ("scale",),
                f"operation '{name}' reads {reads} different records, and table "
                f"'{operation.object}' has {records} left: expected a larger scale",
            )
    description = workload.description.model_copy(update={"objects": objects})
    return Workload(description, tuple(_phase(one, objects, factor) for one in workload.phases))


def _object(stored: DataObject, factor: float) -> DataObject:
    changed = {}
    for field in ("keys", "entries", "records"):
        amount = getattr(stored, field)
        if amount:
            changed[field] = max(round(amount * factor), 1)
    return stored.model_copy(update=changed)


def _phase(phase: PhaseState, objects: dict[str, DataObject], factor: float) -> PhaseState:
    def one(operation: ResolvedOperation) -> ResolvedOperation:
        if operation.keys is None:
            return operation
        stored = objects[operation.object]
        keys = stored.records if stored.kind == "table" else stored.keys
        assert keys
        return replace(operation, keys=operation.keys.scaled(keys))

    return replace(phase, operations={name: one(o) for name, o in phase.operations.items()})

"""Observations to put before policies."""

import numpy as np
import numpy.typing as npt

from numatwin.sim.systems.eris.commands import BalancingObservation, ObjectObservation


def index(
    loads: npt.ArrayLike, bounds: npt.ArrayLike | None = None, *, balancing: bool = False
) -> ObjectObservation:
    """An index whose partitions have those loads; 100 keys each if no bounds are given."""
    load = np.asarray(loads, dtype=np.float64)
    count = len(load)
    edges = np.asarray(100 * np.arange(count + 1) if bounds is None else bounds, dtype=np.int64)
    # Load is frequency times core time: spread over both.
    execution_s = np.where(load > 0, 1e-6 * (1 + np.arange(count)), 0.0)
    return ObjectObservation(
        kind="index",
        bounds=edges,
        sizes=np.diff(edges).astype(np.float64),
        accesses_per_s=np.divide(load, execution_s, out=np.zeros(count), where=load > 0),
        execution_s=execution_s,
        nodes=np.zeros(count, dtype=np.int64),
        balancing=balancing,
    )


def column(sizes: npt.ArrayLike, *, balancing: bool = False) -> ObjectObservation:
    """A column whose partitions have those sizes."""
    entries = np.asarray(sizes, dtype=np.float64)
    count = len(entries)
    return ObjectObservation(
        kind="column",
        bounds=None,
        sizes=entries,
        accesses_per_s=np.ones(count),
        execution_s=np.ones(count),
        nodes=np.zeros(count, dtype=np.int64),
        balancing=balancing,
    )


def observed(**objects: ObjectObservation) -> BalancingObservation:
    """All those objects, half a second after the start."""
    return BalancingObservation(time_s=0.5, period_s=0.5, objects=objects)

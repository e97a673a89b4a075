"""What a machine predicts of each kind of measurement, through the cost model that planes use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from ...sim.machine.costs import LINE_BYTES
from ...sim.machine.streams import random_Bps, streamed_Bps
from ...topologies.machine import Machine
from .candidate import Candidate, peak_Bps
from .engine_calibration import engine_calibrations
from .native_prediction import native_step_s, native_throughput
from .observation import (
    ATOMIC,
    CACHE,
    IDLE,
    LINE,
    LOADED,
    MACHINE_READ,
    MIX,
    RANDOM,
    READ,
    STEP,
    THROUGHPUT,
    Kind,
    Measured,
    Observation,
)
from .words_between_cores import atomic_s, line_s


def predict(candidate: Candidate, observation: Observation) -> float:
    """The figure in the unit of ``observation``; NaN where the machine does not tell it."""
    prediction = PREDICTIONS.get(observation.kind) or _of_engines()[observation.kind]
    return prediction(candidate, observation)


def _idle(candidate: Candidate, observation: Observation) -> float:
    return float(candidate.machine.latency_ns[_ends(candidate, observation)]) * 1e-9


def _cache(candidate: Candidate, observation: Observation) -> float:
    cache = candidate.machine.nodes[candidate.ids[observation.at["node"]]].cache(
        observation.at["level"]
    )
    return float("nan") if cache is None or cache.latency_ns is None else cache.latency_ns * 1e-9


def _read(candidate: Candidate, observation: Observation) -> float:
    """So many cores of a node stream from a home: what their slots hold, up to what memory or the
    way there delivers. All cores, where their number is not given.
    """
    costs, (i, j) = candidate.costs, _ends(candidate, observation)
    threads = observation.at.get("threads")
    if threads is not None and costs.cores[i] and threads < costs.cores[i]:
        return streamed_Bps(costs, i, j, threads)
    most = float(costs.memory_Bps[j])
    return most if i == j else float(np.fmin(candidate.machine.bandwidth_Bps[i, j], most))


def _machine_read(candidate: Candidate, observation: Observation) -> float:
    return peak_Bps(candidate.machine)


def _loaded(candidate: Candidate, observation: Observation) -> float:
    load = min(observation.at["load"] / peak_Bps(candidate.machine), 1.0)
    return candidate.base_s * float(np.interp(load, *candidate.costs.loaded_latency))


def _mix(candidate: Candidate, observation: Observation) -> float:
    """Peak bandwidth of one node, or of all, where this share of all lines are writes."""
    each = candidate.costs.mixed_memory_Bps(observation.at["written"])
    if "node" in observation.at:
        return float(each[candidate.ids[observation.at["node"]]])
    has_memory = [node.memory_bytes != 0 for node in candidate.machine.nodes]
    return float(each[has_memory].sum())


def _random(candidate: Candidate, observation: Observation) -> float:
    """Independent loads of one core: as many under way as it can have (Little's law)."""
    return random_Bps(candidate.costs, *_ends(candidate, observation)) / LINE_BYTES


def _ends(candidate: Candidate, observation: Observation) -> tuple[int, int]:
    return candidate.ids[observation.at["node"]], candidate.ids[observation.at["home"]]


PREDICTIONS: Mapping[Kind, Callable[[Candidate, Observation], float]] = {
    IDLE: _idle,
    CACHE: _cache,
    READ: _read,
    MACHINE_READ: _machine_read,
    LOADED: _loaded,
    MIX: _mix,
    RANDOM: _random,
    ATOMIC: atomic_s,
    LINE: line_s,
    STEP: native_step_s,
    THROUGHPUT: native_throughput,
}


@cache
def _of_engines() -> Mapping[Kind, Callable[[Candidate, Observation], float]]:
    return {
        kind: prediction
        for engine in engine_calibrations()
        for kind, prediction in engine.predictions.items()
    }


def without_costs_unknown(measured: Measured, machine: Machine) -> Measured:
    """What was measured, less what ``machine`` has no cost of that could be fitted.

    A factor on a cost of 0 moves nothing: such steps take less than a clock tells.
    """
    own = Candidate(machine, (), {})
    used = [
        observation
        for observation in measured.observations
        if not observation.kind.scaled or predict(own, observation) > 0
    ]
    lost = len(measured.observations) - len(used)
    if not lost:
        return measured
    unused = {**measured.unused, f"{machine.name} has no such cost among those of processes": lost}
    return replace(measured, observations=tuple(used), unused=unused)

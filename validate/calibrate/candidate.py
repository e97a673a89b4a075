"""A machine with some of its parameters replaced, as the fit tries it, and its cost model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...sim.machine.costs import CostModel
from ...topologies.machine import Machine, Node
from .curve import KNOTS, curve
from .engine_calibration import Facts, engine_calibrations
from .parameters import CURVE, Key, PairClass, node_types
from .words_between_cores import KEYS as WORDS

# Digits that count: a value that was moved and moved back is the same, but for its last ones.
DIGITS = 12


class Candidate:
    """``machine`` with ``values`` (SI) in place of its own, by the key of their parameter."""

    def __init__(
        self, machine: Machine, classes: Sequence[PairClass], values: Mapping[Key, float]
    ) -> None:
        self.base, self.classes, self.values = machine, classes, values
        self.ids = {node.id: k for k, node in enumerate(machine.nodes)}

    @cached_property
    def _facts(self) -> dict[str, Facts]:
        """What runs could see of the values: what they make of each part of an engine, and all
        that is not of an engine, nor met by a run on one machine.
        """
        engines = engine_calibrations()
        left_out = {*WORDS, *(key for engine in engines for key in engine.keys)}
        found: dict[str, list[tuple[object, float]]] = {}
        for key, value in self.values.items():
            if key[0] not in left_out:
                found.setdefault("", []).append((key, _rounded(value)))
        for engine in engines:
            seen = {} if engine.run_facts is None else engine.run_facts(self.base, self.values)
            for part, facts in seen.items():
                of_part = found.setdefault(part, [])
                of_part += [(name, _rounded(value)) for name, value in facts]
        return {part: tuple(facts) for part, facts in found.items()}

    def facts(self, unseen: Collection[str]) -> Facts:
        """What a run could see of the values that does not meet the parts ``unseen``."""
        return tuple(
            fact for part, facts in self._facts.items() if part not in unseen for fact in facts
        )

    @cached_property
    def machine(self) -> Machine:
        """The machine with these values."""
        base, values = self.base, self.values
        latency, bandwidth = base.latency_ns.copy(), base.bandwidth_Bps.copy()
        memory_Bps: dict[int, float] = {}
        for pair_class in self.classes:
            if (found := values.get(("latency", pair_class.name))) is not None:
                latency[pair_class.mask] = found * 1e9
            if (found := values.get(("bandwidth", pair_class.name))) is not None:
                bandwidth[pair_class.mask] = found
                if pair_class.local:
                    homes = np.flatnonzero(pair_class.mask.any(axis=0)).tolist()
                    memory_Bps |= dict.fromkeys(homes, found)
        nodes = tuple(
            self._node(node, kind, memory_Bps.get(k))
            for k, (node, kind) in enumerate(zip(base.nodes, node_types(base), strict=True))
        )
        changed = replace(base, latency_ns=latency, bandwidth_Bps=bandwidth, nodes=nodes)
        for engine in engine_calibrations():
            if engine.with_values is not None:
                changed = engine.with_values(changed, base, values)
        if all(("curve", part) in values for part in CURVE):
            changed = replace(changed, loaded_latency=self._points(changed))
        return changed

    def _node(self, node: Node, kind: str, memory_Bps: float | None) -> Node:
        values = self.values
        own = node.memory_bandwidth_Bps
        return replace(
            node,
            memory_bandwidth_Bps=own if memory_Bps is None else memory_Bps,
            outstanding_misses=values.get(("misses", kind), node.outstanding_misses),
            streaming_misses=values.get(("streaming", kind), node.streaming_misses),
            write_turnaround=values.get(("turnaround", kind), node.write_turnaround),
            caches=tuple(
                replace(cache, latency_ns=values[key] * 1e9)
                if (key := ("cache", kind, str(cache.level))) in values
                else cache
                for cache in node.caches
            ),
        )

    def _points(self, machine: Machine) -> tuple[tuple[float, float], ...]:
        """The curve as a machine has it: read bandwidth of the machine, latency in ns."""
        ratios = curve(KNOTS, *(self.values["curve", part] for part in CURVE))
        peak, base_ns = peak_Bps(machine), self.base_s * 1e9
        return tuple(
            (load * peak, ratio * base_ns)
            for load, ratio in zip(KNOTS.tolist(), ratios.tolist(), strict=True)
        )

    @property
    def base_s(self) -> float:
        """Latency at no load, as the tool sees it that measures latency under load."""
        found = self.values.get(("curve", "base"))
        return float(np.nanmin(self.costs.latency_s)) if found is None else found

    @cached_property
    def costs(self) -> CostModel:
        """Its cost model."""
        return CostModel(self.machine)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def peak_Bps(machine: Machine) -> float:
    """What all nodes with CPUs read together, each from its own memory; NaN where unknown."""
    own = [
        node.memory_bandwidth_Bps or machine.bandwidth_Bps[k, k]
        for k, node in enumerate(machine.nodes)
        if node.memory_bytes != 0 and (node.cores or not any(node.cores for node in machine.nodes))
    ]
    return float(np.sum(own))

"""Which settings of a run hardly change its results, and what limits it instead.

Each setting is left out once and the scenario simulated again, by the same plane and on the same
draws: what depends on the setting comes out differently, to the last digit where it is drawn at
random. That takes one more run a setting (one replication, of a random run), so it is done within
``BUDGET_S``.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...inputs import InputError
from ...inputs.progress import Progress, silent
from ...inputs.settings import SHOWN_MAX
from ..planes.outcome import ResourceUse
from .real_planes import REAL
from .record import Record, part_at
from .runner import maker_of, outcome_of_flows
from .scenario import Scenario
from .what_if import FLOW

BUDGET_S = 5.0
# What the flow plane's search leaves open.
SAME = 1e-6

# A change of throughput below this is told as little, if the run knows its throughput that well.
LITTLE, KNOWN = 0.02, 0.01
# What is simulated; the other fields say how long, how often and under which name.
PARTS = ("machine", "workload", "system", "policies")

Load = Callable[[Sequence[str]], Scenario]
"""From settings to the scenario that has them."""
Figures = Mapping[str, float | None]


def idle_settings(
    record: Record, settings: Sequence[str], load: Load, progress: Progress = silent
) -> tuple[dict[str, Any], ...]:
    """``Record.idle_settings``: of the settings with which ``load`` gave what ``record`` is of,
    those that change throughput and latency little or not at all.

    None of a real run, which is never the same twice, nor of one in which nothing was done.
    """
    if record.plane in REAL or not any(record.throughput.values()):
        return ()
    began, found = time.perf_counter(), []
    instead = "; ".join(dict.fromkeys(why.resource for why in record.why.values()))
    for index, setting in enumerate(settings):
        shown = setting if len(setting) <= SHOWN_MAX else setting[: SHOWN_MAX - 1] + "…"
        effect: dict[str, Any] | None = {"throughput": None, "changes": None}
        if time.perf_counter() - began + _wall_s(record) <= BUDGET_S:
            effect = _effect(record, setting, (*settings[:index], *settings[index + 1 :]), load)
        if effect is not None:
            bound = instead if setting.partition(".")[0] in PARTS else ""
            found.append({"setting": shown, **effect, "instead": bound or None})
        progress((index + 1) / len(settings))
    return tuple(found)


def _wall_s(record: Record) -> float:
    """How long one more run takes."""
    wall_s = record.provenance.get("wall_s")
    return float(wall_s) / max(record.replications, 1) if isinstance(wall_s, float) else math.inf


def _effect(
    record: Record, setting: str, others: Sequence[str], load: Load
) -> dict[str, Any] | None:
    """How little ``setting`` changes; None where it changes more, or makes another run of it."""
    played = setting.partition(".")[0] in PARTS
    if record.plane != FLOW and not played:
        return None  # of draws: which, how many and for how long
    try:
        without = load(others)
        if without.hash == record.scenario_hash:
            return {"throughput": dict.fromkeys(record.throughput, 0.0), "changes": []}
        operations = without.workload.operations
        if without.plane != record.plane or set(operations) != set(record.throughput):
            return None
        if without.horizon_s != record.horizon_s:
            return None  # of another length: it may take long, and its totals differ
        if record.plane == FLOW:
            return _of_flows(record, without, played)
        return _of_draws(record, without)
    except InputError:
        return None  # nothing runs without it


def _of_flows(record: Record, without: Scenario, played: bool) -> dict[str, Any] | None:
    outcome = outcome_of_flows(without)
    change = _change(record.throughput, outcome.throughput)
    if not played and not _same(outcome.operations, record.operations):
        return None
    if max(map(abs, change.values())) > (LITTLE if played else SAME):
        return None
    parts: dict[str, tuple[Figures, Figures]] = {
        "use of resources": (_uses(outcome.resources), _uses(record.resources)),
        "memory and link traffic": (outcome.bandwidth_Bps, record.bandwidth_Bps),
        "energy": ({"J": outcome.energy_J}, {"J": record.energy_J}),
    }
    changes = [name for name, (one, other) in parts.items() if not _same(one, other)]
    return {"throughput": change, "changes": changes}


def _of_draws(record: Record, without: Scenario) -> dict[str, Any] | None:
    from .replications import play

    number = min(2, record.replications)  # the first one also looks for what binds
    outcome = play(maker_of(without), without, number, record.warm_up_s).outcome
    before = {name: record.replicates["throughput"][name][number - 1] for name in record.throughput}
    unchanged = before == outcome.throughput
    for name, latencies in outcome.latencies_ns.items():
        means = part_at(record.replicates, ("latency_ns", name, "mean"))
        known_ns = means[number - 1] if isinstance(means, Sequence) else None
        unchanged = unchanged and known_ns == (latencies.mean if latencies.count else None)
    if unchanged:  # the same draws, the same run
        return {"throughput": dict.fromkeys(before, 0.0), "changes": []}
    change = _change(before, outcome.throughput)
    little = max(map(abs, change.values())) <= LITTLE
    if not (little and all(_is_known(record, name) for name in before)):
        return None
    return {"throughput": change, "changes": ["latency"] if record.latency_ns else []}


def _is_known(record: Record, operation: str) -> bool:
    between = record.interval("throughput", operation)
    return between is not None and between[1] - between[0] <= 2 * KNOWN * between[0]


def _change(now: Mapping[str, float], without: Mapping[str, float]) -> dict[str, float]:
    """By how much each is more with the setting, relative to without it; 0 below ``SAME``."""
    found = {}
    for name, rate in now.items():
        before = without[name]
        change = (rate - before) / before if before else float(rate > 0)
        found[name] = change if abs(change) > SAME else 0.0
    return found


def _uses(resources: Sequence[ResourceUse]) -> dict[str, float | None]:
    return {use.name: use.utilisation for use in resources}


def _same(one: Figures, other: Figures) -> bool:
    if set(one) != set(other):
        return False
    pairs = [(value, other[name]) for name, value in one.items()]
    return all(
        a == b if a is None or b is None else math.isclose(a, b, rel_tol=SAME, abs_tol=1e-12)
        for a, b in pairs
    )

"""Depth and recovery time on series made by hand."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from numatwin.sim.planes.outcome import ControlEvent
from numatwin.sim.run.record import Record
from numatwin.sim.run.recovery import (
    Recovery,
    change_times,
    recoveries,
    recoveries_together,
    recovery_notes,
    typical_recovery,
)

Noise = npt.NDArray[np.float64]


def record_of(
    pieces: Sequence[tuple[float, float]], changes_s: Sequence[float] = (10.0,)
) -> Record:
    """A Record whose throughput is constant over each (duration in s, rate) of ``pieces``."""
    durations = np.array([duration for duration, _ in pieces])
    return Record(
        scenario="hand-made",
        title="",
        scenario_hash="",
        plane="flow",
        policy="none",
        seed=0,
        horizon_s=float(durations.sum()),
        machine={"name": "none"},
        settings={},
        control_events=tuple(ControlEvent(time_s, "phase", "") for time_s in changes_s),
        warnings=(),
        provenance={},
        series={
            "time_s": np.cumsum(durations) - durations,
            "duration_s": durations,
            "throughput/lookup": np.array([rate for _, rate in pieces]),
        },
    )


def one(pieces: Sequence[tuple[float, float]], **options: Any) -> Recovery:
    (found,) = recoveries(record_of(pieces), "lookup", **options)
    return found


def test_a_drop_and_its_end() -> None:
    # 100 until 10 s, then 40 for 3 s, 80 for 2 s, 96 (within 5%) for 1 s, 100 to the end at 30 s.
    found = one([(10, 100), (3, 40), (2, 80), (1, 96), (14, 100)])
    assert found == Recovery(
        change_s=10, until_s=30, before=100, lowest=40, final=100, level=100, recovery_s=5
    )
    assert found.depth == pytest.approx(0.6)


def test_a_run_with_noise_is_back_once_it_is_within_its_noise() -> None:
    """Without noise counted, the last 93 would be the end of the drop."""
    noisy = [(1.0, rate) for rate in (100, 103, 98, 97, 101, 99, 104, 102, 98, 93) * 2]
    found = one([(10, 100), (1, 40), (2, 70), *noisy])
    assert found.recovery_s == 3
    # A fall beyond the noise still counts.
    assert one([(10, 100), (1, 40), (2, 70), *noisy, (1, 60), *noisy]).recovery_s == 24


def test_a_slow_rise_is_no_noise() -> None:
    rising = [(1.0, 80.0 + 0.5 * step) for step in range(40)]
    assert one([(10, 100), *rising, (10, 100)]).recovery_s == 30


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([(10, 100), (20, 100)], {"depth": 0, "recovery_s": 0}),
        # What is above the level is recovered.
        ([(10, 100), (2, 150), (2, 50), (2, 150), (14, 100)], {"depth": 0.5, "recovery_s": 4}),
        # Who falls back counts from the last time.
        ([(10, 100), (1, 20), (5, 100), (1, 94), (13, 100)], {"lowest": 20, "recovery_s": 7}),
        # Pieces across a change are cut.
        ([(4, 100), (8, 50), (18, 100)], {"before": 50, "lowest": 50, "recovery_s": 2}),
        ([(10, 100), (20, 0)], {"depth": None, "recovery_s": 0, "final": 0}),
    ],
)
def test_drops_by_hand(pieces: list[tuple[float, float]], found: dict[str, object]) -> None:
    drop = one(pieces)
    assert {name: getattr(drop, name) for name in found} == found


def test_final_level_is_weighted_by_time() -> None:
    # The last 10% of 20 s are 2 s: 0.5 s at 60 and 1.5 s at 100.
    found = one([(10, 100), (18.5, 60), (1.5, 100)])
    assert found.final == pytest.approx(90)
    assert found.depth == pytest.approx(1 / 3)


def test_a_level_that_still_changes_is_not_recovered_to() -> None:
    """Of 20 s, the last two tenths differ by 0.3% or by 0.2%; 0.25% is the most."""

    def rising(step: float) -> list[tuple[float, float]]:
        return [(10, 100), (4, 60), *((2, 100 + step * k) for k in range(8))]

    slow, fast = one(rising(0.2)), one(rising(0.3))
    assert (slow.settled, slow.recovery_s) == (True, 4)
    assert (fast.settled, fast.recovery_s) == (False, None)
    assert fast.depth == pytest.approx(1 - 60 / 102.1)
    # Held against a level that is known, it is back.
    (known,) = recoveries(record_of(rising(0.3)), "lookup", levels=[100])
    assert (known.settled, known.recovery_s) == (True, 4)


def test_a_best_level_that_still_changes_is_nobodys() -> None:
    rising = record_of([(10, 100), (4, 60), *((1, 110.0 + 0.5 * k) for k in range(16))])
    flat = record_of([(10, 100), (4, 60), (16, 105)])
    for found in recoveries_together([rising, flat], "lookup"):
        assert [(one.settled, one.recovery_s) for one in found] == [(False, None)]
    (first,), (second,) = recoveries_together([rising, record_of([(10, 1), (20, 120)])], "lookup")
    assert (first.settled, first.recovery_s, second.recovery_s) == (True, 12, 0)


def test_a_run_says_that_it_has_not_recovered() -> None:
    rising = [(10.0, 100.0), *((1.0, 50.0 + 2.5 * k) for k in range(20))]
    record = replace(record_of(rising), throughput={"lookup": 1.0})
    assert recovery_notes(record) == (
        "lookup has not recovered by the end: it still changes 20 s after the workload last did; "
        "a longer horizon shows where it settles",
    )
    settled = replace(record_of([(10, 100), (20, 90)]), throughput={"lookup": 1.0})
    assert recovery_notes(settled) == ()


def test_low_until_the_end_is_not_recovered() -> None:
    assert one([(10, 100), (20, 40)]).recovery_s == 0
    lasting = one([(10, 100), (20, 40)], levels=[100])
    assert (lasting.recovery_s, lasting.final) == (None, 40)
    assert lasting.depth == pytest.approx(0.6)


def test_a_dip_counts_by_its_length_when_sampled() -> None:
    # From 10 s on: 0.25 s at 0 in every second for 3 s, then 100.
    dips = [(0.25, 0.0), (0.75, 100.0)] * 3
    raw = one([(10, 100), *dips, (17, 100)])
    assert (raw.lowest, raw.recovery_s) == (0, 2.25)
    sampled = one([(10, 100), *dips, (17, 100)], sample_s=1.0)
    assert (sampled.lowest, sampled.recovery_s) == (75, 3)
    coarse = one([(10, 100), *dips, (17, 100)], sample_s=3.0)
    assert (coarse.lowest, coarse.recovery_s) == (75, 3)
    (short_of,) = recoveries(record_of([(10, 100), (5, 50), (2.5, 100)]), "lookup", sample_s=2.0)
    # Steps end at 12, 14, 16 and 17.5 s: 50, 50, (50 + 100) / 2 and 100.
    assert (short_of.lowest, short_of.recovery_s) == (50, 6)


def test_each_change_is_looked_at_until_the_next() -> None:
    record = record_of([(10, 100), (2, 50), (8, 80), (5, 20), (15, 40)], changes_s=[20, 0, 10, 20])
    assert change_times(record) == [10, 20]
    first, second = recoveries(record, "lookup")
    assert (first.until_s, first.level, first.recovery_s) == (20, 80, 2)
    assert (second.until_s, second.before, second.level) == (40, 80, 40)
    assert (second.recovery_s, second.depth) == (5, 0.5)


def test_nothing_to_look_at() -> None:
    assert recoveries(record_of([(30, 100)], changes_s=[0, 30]), "lookup") == []
    assert recoveries(record_of([(10, 1), (10, 1)]), "scan") == []
    with pytest.raises(ValueError, match="2 levels for 1 changes"):
        recoveries(record_of([(10, 1), (10, 1)]), "lookup", levels=[1, 2])


# A drop of 30% for 5 of 20 pieces of 1 s each.
LOW, PIECES, DEPTH = 5, 20, 0.3


def white(rng: np.random.Generator) -> Noise:
    """Each piece by itself."""
    return 1.0 + 0.06 * rng.standard_normal(PIECES)


def correlated(rng: np.random.Generator) -> Noise:
    """Each piece like the one before it: an autoregressive process, its standard deviation 6%."""
    found = np.empty(PIECES)
    found[0] = rng.standard_normal()
    for k in range(1, PIECES):
        found[k] = 0.7 * found[k - 1] + (1 - 0.7**2) ** 0.5 * rng.standard_normal()
    return 1.0 + 0.06 * found


def bursts(rng: np.random.Generator) -> Noise:
    """Another tenant on the core, for 2 s on average and a tenth of the time: 15% less."""
    found, taken = np.empty(PIECES), False
    for k in range(PIECES):
        taken = bool(rng.random() < (0.5 if taken else 0.06))
        found[k] = 0.85 if taken else 1.0
    return found + 0.02 * rng.standard_normal(PIECES)


def spikes(rng: np.random.Generator) -> Noise:
    """Single pieces that lose 30%."""
    return 1.0 + 0.03 * rng.standard_normal(PIECES) - 0.3 * (rng.random(PIECES) < 0.06)


def noisy_record(
    noise: Callable[[np.random.Generator], Noise],
    rng: np.random.Generator,
    changes: int,
    low: int = LOW,
    depth: float = DEPTH,
) -> Record:
    drop = np.where(np.arange(PIECES) < low, 1.0 - depth, 1.0)
    rates = [100.0 * drop * noise(rng) for _ in range(changes)]
    pieces = [(10.0, 100.0), *((1.0, float(rate)) for rate in np.concatenate(rates))]
    return record_of(pieces, [10.0 + PIECES * k for k in range(changes)])


@pytest.mark.parametrize(
    ("noise", "right"), [(white, 0.95), (correlated, 0.85), (bursts, 0.8), (spikes, 0.85)]
)
def test_the_typical_recovery_is_found_under_noise(
    noise: Callable[[np.random.Generator], Noise], right: float
) -> None:
    """Of runs with 6 changes, nearly all tell the true time, and their median depth is the true
    one; a single change tells it in fewer."""
    rng = np.random.default_rng(7)
    found = [typical_recovery(noisy_record(noise, rng, 6), "lookup") for _ in range(200)]
    times = np.array([one.recovery_s for one in found if one is not None])
    depths = [one.depth for one in found if one is not None and one.depth is not None]
    assert (times == LOW).mean() >= right
    assert np.median(depths) == pytest.approx(DEPTH, abs=0.01)
    assert np.std(depths) < 0.03


@pytest.mark.parametrize("noise", [white, correlated, bursts, spikes])
def test_noise_alone_is_hardly_a_drop(noise: Callable[[np.random.Generator], Noise]) -> None:
    rng = np.random.default_rng(8)
    records = [noisy_record(noise, rng, 6, low=0) for _ in range(100)]
    found = [typical_recovery(record, "lookup") for record in records]
    assert np.mean([one is not None and one.recovery_s == 0 for one in found]) >= 0.85


@pytest.mark.parametrize(("low", "depth"), [(1, 0.4), (2, 0.3), (4, 0.2), (10, 0.15), (15, 0.15)])
def test_a_real_drop_is_not_hidden_by_noise(low: int, depth: float) -> None:
    rng = np.random.default_rng(9)
    records = [noisy_record(white, rng, 1, low, depth) for _ in range(200)]
    found = [recoveries(record, "lookup")[0] for record in records]
    assert np.mean([abs((one.recovery_s or 0) - low) <= 1 for one in found]) >= 0.75
    assert np.median([one.depth or 0.0 for one in found]) == pytest.approx(depth, abs=0.02)


def test_a_second_drop_counts_under_noise() -> None:
    """Back for 5 s, then low again for 5 s."""
    rng = np.random.default_rng(10)
    drop = np.array([0.6] * 5 + [1.0] * 5 + [0.7] * 5 + [1.0] * 5)
    times = []
    for _ in range(100):
        rates = 100.0 * drop * (1.0 + 0.05 * rng.standard_normal(len(drop)))
        times.append(one([(10, 100), *((1.0, float(rate)) for rate in rates)]).recovery_s)
    assert np.mean(np.array(times) == 15) >= 0.9


def test_the_typical_recovery_is_that_of_the_median_over_changes() -> None:
    """After three changes: low for 2, 3 and 3 s, one of them as deep as nothing else."""
    record = record_of(
        [(10, 100), (2, 60), (8, 100), (3, 50), (7, 100), (3, 0), (7, 100)], changes_s=[10, 20, 30]
    )
    found = typical_recovery(record, "lookup")
    assert found is not None
    assert (found.change_s, found.until_s, found.recovery_s) == (10, 20, 3)
    assert found.depth == pytest.approx(0.5)
    assert typical_recovery(record, "scan") is None
    assert typical_recovery(record_of([(30, 100)], changes_s=[]), "lookup") is None

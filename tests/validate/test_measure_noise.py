"""What counts of repetitions, and what is told of a noisy host."""

import numpy as np
import pytest

from numatwin.topologies.measurements import Measurement
from numatwin.validate.measure.bench import Samples, Windows
from numatwin.validate.measure.noise import noise_warnings, ticks


def windows(disturbed: list[bool]) -> Windows:
    """Window k does 10 pieces in 10 (k + 1) ns; a second member twice as many."""
    count = len(disturbed)
    amounts = np.tile([10.0, 20.0], (count, 1))
    elapsed_ns = np.repeat([[10.0 * (k + 1)] for k in range(count)], 2, axis=1)
    return Windows(amounts, elapsed_ns, np.array(disturbed))


def figure(low: float, value: float, high: float, disturbed: int = 0) -> Measurement:
    return Measurement.model_validate(
        {
            "name": "latency",
            "value": f"{value} ns",
            "quartiles": [f"{low} ns", f"{high} ns"],
            "repetitions": 10,
            "disturbed": disturbed,
            "method": "loads",
            "parameters": {"size": "4 KiB"},
        }
    )


def test_disturbed_windows_do_not_count() -> None:
    samples = windows([False, True, False, False, True]).ns_each()
    assert samples.values.tolist() == [1.0, 3.0, 4.0]
    assert (samples.median, samples.disturbed) == (3.0, 2)
    assert samples.quartiles == (2.0, 3.5)
    assert samples.spread == 0.5


def test_they_do_where_hardly_another_is_there() -> None:
    samples = windows([True, False, True, False]).ns_each()
    assert samples.values.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert (samples.disturbed, samples.noisy) == (0, True)
    assert samples.scaled(2.0).noisy
    assert not windows([False]).ns_each().noisy


def test_rates_add_over_members() -> None:
    found = windows([False] * 3)
    assert found.rates().values.tolist() == [3e9, 1.5e9, 1e9]
    assert found.rates(1).values.tolist() == pytest.approx([2e9, 1e9, 2e9 / 3])
    assert found.rates().scaled(2.0).values.tolist() == [6e9, 3e9, 2e9]


def test_quartiles_stay_around_the_median_when_rounded() -> None:
    samples = Samples(np.array([1.00004, 1.00005, 1.00006]))
    low, high = samples.quartiles
    assert low <= samples.median <= high


def test_a_quiet_host_is_not_warned_of() -> None:
    figures = [figure(99, 100, 101)] * 10
    assert list(noise_warnings(0.04, 0.009, 0.09, figures)) == []
    assert list(noise_warnings(0.0, 0.0, 0.0, [])) == []


def test_each_reason_has_its_warning() -> None:
    quiet = [figure(99, 100, 101)] * 8
    assert list(noise_warnings(0.06, 0.0, 0.0, quiet)) == [
        "noisy host: the clock changed: a loop of known cycles took 6% longer in the median than "
        "at its best"
    ]
    assert list(noise_warnings(0.0, 0.02, 0.0, quiet)) == [
        "noisy host: the hypervisor took 2% of the CPUs' time"
    ]
    assert list(noise_warnings(0.0, 0.0, 0.4, quiet)) == [
        "noisy host: other programs used 40% of the CPUs' time"
    ]
    assert list(noise_warnings(0.0, 0.0, 0.0, [figure(99, 100, 101, disturbed=5)])) == [
        "noisy host: 33% of the repetitions were disturbed by other threads and left out"
    ]
    noisy = figure(99, 100, 101).model_copy(update={"noisy": True})
    assert list(noise_warnings(0.0, 0.0, 0.0, [*quiet, noisy])) == [
        "noisy host: 1 of 9 figures have hardly an undisturbed repetition: uncertain, such as "
        "latency size 4 KiB"
    ]
    unsteady = [figure(90, 100, 130), figure(90, 100, 150)]
    assert list(noise_warnings(0.0, 0.0, 0.0, quiet + unsteady)) == [
        "noisy host: the quartiles of 2 of 10 figures lie more than 20% of the median apart, "
        "at worst 60% (latency size 4 KiB)"
    ]
    nearly_none = figure(1, 3, 5_000)
    (told,) = noise_warnings(0.0, 0.0, 0.0, [*quiet, *unsteady, nearly_none])
    assert told.endswith("at worst over 1000% (latency size 4 KiB)")
    assert list(noise_warnings(0.0, 0.0, 0.0, quiet * 3 + unsteady)) == []


def test_time_of_others_is_not_this_process_own() -> None:
    before = ticks()
    total = 0
    while ticks().own - before.own < 0.1:
        total += sum(range(10_000))
    after = ticks()
    assert total > 0
    # Counted in ticks of 10 ms, at different moments.
    assert after.busy - before.busy >= after.own - before.own - 0.05
    assert after.wall > before.wall

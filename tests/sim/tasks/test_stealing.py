"""Which classes of tasks may be stolen, by each bundled policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.inputs import InputError
from numatwin.sim.systems.tasks.commands import AllowStealing, StealingObservation, check_stealing
from numatwin.sim.systems.tasks.stealing import STEALING, AdaptiveStealing, StealingSpec

NONE = np.zeros(4, dtype=np.int64)


def seen(threshold_Bps: float | None = 1.2e9, **memory_Bps: float) -> StealingObservation:
    return StealingObservation(1.0, memory_Bps, NONE, NONE, threshold_Bps)


def test_adaptive_keeps_memory_bound_classes_on_their_node() -> None:
    policy = AdaptiveStealing()
    (first,) = policy.decide(seen(scan=8e9, materialise=0.3e9, merge=float("nan")))
    assert first.classes == {"materialise", "merge"}
    assert policy.decide(seen(scan=7e9, materialise=0.3e9, merge=1.2e9)) == ()
    (second,) = policy.decide(seen(scan=1.1e9, materialise=0.3e9, merge=1.3e9))
    assert second.classes == {"scan", "materialise"}


@given(st.dictionaries(st.sampled_from("abcd"), st.floats(0, 1e10)), st.floats(1, 1e10))
def test_adaptive_is_the_threshold(memory_Bps: dict[str, float], threshold_Bps: float) -> None:
    observation = seen(threshold_Bps, **memory_Bps)
    (command,) = AdaptiveStealing().decide(observation)
    assert command.classes == {name for name, Bps in memory_Bps.items() if Bps <= threshold_Bps}
    assert check_stealing([command], observation, "adaptive") == (command,)


def test_its_own_threshold_comes_before_the_machines() -> None:
    (command,) = AdaptiveStealing(threshold=9e9).decide(seen(scan=8e9))
    assert command.classes == {"scan"}


def test_without_any_threshold_it_says_how_to_get_one() -> None:
    with pytest.raises(InputError, match=r"tasks\.stealing_threshold there") as failure:
        AdaptiveStealing().decide(seen(None, scan=8e9))
    assert "'numatwin machine threshold MACHINE --out FILE' finds it" in str(failure.value)


@pytest.mark.parametrize(
    ("name", "classes", "within_node"),
    [
        ("never", set(), False),
        ("node", set(), True),
        ("none", set(), True),
        ("always", {"scan", "merge"}, True),
    ],
)
def test_fixed_policies_order_once(name: str, classes: set[str], within_node: bool) -> None:
    policy = STEALING.bundled(name, {})
    (command,) = policy.decide(seen(scan=8e9, merge=1e9))
    assert (command.classes, command.within_node) == (classes, within_node)
    assert policy.decide(seen(scan=8e9, merge=1e9)) == ()


def test_a_threshold_is_given_with_its_unit() -> None:
    spec = StealingSpec.model_validate({"policy": "adaptive", "threshold": "1.2 GB/s"})
    assert spec.bundled_options() == {"threshold": 1.2e9}


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("nan")])
def test_a_threshold_out_of_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        AdaptiveStealing(threshold)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ("scan", "decide returned str"),
        ([AllowStealing(frozenset({"x"}))], "unknown class 'x'"),
        ([AllowStealing(frozenset())] * 2, "2 commands"),
        ([AllowStealing(5)], "no set of names"),  # type: ignore[arg-type]
    ],
)
def test_wrong_commands_are_refused(commands: object, message: str) -> None:
    with pytest.raises(InputError, match=f"policy P: .*{message}"):
        check_stealing(commands, seen(scan=1.0), "P")

"""Figure 13 at a fiftieth: how deep throughput drops as keys turn hot, and how soon it is back."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

# When the range turns hot, and the length of a piece of the series: the balancing period.
CHANGE_S, PIECE_S = 0.06, 0.01
# Until then each policy is played; MA-8 is back late.
UNTIL_S = {"none": 0.09, "one-shot": 0.12, "ma-8": 0.19, "ma-1": 0.09}
BACK = 0.95


@dataclass(frozen=True)
class Curve:
    """``before`` the change, operations per second; ``after`` it, a figure for each piece."""

    before: float
    after: tuple[float, ...]

    @property
    def least(self) -> float:
        """The deepest point, as part of what it was before."""
        return min(self.after) / self.before

    @property
    def pieces_below(self) -> int:
        """Pieces in which throughput was not nearly what it was before."""
        return sum(one < BACK * self.before for one in self.after)


@cache
def curve(policy: str, plane: str) -> Curve:
    # Lookups that have more to do than to wait: what policies do is told best.
    settings = [
        *(f"horizon={UNTIL_S[policy]} s", f"workload.phases.0.start={CHANGE_S} s"),
        *("machine.engines.eris.implementation=published",),
        *("machine.engines.eris.lines_in_flight=6",),
    ]
    if plane == "event":
        settings += ["statistics.replications=1", "statistics.warm_up=20 ms"]
    scenario = load_scenario("eris-fig13-small", plane=plane, policy=policy, settings=settings)
    series = run_scenario(scenario).series
    starts, lengths = np.asarray(series["time_s"]), np.asarray(series["duration_s"])
    done = np.concatenate([[0.0], np.cumsum(series["throughput/lookup"] * lengths)])
    ends = np.concatenate([starts, [starts[-1] + lengths[-1]]])
    cuts = np.arange(round(UNTIL_S[policy] / PIECE_S) + 1) * PIECE_S
    rates = np.diff(np.interp(cuts, ends, done)) / PIECE_S
    change = round(CHANGE_S / PIECE_S)
    return Curve(float(rates[change // 2 : change].mean()), tuple(rates[change:].tolist()))


@pytest.mark.parametrize("policy", UNTIL_S)
def test_before_the_change(policy: str) -> None:
    """A steady state, as in any other scenario."""
    assert curve(policy, "event").before == pytest.approx(curve(policy, "flow").before, rel=0.05)


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_order_of_policies(plane: str) -> None:
    """One-Shot drops deepest and is back first; MA-1 drops least (ERIS, figure 13)."""
    one_shot, middle, least = (curve(policy, plane) for policy in ("one-shot", "ma-8", "ma-1"))
    assert one_shot.least < middle.least < least.least
    assert one_shot.pieces_below < middle.pieces_below


@pytest.mark.parametrize("policy", ["one-shot", "ma-8"])
def test_time_to_be_back(policy: str) -> None:
    """The same work moves at about the same speed: back within two pieces, or a fifth, alike.

    In the flow plane the copies and the queries of a worker share its time evenly, and all workers
    wait for the slowest one; in events a worker that copies makes fewer commands, and the others
    make more. So the drop is deeper in the flow plane, and never the other way round.
    """
    flow, event = curve(policy, "flow"), curve(policy, "event")
    assert abs(event.pieces_below - flow.pieces_below) <= max(2, 0.2 * flow.pieces_below)
    assert event.least > flow.least
    assert event.after[-1] == pytest.approx(flow.after[-1], rel=0.05)


def test_without_balancing_nothing_comes_back() -> None:
    """Half of the workers execute everything.

    Flows leave it to the others to make all commands. In events whoever is not behind makes some,
    those who execute too: somewhat less is done.
    """
    flow, event = curve("none", "flow"), curve("none", "event")
    assert max(event.after[2:]) < 1.02 * flow.after[-1]
    assert np.mean(event.after[2:]) == pytest.approx(flow.after[-1], rel=0.10)

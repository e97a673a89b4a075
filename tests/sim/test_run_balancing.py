"""Figure 13 in the flow plane: keys stay, cycles follow each other, copies hold what moved."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from small_scenarios import SCAN, small_file

from numatwin.inputs import InputError
from numatwin.sim.control.control_plane import ControlPlane
from numatwin.sim.kernel.arrays import Ints
from numatwin.sim.planes.flow import FlowPlane
from numatwin.sim.planes.outcome import ControlEvent
from numatwin.sim.planes.plane import Command, StartPhase
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.engine import Eris
from numatwin.sim.systems.eris.partitions import IndexPartitions

KEYS = 512_000_000
ENTRY_BYTES = 16


# Walks that overlap as far as cores let them.
OVERLAP = (
    "machine.engines.eris.implementation=published",
    "machine.engines.eris.lines_in_flight=12",
)


def fig13(policy: str, *settings: str) -> Scenario:
    return load_scenario("eris-fig13", policy=policy, settings=(*OVERLAP, *settings))


class Watched(FlowPlane):
    """A flow plane that is looked at whenever the control plane does something."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario, Eris(scenario))
        self.moved_keys: list[int] = []
        self.looks = 0

    def advance(self, until_s: float) -> None:
        super().advance(until_s)
        self.look()

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if not isinstance(command, StartPhase):
                assert command.bounds is not None
                self.moved_keys.append(self.between_nodes(self.index.bounds, command.bounds))
        super().apply(commands)
        self.look()

    @property
    def index(self) -> IndexPartitions:
        assert isinstance(self.system, Eris)
        part = self.system.partitions["index"]
        assert isinstance(part, IndexPartitions)
        return part

    def look(self) -> None:
        """All keys are there, and none is owned twice."""
        edges, _ = self.index.pieces()
        assert edges[0] == 0
        assert edges[-1] == KEYS
        assert (np.diff(edges) >= 0).all()
        sizes = self.index.sizes()
        assert (sizes >= 0).all()
        assert sizes.sum() == pytest.approx(KEYS, rel=1e-12)
        self.looks += 1

    def between_nodes(self, old: Ints, new: Ints) -> int:
        """Keys whose owner's node is another under the new bounds, counted bound by bound."""
        node = self.system.workers.node
        moved = 0
        for a in range(len(node)):
            for b in np.flatnonzero(node != node[a]):
                moved += max(0, min(old[a + 1], new[b + 1]) - max(old[a], new[b]))
        return int(moved)


def watched(policy: str, *settings: str) -> tuple[Watched, list[ControlEvent]]:
    scenario = fig13(policy, *settings)
    plane = Watched(scenario)
    control = ControlPlane(scenario, plane)
    control.run()
    return plane, sorted([*control.events, *plane.outcome().events], key=lambda event: event.time_s)


@pytest.mark.parametrize("policy", ["one-shot", "ma-1"])
def test_cycles_follow_each_other_and_copy_what_moves(policy: str) -> None:
    """A decision, its transfers, their end; then the next. Copies: 16 bytes a key that leaves its
    node.
    """
    plane, events = watched(policy, "horizon=40 s")
    assert plane.looks > 80  # once a period at least
    cycles = [event for event in events if event.kind in ("balance", "transfer", "done")]
    assert [event.kind for event in cycles] == ["balance", "transfer", "done"] * (len(cycles) // 3)
    assert len(cycles) // 3 == len(plane.moved_keys) > 0
    rounds = zip(cycles[::3], cycles[1::3], cycles[2::3], plane.moved_keys, strict=True)
    last_end_s = 0.0
    for decision, transfer, done, keys in rounds:
        assert last_end_s <= decision.time_s == transfer.time_s <= done.time_s
        assert transfer.details["copied_bytes"] == pytest.approx(ENTRY_BYTES * keys, rel=1e-12)
        assert done.details["copied_bytes"] == transfer.details["copied_bytes"]
        assert done.details["duration_s"] == pytest.approx(done.time_s - transfer.time_s)
        assert (transfer.details["copies"] > 0) == (keys > 0) == (done.time_s > transfer.time_s)
        last_end_s = done.time_s
    assert not plane.index.balancing


def test_a_cycle_that_the_horizon_cuts_off_has_no_end() -> None:
    """One-Shot begins at 10.5 s, which takes more than 10 ms: keys are still all there."""
    plane, events = watched("one-shot", "horizon=10.51 s")
    assert [event.kind for event in events if event.kind != "phase"] == ["balance", "transfer"]
    assert plane.index.balancing


def test_without_balancing_nothing_moves() -> None:
    plane, events = watched("none")
    assert [event.kind for event in events] == ["phase"] * 5
    assert [event.time_s for event in events] == [10, 30, 50, 70, 90]
    assert np.array_equal(plane.index.bounds, KEYS * np.arange(65) // 64)


def test_balanced_in_the_end() -> None:
    """Accesses are even again, as before the hot range; keys are where they are asked for."""
    records = {policy: run_scenario(fig13(policy)) for policy in ("none", "one-shot")}
    for record in records.values():
        assert record.series["duration_s"].sum() == pytest.approx(110)
        assert record.series["imbalance/index"][0] == pytest.approx(0, abs=1e-6)
    # Half of the AEUs have all the accesses: as far from the mean as the mean from nothing.
    assert records["none"].series["imbalance/index"][-1] == pytest.approx(1, rel=0.1)
    assert records["one-shot"].series["imbalance/index"][-1] < 0.1
    last = {name: record.series["throughput/lookup"][-1] for name, record in records.items()}
    assert last["one-shot"] > 1.5 * last["none"]


def test_transfers_slow_down_what_runs_beside_them() -> None:
    """While One-Shot copies, throughput is below what it was just before the cycle."""
    record = run_scenario(fig13("one-shot", "horizon=30 s"))
    start_s, lookups = record.series["time_s"], record.series["throughput/lookup"]
    transfer = next(event for event in record.control_events if event.kind == "transfer")
    done = next(event for event in record.control_events if event.kind == "done")
    before = lookups[start_s < transfer.time_s][-1]
    during = lookups[(start_s >= transfer.time_s) & (start_s < done.time_s)]
    assert len(during) >= 3
    assert during[0] < before
    assert lookups[-1] > before


def test_a_smaller_machine_has_no_room(tmp_path: Path) -> None:
    """8 GB on a node of 4 GiB: refused, not run."""
    path = small_file(tmp_path, SCAN)
    scenario = load_scenario(path, settings=["machine.node_types.plain.memory.size=4 GiB"])
    with pytest.raises(
        InputError, match=r"the data do not fit .*: node 0 would hold .* GB of 4.29 GB"
    ):
        run_scenario(scenario)


POLICY = """\
import numpy as np
from numatwin import Rebalance


class Once:
    '''All entries of a column to the first partition, or as they were.'''

    def __init__(self, greedy):
        self.greedy = greedy

    def decide(self, observation):
        seen = observation.objects["column"]
        if observation.time_s > 0.1:
            return []
        sizes = np.zeros(seen.partitions)
        sizes[0] = seen.sizes.sum()
        return [Rebalance("column", sizes=sizes if self.greedy else np.roll(seen.sizes, 1))]
"""


@pytest.mark.parametrize("greedy", [True, False])
def test_columns_move_by_size(tmp_path: Path, greedy: bool) -> None:
    """Three quarters of 8 GB cross to node 0; or nothing changes, as all sizes are equal."""
    path = small_file(tmp_path, SCAN, nodes=4)
    (tmp_path / "mine.py").write_text(POLICY)
    text = path.read_text() + (
        "policies: {balancing: {file: mine.py, class: Once, period: 100 ms, "
        f"options: {{greedy: {str(greedy).lower()}}}}}}}\n"
    )
    path.write_text(text.replace("horizon: 1 s", "horizon: 10 s"))
    record = run_scenario(load_scenario(path))
    done = [event for event in record.control_events if event.kind == "done"]
    assert [event.details["copied_bytes"] for event in done] == ([6e9] if greedy else [])
    scans = record.series["throughput/scan"]
    if greedy:
        # One worker has it all: one core of a node, where there were sixteen of four.
        assert scans[-1] < scans[0] / 4
        assert done[0].time_s > 0.1
    else:
        assert scans == pytest.approx(scans[0])

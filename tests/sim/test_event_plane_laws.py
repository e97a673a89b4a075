"""What holds in the event plane of ERIS whatever the machine, the workload and the buffers are."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from scipy.stats import t as student
from small_scenarios import LINK, LOOKUP, NODE, SCAN, UPSERT, small_file

from numatwin.sim.control.control_plane import ControlPlane
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.event_plane import ErisEvents
from numatwin.sim.systems.eris.partitions import IndexPartitions
from numatwin.sim.systems.eris.players import RoutedPlayer

FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
SLOWER = "lookup: {kind: lookup, object: index, share: 3}\n    " + UPSERT
COLUMN = "lookup: {kind: lookup, object: index, share: 100000}\n    " + SCAN
HOT = (
    "lookup: {kind: lookup, object: index, "
    "keys: {distribution: hot_range, from: 0, to: 20_000_000, share: 0.9}}"
)


def loaded(path: Path, *settings: str, policy: str | None = None) -> Scenario:
    return load_scenario(path, plane="event", policy=policy, settings=settings)


def plane_of(path: Path, *settings: str, replication: int = 1) -> ErisEvents:
    return ErisEvents(loaded(path, *settings), replication)


def facts_of(plane: ErisEvents) -> dict[str, Any]:
    """All that was counted, to compare one run with another."""
    counted = plane.player.counted()
    return {
        "now": plane.player.model.now_ps,
        "events": plane.player.model.events,
        "done": counted.done.tolist(),
        "executed": counted.executed.tolist(),
        "busy": counted.busy_ps.tolist(),
        "memory": counted.memory_ps.tolist(),
        "links": counted.link_ps.tolist(),
        "latencies": [one.total for one in counted.latencies],
        "facts": {k: v for k, v in counted.facts.items() if isinstance(v, float | int)},
    }


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """What small_file takes, and settings."""
    nodes = draw(st.sampled_from([1, 2, 3]))
    file = {
        "nodes": nodes,
        "operations": draw(st.sampled_from([LOOKUP, UPSERT, SLOWER, COLUMN, HOT, SCAN])),
        "protocol": draw(st.sampled_from(["directory", "snoop"])),
    }
    buffer = draw(st.sampled_from([1, 2, 16, 128]))
    chosen = [
        f"system.buffer_commands={buffer}",
        f"system.batch={draw(st.sampled_from([1, 7, 128]))}",
        f"system.threads={draw(st.sampled_from([1, 2, 4]))}",
        f"system.result_size={draw(st.sampled_from(['0 B', '8 B', '64 B']))}",
        f"seed={draw(st.integers(1, 1000))}",
    ]
    if draw(st.booleans()):  # the smallest incoming buffers: one outgoing buffer
        chosen.append(f"system.incoming_size={16 * buffer} B")
    if draw(st.booleans()):
        chosen.append(f"system.round_commands={draw(st.sampled_from([1, 5, 200]))}")
    if file["operations"] != SCAN:
        clients = draw(st.sampled_from(["busy", "think", "open"]))
        if clients == "think":
            chosen.append("workload.clients.think_time=20 us")
        if clients == "open":
            chosen += ["workload.clients.kind=open", "workload.clients.arrival_rate=2 M/s"]
    return file, chosen


class TestCounts:
    @FEW
    @given(drawn=scenarios(), cuts=st.lists(st.integers(1, 299), max_size=3))
    def test_stopped_anywhere(
        self, drawn: tuple[dict[str, Any], list[str]], cuts: list[int]
    ) -> None:
        """Every command is somewhere at each stop; no stop changes what happens; nobody does more
        than time allows.
        """
        file, chosen = drawn
        note(f"{file} {chosen}")
        with tempfile.TemporaryDirectory() as folder:
            path = small_file(Path(folder), **file)
            whole, pieces = plane_of(path, *chosen), plane_of(path, *chosen)
        for cut in sorted(cuts):
            pieces.advance(cut * 1e-6)
            pieces.player.check()
        for plane in (whole, pieces):
            plane.advance(300e-6)
            plane.player.check()
        assert facts_of(whole) == facts_of(pieces)
        outcome = whole.outcome()
        for use in outcome.resources:
            assert 0.0 <= use.utilisation <= 1.0, use
            if use.capacity_Bps and use.Bps:
                assert use.Bps <= use.capacity_Bps * (1 + 1e-9), use
        # A scan is made once, and executed by each who has a part of the column.
        if isinstance(whole.player, RoutedPlayer) and SCAN not in file["operations"]:
            counts = whole.player.model.counts()
            # What is being made at the moment is in a buffer already.
            somewhere = int(counts["executed"].sum()) + int(counts["in_flight"])
            making = whole.eris.workers.count * whole.eris.system.batch
            assert int(counts["made"]) <= somewhere <= int(counts["made"]) + making

    @FEW
    @given(drawn=scenarios())
    def test_work_is_done(self, drawn: tuple[dict[str, Any], list[str]]) -> None:
        """However small buffers, batches and rounds are, nobody waits for ever."""
        file, chosen = drawn
        note(f"{file} {chosen}")
        with tempfile.TemporaryDirectory() as folder:
            plane = plane_of(small_file(Path(folder), **file), *chosen)
        done = []
        for k in range(1, 5):
            plane.advance(k * 2e-3 if file["operations"] != SCAN else k * 0.5)
            done.append(float(plane.player.counted().done.sum()))
        assert done[0] > 0
        assert np.diff(done).min() > 0


@pytest.mark.parametrize("operations", [LOOKUP, SLOWER])
def test_little(tmp_path: Path, operations: str) -> None:
    """Commands in flight, looked at again and again, are throughput times mean latency."""
    path = small_file(tmp_path, operations, nodes=2)
    plane = plane_of(path, "system.round_commands=256")
    plane.advance(1e-3)
    plane.start_counting()
    looks, start = [], plane.player.counted()
    batches: list[float] = []
    for batch in range(20):
        for k in range(50):
            plane.advance(1e-3 + (batch * 50 + k + 1) * 4e-6)
            assert isinstance(plane.player, RoutedPlayer)
            looks.append(int(plane.player.model.counts()["in_flight"]))
        now = plane.player.counted()
        latency_ns = sum(one.total for one in now.latencies) - sum(
            one.total for one in start.latencies
        )
        batches.append(latency_ns / (50 * 4e3) - float(np.mean(looks[-50:])))
        start = now
    mean, spread = np.mean(batches), np.std(batches, ddof=1) / np.sqrt(len(batches))
    # What was made before it was flushed counts as in flight from then on that it was appended.
    assert abs(mean) <= student.ppf(0.999, len(batches) - 1) * spread + 0.02 * np.mean(looks)


@pytest.mark.parametrize(
    ("faster", "operations"),
    [
        (LINK + "bandwidth=20 GB/s", LOOKUP),
        (NODE + "memory.bandwidth=80 GB/s", LOOKUP),
        (NODE + "memory.bandwidth=80 GB/s", SCAN),
        (NODE + "clock=8 GHz", UPSERT),
        (NODE + "outstanding_misses=20", LOOKUP),
    ],
)
def test_more_never_hurts(tmp_path: Path, faster: str, operations: str) -> None:
    path = small_file(tmp_path, operations, nodes=2)

    def rates(*settings: str) -> list[float]:
        found = []
        for replication in (1, 2, 3):
            plane = plane_of(path, *settings, replication=replication)
            until_s = 2e-3 if operations != SCAN else 0.5
            plane.advance(until_s / 2)
            plane.start_counting()
            plane.advance(until_s)
            found.append(sum(plane.outcome().throughput.values()))
        return found

    before, after = rates(), rates(faster)
    gains = np.array(after) - np.array(before)
    half = student.ppf(0.995, 2) * np.std(gains, ddof=1) / np.sqrt(3)
    assert np.mean(gains) >= -half, (before, after)


MOVES = (
    *("workload.objects.index.keys=300000", "workload.operations.lookup.keys.to=60000"),
    *("horizon=12 ms", "policies.balancing.period=1 ms"),
)


class TestBalancing:
    @pytest.mark.parametrize("policy", ["one-shot", "ma-1", "ma-8"])
    @pytest.mark.parametrize("buffer", [4, 128])
    def test_nothing_is_lost(self, tmp_path: Path, policy: str, buffer: int) -> None:
        """Cycles under way, commands forwarded: each key has one owner, each command ends once."""
        path = small_file(tmp_path, HOT, nodes=3)
        scenario = loaded(path, *MOVES, f"system.buffer_commands={buffer}", policy=policy)
        plane = ErisEvents(scenario, 1)
        part = plane.eris.partitions["index"]
        assert isinstance(part, IndexPartitions)
        looks = 0

        def look() -> None:
            nonlocal looks
            edges, _ = part.pieces()
            assert edges[0] == 0
            assert edges[-1] == part.keys
            assert (np.diff(edges) >= 0).all()
            assert part.sizes().sum() == pytest.approx(part.keys, rel=1e-12)
            plane.player.check()
            looks += 1

        advance = plane.advance

        def watched(until_s: float) -> None:
            while plane.time_s < until_s:
                advance(min(until_s, plane.time_s + 50e-6))
                look()

        plane.advance = watched  # type: ignore[method-assign]
        ControlPlane(scenario, plane).run()
        assert looks > 100
        assert isinstance(plane.player, RoutedPlayer)
        assert plane.player.model.counts()["forwarded"] > 0
        plane.start_counting()
        advance(plane.time_s + 1e-3)
        after = plane.player.counted().executed.sum(axis=0)
        # Those who had next to nothing to do have more of it now.
        even = IndexPartitions(np.linspace(0, part.keys, part.workers + 1).astype(np.int64))
        keys = scenario.workload.at(0.0).operations["lookup"].keys
        assert keys is not None
        before = even.shares(keys, 0.0)
        assert after.min() / after.mean() > 1.2 * before.min() / before.mean()

    def test_several_objects_and_scans(self, tmp_path: Path) -> None:
        """An index and a column each balance by themselves, while both are in use."""
        path = small_file(tmp_path, HOT.replace("}}", "}, share: 1000}") + "\n    " + SCAN, nodes=2)
        scenario = loaded(path, *MOVES, "workload.objects.column.entries=2_000_000", policy="ma-1")
        plane = ErisEvents(scenario, 1)
        before = {name: part.sizes() for name, part in plane.eris.partitions.items()}
        ControlPlane(scenario, plane).run()
        plane.player.check()
        for name, part in plane.eris.partitions.items():
            assert part.sizes().sum() == pytest.approx(before[name].sum(), rel=1e-12)
            assert part.sizes().min() >= 0
        assert not np.allclose(plane.eris.partitions["index"].sizes(), before["index"])
        assert isinstance(plane.player, RoutedPlayer)
        assert plane.player.model.counts()["forwarded"] > 0
        # Both go on, with the partitions that they have now.
        plane.start_counting()
        plane.advance(plane.time_s + 4e-3)
        plane.player.check()
        assert (plane.player.counted().done > 0).all()


class TestArrivals:
    def test_all_is_done_and_nobody_waits(self, tmp_path: Path) -> None:
        """Far below capacity: as much is done as arrives, and an operation takes as long as alone,
        but for the chance to meet another one.
        """
        path = small_file(tmp_path, LOOKUP)
        few = "workload.clients.kind=open", "workload.clients.arrival_rate=20 k/s"
        more = "workload.clients.kind=open", "workload.clients.arrival_rate=200 k/s"
        means = []
        for rate, chosen in ((20e3, few), (200e3, more)):
            plane = plane_of(path, *chosen)
            plane.advance(0.2)
            counted = plane.player.counted()
            done, expected = float(counted.done.sum()), rate * 0.2
            assert abs(done - expected) <= 4 * np.sqrt(expected)
            means.append(counted.latencies[0].total / done)
        alone, loaded_ns = means
        # A worker is busy this part of its time with an operation, and as much again with routing.
        load = 200e3 / 4 * alone * 1e-9
        assert alone <= loaded_ns <= alone * (1 + 2 * load / (1 - load))

    def test_thinking(self, tmp_path: Path) -> None:
        """Each worker has a batch under way or thinks: X = A B / (Z + R) (Little, both parts)."""
        path = small_file(tmp_path, LOOKUP)
        plane = plane_of(path, "workload.clients.think_time=100 us", "system.batch=16")
        plane.advance(10e-3)
        plane.start_counting()
        plane.advance(60e-3)
        counted = plane.player.counted()
        rate = float(counted.done.sum()) / 50e-3
        # Z of 100 us, and R of at most what the batch would need all alone on one worker.
        assert rate <= 4 * 16 / 100e-6
        latency_s = counted.latencies[0].total * 1e-9 / float(counted.done.sum())
        assert rate == pytest.approx(4 * 16 / (100e-6 + latency_s), rel=0.05)

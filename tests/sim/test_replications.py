"""Random planes run as often as a scenario asks for, on a queue whose answers are known."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known import known
from refusals import told_by
from scipy import stats
from small_scenarios import as_told
from toy_plane import SERVER, Queue, QueuePlane, toy_scenario

from numatwin.sim.run import replications
from numatwin.sim.run import workers as worker_processes
from numatwin.sim.run.comparison import has_intervals
from numatwin.sim.run.record import load_record
from numatwin.sim.run.runner import RunInterrupted, run_random
from numatwin.sim.run.statistics import Sample, difference
from numatwin.sim.run.workers import SEMAPHORES, local_workers

QUEUE = Queue()  # half a million arrivals per second, a million services
SURE = 0.999


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the host is; who needs more processes says so."""
    monkeypatch.setattr(replications, "PARALLEL_MIN_S", math.inf)


def test_the_queue_does_what_theory_says(tmp_path: Path) -> None:
    """M/M/1 (Kleinrock 1975, section 3.2): every figure lies in its interval, at 99.9%."""
    scenario = toy_scenario(tmp_path, "50 ms", replications=10, confidence=SURE)
    record = run_random(QUEUE, scenario)
    stay_ns = 1e9 / (QUEUE.services_per_s - QUEUE.arrivals_per_s)
    expected = {
        ("throughput", "lookup"): QUEUE.arrivals_per_s,
        ("utilisation", "cores", "busiest"): 0.5,
        ("resources", SERVER, "utilisation"): 0.5,
        ("bandwidth_Bps", "memory"): 64 * QUEUE.arrivals_per_s,
        ("latency_ns", "lookup", "mean"): stay_ns,
        ("latency_ns", "lookup", "p50"): math.log(2) * stay_ns,
        ("latency_ns", "lookup", "p99"): math.log(100) * stay_ns,
        ("latency_ns", "lookup", "p999"): math.log(1_000) * stay_ns,
    }
    for path, truth in expected.items():
        part: Any = record.confidence
        for key in path:
            part = part[key]
        assert part[0] <= truth <= part[1], (path, part, truth)
        assert part[1] - part[0] < 0.3 * truth, path
    assert record.confidence["level"] == SURE
    assert record.replications == 10
    assert record.bandwidth_Bps["links"] is None
    assert record.model == {
        "served": pytest.approx(record.operations["lookup"]),
        "rule": "first come, first served",
    }
    # Little: how many are under way is arrivals times stay; one, here.
    counted = record.series["time_s"] >= record.warm_up_s
    assert record.series["under_way/lookup"][counted].mean() == pytest.approx(1.0, rel=0.1)


def test_figures_are_means_of_their_replicates(tmp_path: Path) -> None:
    record = run_random(QUEUE, toy_scenario(tmp_path))
    each = record.replicates
    assert len(each["throughput"]["lookup"]) == record.replications == 5
    assert len(set(each["throughput"]["lookup"])) == 5
    assert record.throughput["lookup"] == pytest.approx(np.mean(each["throughput"]["lookup"]))
    means = each["latency_ns"]["lookup"]["mean"]
    found = known(record.latency_ns["lookup"])
    assert found["mean"] == pytest.approx(np.mean(means))
    assert found["p50"] == pytest.approx(np.mean(each["latency_ns"]["lookup"]["p50"]), rel=0.02)
    assert record.operations["lookup"] == pytest.approx(
        record.throughput["lookup"] * (record.horizon_s - record.warm_up_s)
    )


def test_series_are_means_too(tmp_path: Path) -> None:
    record = run_random(QUEUE, toy_scenario(tmp_path, warm_up="1234567 ns"))
    series = record.series
    assert (series["time_s"] == record.warm_up_s).sum() == 1  # where counting starts, a piece does
    assert series["time_s"][1:] == pytest.approx((series["time_s"] + series["duration_s"])[:-1])
    counted = series["time_s"] >= record.warm_up_s
    done = (series["throughput/lookup"] * series["duration_s"])[counted].sum()
    assert done == pytest.approx(record.operations["lookup"])
    use = (series[f"utilisation/{SERVER}"] * series["duration_s"])[counted].sum()
    counted_s = record.horizon_s - record.warm_up_s
    assert use / counted_s == pytest.approx(record.resources[0].utilisation)


@pytest.mark.parametrize("factor", [3.0, -1.0])
def test_use_of_more_than_a_sample_or_of_less_than_nothing_is_a_bug(
    tmp_path: Path, factor: float
) -> None:
    class Wrong(QueuePlane):
        def totals(self) -> dict[str, float]:
            found = dict(super().totals())
            found[f"utilisation/{SERVER}"] *= factor
            return found

    with pytest.raises(AssertionError, match=f"utilisation/{SERVER}: .*expected 0 to 100%"):
        run_random(partial(Wrong, QUEUE), toy_scenario(tmp_path))


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    record = run_random(QUEUE, toy_scenario(tmp_path))
    assert as_told(load_record(record.save(tmp_path / "run"))) == as_told(record)


def test_the_same_record_however_many_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = toy_scenario(tmp_path, "10 ms", replications=4, half_width=0.008)
    alone = run_random(QUEUE, scenario, workers=1)
    assert alone.replications > 4
    monkeypatch.setattr(replications, "PARALLEL_MIN_S", 0.0)
    for workers in (2, 3):
        assert as_told(run_random(QUEUE, scenario, workers=workers)) == as_told(alone)


def test_where_time_stops_does_not_change_what_happens(tmp_path: Path) -> None:
    """The toy keeps the contract: without any look at it, it does the same."""
    scenario = toy_scenario(tmp_path, warm_up="0 ns", replications=1)
    plane = QUEUE(scenario, 1)
    plane.advance(scenario.horizon_s)
    assert run_random(QUEUE, scenario).operations == plane.outcome().operations


def test_more_replications_go_on_where_fewer_ended(tmp_path: Path) -> None:
    few = run_random(QUEUE, toy_scenario(tmp_path, replications=2))
    more = run_random(QUEUE, toy_scenario(tmp_path, replications=3))
    assert more.replicates["throughput"]["lookup"][:2] == few.replicates["throughput"]["lookup"]


def test_another_seed_draws_otherwise(tmp_path: Path) -> None:
    scenario = toy_scenario(tmp_path, warm_up="1 ms")
    other = replace(scenario, seed=1)
    one, two = (run_random(QUEUE, of).replicates["throughput"] for of in (scenario, other))
    assert not set(one["lookup"]) & set(two["lookup"])


def test_a_worker_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's policy that raises, in another process."""
    policy = tmp_path / "mine.py"
    policy.write_text(
        "import os\nclass Lazy:\n    def decide(self, seen):\n"
        f"        return [] if os.getpid() == {os.getpid()} else 1 / 0\n"
    )
    scenario = toy_scenario(tmp_path, "20 ms", policy=f"{policy}:Lazy")
    monkeypatch.setattr(replications, "PARALLEL_MIN_S", 0.0)
    assert "policy Lazy" in told_by(run_random, QUEUE, scenario, workers=2)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("plan", [{}, {"warm_up": "1 ms"}, {"half_width": 0.008}])
def test_progress_goes_from_none_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: dict[str, Any], workers: int
) -> None:
    monkeypatch.setattr(replications, "PARALLEL_MIN_S", 0.0)
    told: list[float] = []
    scenario = toy_scenario(tmp_path, "5 ms", replications=3, **plan)
    record = run_random(QUEUE, scenario, workers, told.append)
    assert told[0] <= 1 / 3  # workers tell of whole replications only
    assert told[-1] == pytest.approx(1.0)
    assert max(told) <= 1.0 + 1e-12
    assert len(told) >= record.replications
    if "half_width" not in plan:  # else nobody knows beforehand how many there will be
        assert told == sorted(told)


def test_a_stated_warm_up_is_left_out(tmp_path: Path) -> None:
    """A thousand customers that wait at the beginning are gone after 2 ms: 1,000 / (μ - λ)."""
    scenario = toy_scenario(tmp_path, "40 ms", warm_up="10 ms", replications=10, confidence=SURE)
    record = run_random(Queue(waiting=1_000), scenario)
    assert record.warm_up_s == 0.01
    low, high = record.confidence["latency_ns"]["lookup"]["mean"]
    assert low <= 2_000 <= high
    whole = run_random(
        Queue(waiting=1_000), toy_scenario(tmp_path, "40 ms", warm_up="0 ns", replications=10)
    )
    biased = known(whole.latency_ns["lookup"])
    assert (biased["mean"] or 0) > 10 * 2_000


def test_a_pilot_run_tells_the_warm_up(tmp_path: Path) -> None:
    """Long enough that the thousand have gone, in all replications, not only in the pilot."""
    scenario = toy_scenario(tmp_path, "40 ms", replications=10, confidence=SURE)
    record = run_random(Queue(waiting=1_000), scenario)
    assert 0.002 < record.warm_up_s < 0.01
    low, high = record.confidence["latency_ns"]["lookup"]["mean"]
    assert low <= 2_000 <= high
    assert record.warnings == ("a toy",)


def test_the_pilot_draws_other_numbers(tmp_path: Path) -> None:
    """Who is judged does not choose the judge: the same replications with the time it found."""
    found = run_random(QUEUE, toy_scenario(tmp_path))
    stated = f"{found.warm_up_s * 1e6:.3f} us"
    again = run_random(QUEUE, toy_scenario(tmp_path, warm_up=stated))
    assert again.replicates == found.replicates
    assert again.warm_up_s == pytest.approx(found.warm_up_s)


def test_a_queue_that_grows_for_ever_does_not_settle(tmp_path: Path) -> None:
    record = run_random(Queue(arrivals_per_s=1.5e6), toy_scenario(tmp_path, "4 ms"))
    assert record.warm_up_s == pytest.approx(0.002)
    assert "does not settle" in record.warnings[-1]
    assert "--set 'horizon=40 ms'" in record.warnings[-1]
    assert not has_intervals(record)


@pytest.mark.parametrize("services_per_s", [1.0, 2.0])
def test_a_run_in_which_next_to_nothing_is_done_does_not_settle(
    tmp_path: Path, services_per_s: float
) -> None:
    """Nothing all the time, or nothing and then one: MSER-5 takes both for settled."""
    record = run_random(Queue(services_per_s=services_per_s), toy_scenario(tmp_path, "4 ms"))
    assert "does not settle" in record.warnings[-1]


def test_only_the_time_before_the_first_change_must_settle(tmp_path: Path) -> None:
    """A phase that begins later is no warm-up."""
    phases = "[{name: hot, start: 8 ms, operations: {lookup: {share: 2}}}]"
    scenario = toy_scenario(tmp_path, "20 ms", workload=f"phases={phases}")
    assert scenario.workload.change_times(scenario.horizon_s) == [0.008]
    record = run_random(Queue(waiting=500), scenario)
    assert 0.0005 < record.warm_up_s <= 0.004
    assert [event.kind for event in record.control_events] == ["phase"]


def test_replications_until_it_is_sure_enough(tmp_path: Path) -> None:
    scenario = toy_scenario(tmp_path, "5 ms", warm_up="100 us", half_width=0.01)
    record = run_random(QUEUE, scenario)
    low, high = record.confidence["throughput"]["lookup"]
    assert (high - low) / 2 <= 0.01 * record.throughput["lookup"]
    assert record.warnings == ("a toy",)
    # One less was not enough.
    values = record.replicates["throughput"]["lookup"][:-1]
    assert len(values) >= 5
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    assert len(values) == 4 or half > 0.01 * np.mean(values)


def test_what_cannot_be_reached_is_told(tmp_path: Path) -> None:
    scenario = toy_scenario(
        tmp_path, "1 ms", warm_up="100 us", half_width=0.001, replications_max=8
    )
    record = run_random(QUEUE, scenario)
    assert record.replications == 8
    low, high = record.confidence["throughput"]["lookup"]
    reached = 100 * (high - low) / 2 / record.throughput["lookup"]
    assert record.warnings[-1] == (
        f"throughput is known to ±{reached:.2g}% after 8 replications, not to the ±0.1% asked for"
    )


def test_one_replication_has_the_intervals_of_its_batches(tmp_path: Path) -> None:
    scenario = toy_scenario(tmp_path, "100 ms", replications=1, warm_up="1 ms", confidence=SURE)
    record = run_random(QUEUE, scenario)
    figures = record.confidence
    assert figures["throughput"]["lookup"][0] <= 5e5 <= figures["throughput"]["lookup"][1]
    assert figures["utilisation"]["cores"]["mean"][0] <= 0.5
    assert figures["utilisation"]["cores"]["mean"][1] >= 0.5
    low, high = figures["latency_ns"]["lookup"]["mean"]
    assert low <= 2_000 <= high
    assert figures["latency_ns"]["lookup"]["p99"] is None  # its latencies depend on each other
    assert figures["resolution_ns"]["lookup"]["p99"] > 0
    assert figures["bandwidth_Bps"]["memory"] is None


def test_a_percentile_of_too_few_latencies_is_unknown(tmp_path: Path) -> None:
    record = run_random(QUEUE, toy_scenario(tmp_path, "500 us", warm_up="50 us"))
    found = known(record.latency_ns["lookup"])
    assert found["p50"] is not None
    assert found["p999"] is None
    assert "p999" not in record.confidence["latency_ns"]["lookup"]


def test_common_draws_tell_alternatives_apart(tmp_path: Path) -> None:
    """A server that is 2% faster has the same arrivals: pair by pair, that is seen."""
    scenario = toy_scenario(tmp_path, "10 ms", warm_up="1 ms", replications=6)
    found = {}
    for name, queue in (("slow", QUEUE), ("fast", Queue(services_per_s=1.02e6))):
        record = run_random(queue, scenario)
        value = known((record.latency_ns["lookup"] or {})["mean"])
        found[name] = Sample(value, tuple(record.replicates["latency_ns"]["lookup"]["mean"]))
    paired = difference(found["slow"], found["fast"], 0.95, True)
    alone = difference(found["slow"], found["fast"], 0.95, False)
    assert paired is not None
    assert alone is not None
    assert paired.high < 0
    assert alone.low <= 0 <= alone.high
    assert paired.high - paired.low < 0.5 * (alone.high - alone.low)


def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    scenario = toy_scenario(tmp_path)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_random(replace(QUEUE, interrupted_in=3), scenario)
    assert isinstance(caught.value, RunInterrupted)
    record = caught.value.record
    whole = run_random(QUEUE, scenario)
    assert record.replications == 2
    assert record.warnings == ("a toy", "interrupted: 2 of 5 replications")
    for name, values in whole.replicates["throughput"].items():
        assert record.replicates["throughput"][name] == values[:2]


@pytest.mark.parametrize("number", [0, 1])
def test_ctrl_c_before_anything_was_finished(tmp_path: Path, number: int) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        run_random(replace(QUEUE, interrupted_in=number), toy_scenario(tmp_path))
    assert not isinstance(caught.value, RunInterrupted)


SCRIPT = """\
import sys
from pathlib import Path
from toy_plane import Queue, toy_scenario
from numatwin.sim.run import replications
from numatwin.sim.run.runner import RunInterrupted, run_random

if __name__ == "__main__":
    replications.PARALLEL_MIN_S = 0.0
    scenario = toy_scenario(Path(sys.argv[1]), "100 ms", replications=1000, warm_up="1 ms")
    try:
        run_random(Queue(), scenario, 2, lambda part: print(part, flush=True))
    except RunInterrupted as interrupted:
        print("kept", interrupted.record.replications, interrupted.lost or "")
"""


@contextmanager
def _at_work(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The script in a group of its own, while its workers play, and what it said so far."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process, [known(process.stdout).readline() for _ in range(6)]


def test_ctrl_c_while_workers_play(tmp_path: Path) -> None:
    """It goes to all processes of a terminal: workers do not speak, and none is left."""
    with _at_work(tmp_path) as (process, seen):
        assert process.stdout is not None
        assert process.stderr is not None
        assert _heard_by_workers(process.pid) == [False, False]
        os.killpg(process.pid, signal.SIGINT)
        seen += process.stdout.readlines()
        told = process.stderr.read()
    assert told == ""
    assert process.returncode == 0
    kept = int(seen[-1].split()[1])
    assert 6 <= kept < 1_000
    assert _left(process.pid) == []


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    with _at_work(tmp_path) as (process, seen):
        assert process.stdout is not None
        assert process.stderr is not None
        os.kill(next(_workers(process.pid))[0], signal.SIGKILL)
        seen += process.stdout.readlines()
        told = process.stderr.read()
    assert told == ""
    assert process.returncode == 0
    _, kept, lost = seen[-1].split(maxsplit=2)
    assert 6 <= int(kept) < 1_000
    assert lost == "a worker process was ended from outside: killed, or out of memory\n"
    assert _left(process.pid) == []


def test_what_a_killed_group_leaves_goes_with_the_next_run(tmp_path: Path) -> None:
    with _at_work(tmp_path) as (process, _):
        os.killpg(process.pid, signal.SIGKILL)
    left = f"sem.loky-{process.pid}-*"
    assert list(SEMAPHORES.glob(left))
    with local_workers(1):
        assert not list(SEMAPHORES.glob(left))


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with _at_work(tmp_path) as (process, _):
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert _left(process.pid) == []


def test_semaphores_of_the_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of processes that run, and what has another name, stay."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    names = {f"sem.loky-{os.getpid()}-abc", f"loky-{ended.pid}-abc", "sem.loky-x-abc"}
    for name in (*names, f"sem.loky-{ended.pid}-abc"):
        (tmp_path / name).touch()
    monkeypatch.setattr(worker_processes, "SEMAPHORES", tmp_path)
    with worker_processes.local_workers(1):
        pass
    assert {path.name for path in tmp_path.iterdir()} == names


def _left(group: int) -> list[str]:
    """What still runs of a group that should end soon; what watches over files ends last."""
    for _ in range(600):
        if not (left := _running(group)):
            break
        time.sleep(0.1)
    return left


def _heard_by_workers(parent: int) -> list[bool]:
    """Of each worker, whether it would hear Ctrl-C."""
    masks = (int(status["SigBlk"], 16) for _, status in _workers(parent))
    return [not mask & 1 << signal.SIGINT - 1 for mask in masks]


def _workers(parent: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and status of each."""
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            command = path.with_name("cmdline").read_text()
            status = dict(line.split(":", 1) for line in path.read_text().splitlines())
        except OSError:  # it ended meanwhile
            continue
        if int(status["PPid"]) == parent and "LokyProcess" in command:
            yield int(path.parent.name), status


def _running(group: int) -> list[str]:
    """Processes of that group that still run; those that only wait to be counted do not."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = path.read_text().rsplit(")", 1)
        except OSError:  # it ended meanwhile
            continue
        state, _, of = fields.split()[:3]
        if int(of) == group and state != "Z":
            found.append(name)
    return found

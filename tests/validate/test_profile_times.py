"""Instructions per cycle of a profiled query, from the time that it took."""

from pathlib import Path

import pytest
from profiles import GROUPS, SCAN, operators, profiled

from numatwin import run_scenario
from numatwin.cli import main
from numatwin.sim.machine.assumptions import Variant
from numatwin.sim.run.assumptions import varied
from numatwin.sim.run.doubts import doubts_of
from numatwin.sim.run.what_if import Predictor
from numatwin.validate.profile.timed_rates import on_one_thread, one_query


def test_ranges_of_instructions_per_cycle_are_doubts(tmp_path: Path) -> None:
    """Between each loop's least rate, one a cycle, and the most, eight, lies the time of its
    instructions, but for an eighth."""
    profiled(tmp_path, calls=GROUPS.read_text())
    scenario = one_query(tmp_path, "xeon-4s-ivb", tmp_path / "made.yaml", 1)
    (doubt,) = [one for one in doubts_of(scenario) if one.name == "q: ipc of all loops"]
    assert len(doubt.at(0.0)) == 3
    rates = []
    for part in (0.0, 1.0):
        end = Variant("an end", doubt.at(part))
        rates.append(Predictor(varied(scenario, end)).own.throughput["q"])
    instructions_s = 12_582_931 / 2.5e9  # at one a cycle
    assert 1 / rates[0] - 1 / rates[1] == pytest.approx(instructions_s * (1 - 1 / 8), rel=0.05)


TIMED_ON = ("--timed-on", "xeon-4s-ivb")


def time_s(folder: Path) -> float:
    """Predicted of the made workload on one thread."""
    scenario = on_one_thread(folder, TIMED_ON[1], folder / "made.yaml")
    return 1 / run_scenario(scenario).throughput["q"]


def test_one_thread_is_on_one_of_four_nodes(tmp_path: Path) -> None:
    """Of entries that no table's part keeps there."""
    workload = tmp_path / "scan.yaml"
    workload.write_text(SCAN.replace("table: t, ", "entries: 10_000_000, "))
    alone, four = (
        run_scenario(scenario).throughput["scan"]
        for scenario in (
            on_one_thread(tmp_path, TIMED_ON[1], workload),
            one_query(tmp_path, TIMED_ON[1], workload, 1),
        )
    )
    assert alone == pytest.approx(four / 4, rel=0.1)


@pytest.mark.parametrize("ms", [2.5, 3.5, 5.0])
def test_loops_execute_as_the_time_tells(tmp_path: Path, ms: float) -> None:
    """What is predicted is what was timed; what is uncertain of the machine leaves a range."""
    made = profiled(tmp_path, "--time", f"{ms}ms", *TIMED_ON, calls=GROUPS.read_text())
    assert time_s(tmp_path) == pytest.approx(ms * 1e-3, rel=0.01)
    loops = operators(made)["all"].all_loops
    for loop in (loop for loop in loops if loop.instructions > 100):  # in others, one miss is all
        assert loop.ipc is not None
        assert loop.ipc.range is not None
        low, high = (float(end) for end in loop.ipc.range)
        assert 1.0 <= low < float(loop.ipc.value) < high <= 8.0
        assert high / low < 2.5
    assert "the time of the query tells" in (tmp_path / "made.yaml").read_text()


def test_times_of_runs_leave_a_range(tmp_path: Path) -> None:
    found = []
    for times in (("3ms",), ("2.6ms", "3ms", "3.4ms")):
        words = [word for time in times for word in ("--time", time)]
        made = profiled(tmp_path, *words, *TIMED_ON, calls=GROUPS.read_text())
        (ipc, *_) = [loop.ipc for loop in operators(made)["all"].all_loops]
        assert ipc is not None
        assert ipc.range is not None
        found.append((float(ipc.value), *map(float, ipc.range)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-3)
    assert found[1][1] < found[0][1]
    assert found[0][2] < found[1][2]


def test_the_time_of_another_workload_tells_as_much(tmp_path: Path) -> None:
    """The same loops with half of the counts take half as long."""
    profiled(tmp_path, calls=GROUPS.read_text())
    small = tmp_path / "small.yaml"
    (tmp_path / "made.yaml").rename(small)
    words = ("--time", "3ms", *TIMED_ON, "--timed", str(small))
    profiled(tmp_path, "--queries", "2", *words, calls=GROUPS.read_text())
    assert time_s(tmp_path) == pytest.approx(1.5e-3, rel=0.03)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--time", "2s"), "--time: no instructions per cycle explain it: found '2 s'"),
        (("--time", "2 km"), "'2 km'"),
        (("--timed", "small.yaml"), "--timed without --time"),
        (("--time", "2ms", "--timed", "small.yaml"), "small.yaml"),
        (("--time", "2ms", "--timed", str(GROUPS.with_name("exact.yaml"))), "exact.yaml"),
    ],
)
def test_times_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    out = tmp_path / "made.yaml"
    assert main(["profile", str(GROUPS), *words, *TIMED_ON, "--out", str(out)]) == 2
    assert expected in capsys.readouterr().err
    assert not out.exists()

"""An engine's profile in a scenario: its costs on any machine, its ranges, and mistakes in it."""

import math
from pathlib import Path

import pytest

from numatwin.inputs import InputError
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario, scenario_from_settings
from numatwin.sim.run.uncertainty import with_uncertainty
from numatwin.sim.run.what_if import first_moment
from numatwin.sim.systems.eris.costs import ErisCosts
from numatwin.sim.systems.eris.index import ArrayTree, PrefixTree

PROFILE = Path(__file__).parents[2] / "docs" / "examples" / "my-engine.yaml"
CLOCK = "machine.node_types.opteron-6274-die.clock"


def loaded(*settings: str, machine: str | None = None) -> Scenario:
    return load_scenario(
        "eris-fig8-amd-shared", machine=machine, settings=[f"engine={PROFILE}", *settings]
    )


def lookups(scenario: Scenario) -> float:
    plane = first_moment(scenario)
    return float(plane.outcome(with_gains=False).throughput["lookup"])


@pytest.mark.parametrize("machine", ["amd-8n-ht", "intel-4s-qpi", "zen5-2c"])
def test_it_has_its_instructions_on_any_machine(machine: str) -> None:
    """Also where the machine's file has times of another engine."""
    costs = ErisCosts(loaded("workload.objects.index.keys=1000000", machine=machine).machine)
    assert costs.instructions.tree_level == pytest.approx(35)
    assert costs.instructions.generate == pytest.approx(120)
    assert costs.instructions.tree_entry == 16.6  # as counted
    assert costs.level_lines == 2
    assert not costs.implementation.array_tree


def test_instructions_take_as_long_as_the_clock_says() -> None:
    keys = "workload.objects.index.keys=1000"
    slow, fast = (lookups(loaded(keys, f"{CLOCK}={GHz} GHz")) for GHz in (1, 2))
    assert fast == pytest.approx(2 * slow, rel=0.05)


def test_settings_of_the_engine_come_last() -> None:
    costs = ErisCosts(loaded("machine.engines.eris.tree_level=1 us").machine)
    rate = float(costs.instructions_per_s[0])
    assert costs.instructions.tree_level == pytest.approx(1e-6 * rate)
    assert costs.instructions.generate == pytest.approx(120)


def test_more_lines_of_a_step_are_slower() -> None:
    keys = "workload.objects.index.keys=100000000"
    few, many = (
        lookups(loaded(keys, f"machine.engines.eris.level_lines={lines}")) for lines in (0.5, 4)
    )
    assert many < 0.7 * few


@pytest.mark.parametrize("tree", [PrefixTree, ArrayTree])
def test_lines_of_a_step_leave_the_index_as_large(tree: type[PrefixTree]) -> None:
    one, four = tree(10**8), tree(10**8, step_lines=4.0)
    assert four.bytes_per_key == pytest.approx(one.bytes_per_key, rel=1e-4)
    assert (four.row_lines[: four.levels] == 4.0).all()
    assert four.row_lines[-1] == one.row_lines[-1]


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_a_lock_bounds_what_all_threads_do(plane: str) -> None:
    """10 ns of each lookup under a lock: 100 million per second, whatever the threads."""
    record = run_scenario(
        load_scenario(
            "eris-fig8-amd-shared",
            plane=plane,
            settings=[
                *(f"engine={PROFILE}", "machine.engines.eris.lookup_serial=10 ns"),
                *("system.nodes=2", "system.threads=8", "statistics.replications=1"),
                *("horizon=1 ms", "statistics.warm_up=200 us"),
                "workload.objects.index.keys=1000000",
            ],
        )
    )
    assert record.throughput["lookup"] == pytest.approx(100e6, rel=1e-2)
    assert plane != "flow" or "one lock" in record.why["lookup"].resource


MISFIT = """
misfit: {error: 0.5, rows: 4, warning: held out rows are off by 21% in the median}
"""


def test_how_far_the_fit_was_off_is_in_intervals_and_told(tmp_path: Path) -> None:
    """Student's t of four rows: 90% within e^(± 2.13 x 0.5), further than the model's own error."""
    path = tmp_path / "mine.yaml"
    path.write_text(PROFILE.read_text() + MISFIT)
    runs = [(scenario, run_scenario(scenario)) for scenario in (loaded(), loaded(f"engine={path}"))]
    sure, unsure = (with_uncertainty(record, scenario) for scenario, record in runs)
    assert unsure.throughput == sure.throughput
    assert unsure.warnings == ("engine: held out rows are off by 21% in the median", *sure.warnings)
    (low, high), (inner_low, inner_high) = (
        record.uncertainty["throughput"]["lookup"] for record in (unsure, sure)
    )
    assert low < inner_low < inner_high < high
    assert high / low > math.exp(2 * 2.1 * 0.5)
    (told,) = (one for one in unsure.uncertainty["model"] if one["figure"] == "throughput.lookup")
    assert told["factor"] == pytest.approx(math.exp(2.132 * 0.5), rel=1e-3)
    assert told["rows"] == 4


def test_ranges_make_predictions_intervals() -> None:
    scenario = loaded()
    facts = ("generate", "tree_level", "level_lines")
    assert set(scenario.machine.doubtful) == {f"engines.eris.{fact}" for fact in facts}
    record = with_uncertainty(run_scenario(scenario), scenario)
    low, high = record.uncertainty["throughput"]["lookup"]
    drawn = {doubt["name"] for doubt in record.uncertainty["doubts"]}
    assert drawn >= {f"engines.eris.{fact}" for fact in facts}
    assert low < record.throughput["lookup"] < high


def test_a_record_s_settings_make_the_same_scenario() -> None:
    scenario = loaded()
    again = scenario_from_settings(scenario.settings)
    assert again.hash == scenario.hash
    assert lookups(again) == lookups(scenario)
    assert load_scenario("eris-fig8-amd-shared").hash != scenario.hash


BAD = [
    ("system: eris", "system: eriss", "no profiles of engines of this kind: found 'eriss', "
     "expected 'eris'"),
    ("system: eris", "system: tasks", "found 'tasks', expected 'eris'"),
    ("tree_level:", "tree_lever:", "unknown field 'tree_lever' in facts: expected 'tree_level'"),
    ("value: 35", "value: fast", "facts.tree_level.value"),
    ("[30, 40]", "[40, 30]", "facts.tree_level"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "bad.yaml"
    text = PROFILE.read_text().replace(old, new)
    path.write_text(text)
    with pytest.raises(InputError) as failure:
        load_scenario("eris-fig8-amd", settings=[f"engine={path}"])
    assert message in str(failure.value)
    assert failure.value.file == str(path)
    line = text[: text.index(new)].count("\n") + 1
    assert failure.value.line == line


def test_a_profile_of_another_kind_of_engine(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"a profile of engines of kind eris: found .* of kind comm"
    ):
        load_scenario("nam-fig6-rsi", settings=[f"engine={PROFILE}"])
    with pytest.raises(InputError, match=r"nothing\.yaml: cannot be read"):
        load_scenario("eris-fig8-amd", settings=["engine=nothing.yaml"])

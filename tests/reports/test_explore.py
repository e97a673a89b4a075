"""What the page to explore with predicts and serves, without a browser."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from dash.exceptions import PreventUpdate
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.reports.explore import explorer as explorer_module
from numatwin.reports.explore import layout
from numatwin.reports.explore.explorer import Choice, Explorer, Moment
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.studies.base import Base
from numatwin.sim.studies.influences import Field

BANDWIDTH = "machine.node_types.opteron-6274-die.memory.bandwidth"
QPI_BANDWIDTH = "machine.node_types.e7-4860.memory.bandwidth"
HOSTILE = (
    "", "fast", "1 [GB/s", "{a: 1}", "1 GB/s # x", "1: 2", "*a", "!!python/name:os", "1" * 99,
)  # fmt: skip
FASTER = Choice((f"{BANDWIDTH}=24.6 GB/s",))


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer(Base("eris-fig12-scan"))


def test_a_variant_is_what_a_run_of_its_command_says(explorer: Explorer) -> None:
    before, after = explorer.moment(Choice()), explorer.moment(FASTER)
    assert after.total == pytest.approx(1.5 * before.total, rel=0.05)
    assert "memory bandwidth" in explorer.why(Choice())["scan"].resource
    assert explorer.command(FASTER).endswith(f"--on flow --set '{FASTER.settings[0]}'")
    assert before.picture is not None
    assert before.picture.startswith("<svg")


def test_the_scenario_file_is_the_variant(explorer: Explorer, tmp_path: Path) -> None:
    text = explorer.scenario_file(FASTER)
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert isinstance(yaml.safe_load(text), dict)
    assert load_scenario(path).hash == explorer._load(FASTER).hash


def test_menus_and_report(explorer: Explorer) -> None:
    menus = explorer.menus()
    assert "intel-4s-qpi" in menus["machine"]
    assert {"none", "one-shot"} <= set(menus["balancing"])
    elsewhere = Choice(machine="intel-4s-qpi")
    assert explorer.moment(elsewhere).total != explorer.moment(Choice()).total
    assert "intel-4s-qpi" in explorer.report([Choice(), elsewhere])


def test_a_broken_value_is_one_line_and_costs_nothing(explorer: Explorer) -> None:
    with pytest.raises(InputError, match="GB/s") as failure:
        explorer.moment(Choice((f"{BANDWIDTH}=fast",)))
    assert "\n" not in str(failure.value)
    assert explorer.moment(Choice()).total > 0


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (Choice(machine="/etc/passwd"), "machine=/etc/passwd"),
        (Choice(machine="../machine.yaml"), "menus"),
        (Choice(workload="/etc/passwd"), "menus"),
        (Choice(policies=("balancing=/tmp/p.py:P",)), "menus"),
        (Choice(policies=("/tmp/p.py:P",)), "menus"),
        (Choice(("machine=/etc/passwd",)), "not a field of this page: found 'machine'"),
        (Choice(("policies.balancing=/tmp/p.py:P",)), "not a field"),
        (Choice(("workload=/etc/passwd",)), "not a field"),
        (Choice(("extends=/etc/passwd",)), "not a field"),
        (Choice(("plane=native",)), "not a field"),
        *((Choice((f"{BANDWIDTH}={text}",)), "GB/s") for text in HOSTILE),
    ],
)
def test_only_what_the_page_offers_may_be_chosen(
    explorer: Explorer, choice: Choice, told: str
) -> None:
    asked: tuple[Callable[[Choice], object], ...] = (
        explorer.moment,
        explorer.why,
        explorer.scenario_file,
        lambda one: explorer.report([one]),
    )
    for ask in asked:
        assert told in told_by(ask, choice)


def test_a_long_prediction_holds_up_no_other(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three that never end, while a fourth is answered; one that nobody waits for is left out."""
    explorer.moment(Choice())
    begun, end = threading.Semaphore(0), threading.Event()
    predict = explorer_module._moment

    def slow(scenario: Scenario) -> Moment:
        if scenario.machine.name == "intel-4s-qpi":
            begun.release()
            assert end.wait(60)
        return predict(scenario)

    monkeypatch.setattr(explorer_module, "_moment", slow)
    times = [Choice((f"{QPI_BANDWIDTH}={k} GB/s",), "intel-4s-qpi") for k in (11, 12, 13)]
    with ThreadPoolExecutor(3) as threads:
        long = [threads.submit(explorer.moment, one) for one in times]
        try:
            assert all(begun.acquire(timeout=60) for _ in long)
            other = Choice((f"{BANDWIDTH}=20 GB/s",))
            with pytest.raises(PreventUpdate):
                explorer.moment(other, lambda: False)
            assert explorer.moment(other).total > 0
            assert not any(one.done() for one in long)
        finally:
            end.set()
        assert all(one.result().total > 0 for one in long)


def test_whole_numbers_end_at_one_and_effects_are_factors() -> None:
    field = Field("system.clients", 1.0, whole=True, effect=31.9)
    text = str(layout.controls([field], [field.path], {}, quick=True))
    assert "'-2': {'label': '1'}" in text.replace("-2:", "'-2':")
    assert "×32.9" in text

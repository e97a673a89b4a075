"""Uncertainty of facts and draws together: between what a figure lies, and who beats whom."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin import load_scenario, run_scenario
from numatwin.inputs.quantities import si_of
from numatwin.inputs.shared_work import shared
from numatwin.reports.answer import _doubts
from numatwin.sim.machine.assumptions import Assumption, Variant, split_quantity
from numatwin.sim.run import uncertainty
from numatwin.sim.run.assumptions import facts_in
from numatwin.sim.run.decision import decision
from numatwin.sim.run.doubts import SPREADS, Doubt, doubts_of, kind_of
from numatwin.sim.run.model_error import SCALES, ModelError
from numatwin.sim.run.record import Record, part_at
from numatwin.sim.run.runner import with_effects
from numatwin.sim.run.scenario import Scenario
from numatwin.sim.run.uncertainty import DRAWS, with_uncertainty
from numatwin.sim.run.what_if import first_moment
from numatwin.topologies import load_machine, machine_names


def record_of(values: list[float]) -> Record:
    """A record of replications with these values."""
    return replace(
        run_scenario(load_scenario("eris-fig8-intel")),
        throughput={"lookup": float(np.mean(values))},
        replications=len(values),
        replicates={"throughput": {"lookup": values}},
    )


@pytest.mark.parametrize("name", ["hana-fig10", "gru-fig4-cpu"])
def test_interval_and_effects_from_one_predictor(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they are as apart, in fewer predictions; from near by, rates are as from afar."""
    scenario = load_scenario(name, plane="flow")
    record, made = run_scenario(scenario), list[object]()

    def counted(own: Scenario, near: object = None) -> object:
        made.append(near)
        return first_moment(own, near)

    monkeypatch.setattr("numatwin.sim.run.what_if.first_moment", counted)
    apart = with_effects(with_uncertainty(record, scenario), scenario)
    predictions = len(made)
    with shared():
        together = with_effects(with_uncertainty(record, scenario), scenario)
    assert together == apart
    assert len(made) - predictions < predictions
    monkeypatch.setattr(
        "numatwin.sim.run.what_if.first_moment", lambda own, _=None: first_moment(own)
    )
    cold = with_effects(record, scenario).assumptions
    for row, other in zip(together.assumptions, cold, strict=True):
        for end in ("low", "high"):
            if row[end] and row[end]["throughput"] is not None:
                assert row[end]["throughput"] == pytest.approx(other[end]["throughput"], abs=2e-4)


def test_facts_alone() -> None:
    """An interval around the value from facts with ranges and assumptions; the same each time."""
    scenario = load_scenario("eris-fig8-amd", machine="xeon-8s-ivb")
    record = run_scenario(scenario)
    drawn = with_uncertainty(record, scenario)
    found = drawn.uncertainty
    low, high = found["throughput"]["lookup"]
    assert low < record.throughput["lookup"] < high
    names = [doubt["name"] for doubt in found["doubts"]]
    assert "node_types.e7-8880-v2.memory.latency" in names
    assert len(found["shifts"]["throughput"]["lookup"]) == DRAWS
    assert found["most"][0]["name"] == "machine.engines.eris.lines_in_flight"
    assert with_uncertainty(record, scenario).uncertainty == found
    for path in (("bandwidth_Bps", "memory"), ("bandwidth_Bps", "links"), ("energy_J",)):
        low, high = part_at(found, path)
        value = part_at(record.as_json(), path)
        assert low <= value <= high, path
        assert high > 1.005 * low


@pytest.mark.parametrize("rule", ["never", "always", "adaptive"])
def test_draws_go_by_what_may_be_stolen(rule: str) -> None:
    """And closed clients wait as much longer as less is done."""
    scenario = load_scenario("hana-fig11-low", policy=f"stealing={rule}")
    record = run_scenario(scenario)
    own = first_moment(scenario).outcome(with_gains=False).throughput
    assert own == pytest.approx(dict(record.throughput), rel=1e-3)
    shifts = with_uncertainty(record, scenario).uncertainty["shifts"]
    for name, rates in shifts["throughput"].items():
        waits = shifts["latency_ns"][name]["mean"]
        assert np.multiply(rates, waits) == pytest.approx(np.ones(DRAWS), rel=1e-3)


@pytest.mark.parametrize("name", ["amd-8n-ht", "xeon-2s-spr-snc4", "epyc-2s-cxl", "zen5-2c"])
def test_ranges_count_whether_marked_or_not(name: str) -> None:
    """Each range of a fact that the system reads is drawn, and within its ends."""
    scenario = load_scenario("host-lookup", machine=name, plane="flow")
    doubts = doubts_of(scenario)
    ranged = [doubt for doubt in doubts if doubt.assumption.ranged]
    assert len(ranged) >= 4
    for doubt in ranged:
        low, high = doubt.assumption.low, doubt.assumption.high
        assert low is not None
        assert high is not None
        for part, end in ((0.0, low), (1.0, high)):
            for place, setting in doubt.at(part).items():
                drawn, stated = split_quantity(setting), split_quantity(end.settings[place])
                assert drawn[0] == pytest.approx(stated[0]) or drawn[1] != stated[1]


def test_spreads_are_what_sources_state() -> None:
    """The medians of both ends of ranges, over the bundled machines that were not measured here."""
    found: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in SPREADS}
    for name in machine_names():
        plain = load_machine(name).description.model_dump(mode="json", exclude={"measurements"})
        for place, fact in () if name.endswith("-2c") else facts_in(plain):
            if kind_of(place) in SPREADS and fact.get("range"):
                values = [si_of(str(text)) for text in (fact["value"], *fact["range"])]
                own, low, high = (value[0] for value in values if value is not None)
                found[kind_of(place)].append((low / own, high / own))
    for kind, ends in found.items():
        assert len(ends) >= 8, kind
        assert np.median(ends, axis=0) == pytest.approx(SPREADS[kind], abs=0.006), kind


@given(st.floats(0.01, 100.0), st.floats(1.0, 50.0), st.floats(1.0, 50.0), st.floats(0.0, 1.0))
def test_half_of_the_draws_are_below_the_value(
    low: float, to_own: float, to_high: float, part: float
) -> None:
    own, high = low * to_own, low * to_own * to_high
    place = ("machine", "node_types", "a", "ipc")
    lowest, highest = (Variant(end, {place: end}) for end in (low, high))
    doubt = Doubt(Assumption("ipc", float(f"{own:.6g}"), "", "", lowest, highest), "ipc")
    found = doubt.at(part)[place]
    assert low * (1 - 1e-5) <= found <= high * (1 + 1e-5)
    assert (found <= own * (1 + 1e-5)) if part <= 0.5 else (found >= own * (1 - 1e-5))
    draws = doubt.draws(DRAWS)
    assert sorted((draws * DRAWS).astype(int)) == list(range(DRAWS))


def test_draws_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean 100, deviation 10, five replications: 100 ± t(4, 95%) · 10 · √(1 + 1/5) = ± 23.35."""
    record = record_of([90.0, 90.0, 100.0, 110.0, 110.0])
    scenario = load_scenario("eris-fig8-intel")
    monkeypatch.setattr(uncertainty, "doubts_of", lambda scenario: ())
    sure = ModelError(np.eye(len(SCALES))[0], 0, 0)
    monkeypatch.setattr(uncertainty, "known_error", lambda of: sure)
    found = with_uncertainty(record, scenario).uncertainty
    low, high = found["throughput"]["lookup"]
    assert found["doubts"] == []
    assert (low, high) == pytest.approx((100 - 23.35, 100 + 23.35), abs=1.5)


def test_what_policies_change_later_is_said() -> None:
    """Of those that remember; on the page, too."""
    scenario = load_scenario("hana-fig10")  # placer and stealing, both adaptive
    record = with_uncertainty(run_scenario(scenario), scenario)
    assert record.uncertainty["left_out"] == ["placer"]
    assert "what policies of placer change later is left out." in str(_doubts(record))


def open_run(rate: str) -> Record:
    clients = f"workload.clients={{kind: open, arrival_rate: {rate}}}"
    scenario = load_scenario("eris-fig8-intel", plane="flow", settings=[clients])
    return with_uncertainty(run_scenario(scenario), scenario)


def test_open_clients_have_no_more_done_than_they_offer() -> None:
    few, near, many = (open_run(rate) for rate in ("10 M/s", "250 M/s", "100 G/s"))
    assert few.uncertainty["throughput"]["lookup"] == pytest.approx([10e6, 10e6])
    low, high = near.uncertainty["throughput"]["lookup"]
    assert (low < 200e6, high) == (True, pytest.approx(250e6, rel=1e-3))
    assert many.uncertainty["throughput"]["lookup"][1] > 1.2 * many.throughput["lookup"]
    assert (decision(few, open_run("20 M/s"), "lookup") or {})["interval"] == pytest.approx([2, 2])
    ranged = open_run("{value: 10 M/s, range: [5 M/s, 20 M/s]}").uncertainty["throughput"]
    assert 5e6 < ranged["lookup"][0] < 6e6 < 17e6 < ranged["lookup"][1] < 20e6


@pytest.mark.parametrize("pause", ["1 s", "{value: 1 s, range: [0.999 s, 1.001 s]}"])
def test_closed_clients_are_no_faster_than_their_pauses(pause: str) -> None:
    scenario = load_scenario("short-and-long", settings=[f"workload.clients.think_time={pause}"])
    record = with_uncertainty(run_scenario(scenario), scenario)
    for name, (_, high) in record.uncertainty["throughput"].items():
        cycle_s = 1.0 + ((record.latency_ns[name] or {})["mean"] or 0.0) * 1e-9
        assert 1.0 < high / record.throughput[name] < cycle_s


@pytest.mark.parametrize(("rate", "mean"), [("66/s", True), ("1500/s", False)])
def test_what_grows_without_end_has_no_mean(rate: str, mean: bool) -> None:
    clients = f"workload.clients={{kind: open, arrival_rate: {rate}}}"
    scenario = load_scenario("host-queries", plane="flow", settings=[clients])
    record = with_uncertainty(run_scenario(scenario), scenario)
    assert bool((record.latency_ns["sums"] or {})["mean"]) == mean
    assert ("latency_ns" in record.uncertainty, "no mean" in record.warnings[-1]) == (False, True)

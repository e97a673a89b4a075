"""Several passes over a host made one: figures by hand, ranges of facts, what holds of any."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_hosts import figure, measured

from numatwin.inputs import Quantity
from numatwin.inputs.progress import StepProgress
from numatwin.sim.systems.eris.facts import ENGINE, ErisFacts
from numatwin.topologies.measurements import Measurement
from numatwin.topologies.schema import MachineDescription
from numatwin.validate.measure import Result, measured_description, merged, passes, session
from numatwin.validate.measure.bench import FULL, WANTED_MIN, Bench
from numatwin.validate.measure.machine_file import with_ranges


def latency(ns: float, *, spread: float = 0.0, noisy: bool = False) -> Measurement:
    return figure("memory.latency", ns * 1e-9, "time", spread=spread, noisy=noisy)


def of_latencies(*figures: Measurement) -> Result:
    return merged([measured([one]) for one in figures])


def only(result: Result) -> Measurement:
    (found,) = result.measurements
    return found


def test_the_median_of_the_passes_with_the_quartiles_of_all() -> None:
    found = only(of_latencies(latency(90), latency(130), latency(100)))
    assert found.value.value == 100e-9
    # Each stands there with two quartiles like it: three times 90, 100 and 130.
    assert found.quartiles is not None
    assert [end.value for end in found.quartiles] == pytest.approx([90e-9, 130e-9])
    assert found.repetitions == 27
    assert not found.noisy


def test_disturbed_passes_are_left_out_where_most_were_calm() -> None:
    found = only(of_latencies(latency(90), latency(300, noisy=True), latency(100)))
    assert (found.value.value, found.noisy) == (95e-9, False)
    assert (found.repetitions, found.disturbed) == (18, 9)


def test_where_few_were_calm_all_count() -> None:
    found = only(of_latencies(latency(90), latency(300, noisy=True), latency(100, noisy=True)))
    assert (found.value.value, found.noisy) == (100e-9, True)
    assert (found.repetitions, found.disturbed) == (27, 0)


def test_a_figure_that_not_all_passes_have() -> None:
    one, other = measured([latency(90), figure("copy", 1e-6, "time")]), measured([latency(100)])
    found = merged([one, other])
    assert [m.name for m in found.measurements] == ["memory.latency", "copy"]
    assert found.measurements[1] == one.measurements[1]


def test_figures_of_one_name_are_told_apart_by_what_they_are_of_and_their_order() -> None:
    def curve(scale: float) -> Result:
        sizes = [figure("latency", scale * s * 1e-9, "time", size=f"{s} KiB") for s in (4, 8)]
        twice = [figure("loaded.latency", scale * k * 1e-9, "time") for k in (3, 5)]
        return measured([*sizes, *twice])

    found = merged([curve(1.0), curve(3.0), curve(2.0)])
    values = [m.value.value * 1e9 for m in found.measurements]
    assert values == pytest.approx([8.0, 16.0, 6.0, 10.0])


def test_the_host_of_all_passes() -> None:
    def one(parts: list[str], seconds: float, steal: float, **more: object) -> Result:
        state = {"parts": parts, "duration": f"{seconds} s", "steal": steal}
        return replace(measured([latency(90)], **state), **more)  # type: ignore[arg-type]

    first = one(["latency", "walk"], 30.0, 0.02)
    cut = one(["latency"], 12.0, 0.0, missing=("walk",), interrupted=True, warnings=("this",))
    found = merged([first, cut])
    assert found.host.parts == ("latency", "walk")
    assert found.host.duration is not None
    assert (found.host.duration.value, found.host.steal, found.host.passes) == (42.0, 0.01, 2)
    assert (found.missing, found.interrupted) == ((), True)
    assert found.warnings == ("this", "interrupted: in pass 2")
    assert merged([cut]).missing == ("walk",)
    assert "interrupted: not finished: walk" in merged([cut]).warnings
    noisy = "noisy host: the hypervisor took 2% of the CPUs' time"
    assert merged([first]).warnings == (noisy,)


readings = st.tuples(
    st.floats(1.0, 1e6), st.floats(0.0, 0.9), st.booleans()
)  # value, spread, noisy


@given(st.lists(readings, min_size=1, max_size=7))
def test_what_holds_of_any_passes(of: list[tuple[float, float, bool]]) -> None:
    figures = [latency(value, spread=spread, noisy=noisy) for value, spread, noisy in of]
    found = only(of_latencies(*figures))
    values = [value * 1e-9 for value, _, _ in of]
    assert min(values) * 0.999 <= found.value.value <= max(values) * 1.001
    assert found.repetitions + found.disturbed == 9 * len(of)
    assert found.noisy == (2 * sum(noisy for _, _, noisy in of) >= len(of))
    assert only(of_latencies(*reversed(figures))).value == found.value
    assert only(of_latencies(*[figures[0]] * 3)).value.value == pytest.approx(values[0], rel=1e-3)


def test_facts_are_of_all_passes() -> None:
    results = [measured([latency(ns)]) for ns in (90, 130, 100)]
    found = measured_description(merged(results)).node_types["node"].memory.latency
    assert found is not None
    assert found.value == 100e-9
    assert (found.low, found.high) == pytest.approx((90e-9, 130e-9))


def with_engine(message_ns: float, level_ns: float | None) -> MachineDescription:
    def time(ns: float) -> Quantity:
        return Quantity(ns * 1e-9, ns * 1e-9, ns * 1e-9)

    level = None if level_ns is None else time(level_ns)
    engine = ErisFacts(message=time(message_ns), tree_level=level)
    return measured([]).layout.description.with_facts(ENGINE, engine)


def test_a_fact_worked_out_of_figures_ranges_over_what_it_was_in_each_pass() -> None:
    each = [with_engine(ns, level) for ns, level in ((40, 1), (80, None), (60, 3), (44, 2))]
    found = with_ranges(with_engine(50, 2), each).facts_of(ENGINE, ErisFacts)
    assert found is not None
    assert found.message is not None
    assert found.tree_level is not None
    ends = (found.message.value, found.message.low, found.message.high)
    assert ends == pytest.approx((50e-9, 43e-9, 65e-9))
    # One pass knows nothing of it.
    ends = (found.tree_level.value, found.tree_level.low, found.tree_level.high)
    assert ends == pytest.approx((2e-9, 1.5e-9, 2.5e-9))
    alone = with_ranges(with_engine(50, 2), []).facts_of(ENGINE, ErisFacts)
    assert alone == with_engine(50, 2).facts_of(ENGINE, ErisFacts)


def test_a_host_is_measured_in_passes_until_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def one(*, progress: StepProgress, **how: Any) -> Result:
        asked.append(how)
        progress(1.0, "walk")
        return replace(measured([latency(100)]), interrupted=len(asked) == stop)

    monkeypatch.setattr(passes, "measure_pass", one)
    stop, told = 0, list[float]()
    found = passes.measure_host(progress=lambda share, _: told.append(share))
    assert found.host.passes == passes.PASSES == len(found.passes)
    assert [how["again"] for how in asked] == [False, True, True]
    assert {how["passes"] for how in asked} == {passes.PASSES}
    assert told == pytest.approx([1 / 3, 2 / 3, 1.0])
    asked.clear()
    stop = 2
    found = passes.measure_host(progress=lambda share, _: told.append(share))
    assert (len(asked), found.interrupted) == (2, True)
    asked.clear()
    passes.measure_host(quick=True, progress=lambda share, _: told.append(share))
    assert [(how["quick"], how["passes"]) for how in asked] == [(True, 1)]


@pytest.mark.parametrize("again", [False, True])
def test_a_further_pass_leaves_out_what_no_fact_rests_on(
    monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")
    done: list[tuple[str, int]] = []

    def part(name: str) -> Callable[[Bench], Iterator[float]]:
        def run(bench: Bench) -> Iterator[float]:
            done.append((name, bench.effort.octave_points))
            yield 1.0

        return run

    for name in session.PARTS:
        monkeypatch.setitem(session.PARTS, name, (part(name), 1.0))
    session.measure_pass(passes=3, again=again)
    expected = [name for name in session.PARTS if not (again and name in session.ONCE)]
    assert [name for name, _ in done] == expected
    assert {points for _, points in done} == {1 if again else FULL.octave_points}


def test_a_pass_of_several_takes_its_part_of_the_effort() -> None:
    one = FULL.of_one(3, again=False)
    assert one.wanted == FULL.wanted // 3
    assert FULL.of_one(1, again=False) == FULL
    assert FULL.of_one(100, again=False).wanted == WANTED_MIN

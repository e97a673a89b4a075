"""What passes over tuples take here: each step has a figure, and all together are facts."""

import dataclasses
import math

import pytest

from numatwin.engine_native import _engine
from numatwin.sim.systems.joins.facts import ENGINE, JoinFacts
from numatwin.validate.measure.bench import QUICK, Bench
from numatwin.validate.measure.layout import host_layout
from numatwin.validate.systems import join_passes

TINY = dataclasses.replace(QUICK, wanted=3, window_ns=20_000)


@pytest.fixture(scope="module")
def bench() -> Bench:
    made = Bench(host_layout(), TINY)
    for share in join_passes.measure(made):
        assert 0 < share <= 1
    return made


def test_each_step_has_a_time_at_each_end_of_its_sizes(bench: Bench) -> None:
    facts = join_passes.join_facts(bench.measurements, "today")
    assert facts is not None
    for step, (sizes, *_) in join_passes.WORK.items():
        found = [one for one in facts.passes if one.step == step]
        assert {one.at for one in found} == {sizes[0], sizes[-1]}
        assert all(0 < one.time.value < 1e-4 for one in found)
        assert all((one.buffer is not None) == (step == "partition") for one in found)
    # A machine file has it in its engines.
    described = join_passes.described(host_layout().description, bench.measurements, "today")
    assert described.facts_of(ENGINE, JoinFacts) == facts


def test_both_tables_of_a_probe_take_longer_than_building_one() -> None:
    """By their fastest windows, in turns: another program makes windows longer, never shorter."""
    bench, fastest = Bench(host_layout(), TINY), {"build": math.inf, "join": math.inf}
    for _ in range(20):
        for step in fastest:
            work = join_passes._work(step, join_passes.INNER[-1], None)
            windows = bench.run([(bench.layout.cores[0], work)], limit_s=0.6)
            fastest[step] = min(fastest[step], (windows.elapsed_ns / windows.amounts).min())
        if fastest["join"] > fastest["build"]:
            return
    pytest.fail(f"ns a tuple: {fastest}")


@pytest.mark.skipif(
    not _engine.HAS_UCX or sum(len(node.cores) for node in host_layout().starts) < 2,
    reason="needs libucx-dev and two cores",
)
def test_exchanges_by_transport_and_size(bench: Bench) -> None:
    facts = join_passes.join_facts(bench.measurements, "today")
    assert facts is not None
    assert set(facts.exchanges) == {"shm", "tcp"}
    for costs in facts.exchanges.values():
        assert {one.operation for one in costs} == {"message", "put"}
        assert all(one.time.value > 0 for one in costs)


def test_facts_that_lack_a_step_are_none(bench: Bench) -> None:
    without = [one for one in bench.measurements if one.parameters.step != "take"]
    assert join_passes.join_facts(without, "today") is None
    described = join_passes.described(host_layout().description, without, "today")
    assert ENGINE not in described.engines


def test_what_no_exchange_can_be_is_refused() -> None:
    pair = _engine.FabricPair("threads", True)
    with pytest.raises(ValueError, match="messages or puts"):
        pair.exchange(_engine.Verb.GET, 64, 4, True)
    with pytest.raises(ValueError, match="whole words"):
        pair.exchange(_engine.Verb.PUT, 63, 4, True)

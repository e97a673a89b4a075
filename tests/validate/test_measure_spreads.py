"""How single steps vary on this host: what is measured of them, and where it stands afterwards."""

from __future__ import annotations

import os
from typing import Any

import pytest

from numatwin.sim.systems.commits.facts import QUANTILES, CommitFacts
from numatwin.sim.systems.commits.spread import measured
from numatwin.topologies.measurements import Measurement, Parameters, Reading
from numatwin.validate.measure.interrupting import TURN_NS
from numatwin.validate.measure.processes import FACTOR_STEPS, host_facts

engine = pytest.importorskip("numatwin.engine_native._engine")

BYTES, REGION = 1_032, 1 << 18
WINDOWS, WINDOW_NS = 5, 10_000_000
BLOCKS = ("get", "write", "insert")


def called(function: str, transport: str, *arguments: Any) -> list[dict[str, Any]]:
    from numatwin.validate.measure.processes import _call

    return _call(function, transport, (*arguments, WINDOWS, WINDOW_NS, TURN_NS))


def check(row: dict[str, Any]) -> None:
    """A distribution: it rises, and its middle is what such a step mostly takes."""
    factors = row["factors"]
    assert len(factors) == len(QUANTILES) + 1 == len(FACTOR_STEPS)
    assert factors == sorted(factors)
    assert 0.3 < factors[QUANTILES.index(0.5)] < 2.0, row
    assert factors[0] < factors[-1]
    assert row["steps"] > 20
    assert measured(factors).mean == pytest.approx(1.0)


@pytest.mark.skipif(not engine.HAS_UCX, reason="built without UCX")
def test_steps_on_blocks() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    rows = called("measure_block_spreads", "shm", BYTES, [REGION], cpus)
    ends = ("", "-together") if len(cpus) > 1 else ("",)
    names = [name + end for end in ends for name in BLOCKS]
    assert [row["name"] for row in rows] == [*names, "begin"]
    for row in rows:
        check(row)


@pytest.mark.skipif(not engine.HAS_UCX, reason="built without UCX")
def test_ends_of_messages_and_sleepers() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    rows = called("measure_message_spreads", "tcp", BYTES, cpus)
    assert [row["name"] for row in rows] == ["end", "sleeper"][: len(cpus)]
    for row in rows:
        check(row)


def figure(name: str, value: Reading, **parameters: object) -> Measurement:
    return Measurement(
        name=name,
        value=value,
        repetitions=9,
        method="made up",
        parameters=Parameters.model_validate(parameters),
    )


def taken(name: str, **parameters: object) -> Measurement:
    return figure(f"step-{name}", Reading(1e-6, "time"), **parameters)


def spread(operation: str, *factors: float, **of: object) -> list[Measurement]:
    return [
        figure("spread", Reading(factor, "count"), operation=operation, step=step, **of)
        for step, factor in zip(FACTOR_STEPS, factors, strict=True)
    ]


FACTORS = (0.5, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0, 5.0, 20.0)


def costs(*more: list[Measurement]) -> CommitFacts:
    once = ("clock", "key-draw", "timestamp", "words-get", "word-add", "note")
    block: dict[str, object] = {"size": "1032 B", "region": "1 MiB"}
    ends: dict[str, object] = {"size": "64 B", "batch": 1, "transport": "tcp"}
    figures = [taken(name) for name in once]
    figures += [taken(f"block-{step}", **block) for step in ("get", "update", "insert")]
    figures += [taken(name, transport="tcp") for name in ("yield", "turn", "slice")]
    figures += [taken(f"{part}-get", **ends) for part in ("post", "serve", "complete")]
    figures += [taken(name, transport="tcp") for name in ("idle-look", "arm")]
    figures += [taken("sleep-same", size="64 B", transport="tcp")]
    found = host_facts([*figures, *(one for some in more for one in some)], "2026-01-01")
    assert found is not None
    return found.engine


def test_each_stands_where_it_belongs() -> None:
    region = {"region": "1 MiB"}
    found = costs(
        spread("begin", *FACTORS),
        *(spread(step, *FACTORS, **region) for step in BLOCKS),
        spread("end", *FACTORS, transport="tcp"),
        spread("sleeper", *FACTORS, transport="tcp"),
    )
    assert found.begin_spread == FACTORS
    (blocks,) = found.block_spreads
    assert (blocks.region.value, blocks.write, blocks.get_together) == (2**20, FACTORS, None)
    assert found.transports["tcp"].end_spread == FACTORS
    assert found.transports["tcp"].sleeper_spread == FACTORS
    assert CommitFacts.model_validate(found.model_dump(mode="json")) == found


def test_without_them_there_are_none() -> None:
    found = costs()
    assert (found.begin_spread, found.block_spreads) == (None, ())
    assert found.transports["tcp"].end_spread is None


def test_figures_of_several_passes_still_rise() -> None:
    """Each quantile is a median of its own: a later one may be the smaller."""
    crossed = (0.5, 0.8, 0.9, 1.0, 1.3, 1.1, 2.0, 5.0, 4.0)
    found = costs(spread("begin", *crossed))
    assert found.begin_spread == (0.5, 0.8, 0.9, 1.0, 1.3, 1.3, 2.0, 5.0, 5.0)


@pytest.mark.parametrize("factors", [(1.0,) * 8, (*FACTORS[:8], 1.0), (0.0,) * 9])
def test_a_file_with_what_is_no_distribution_is_refused(factors: tuple[float, ...]) -> None:
    told = costs().model_dump(mode="json")
    with pytest.raises(ValueError, match="begin_spread"):
        CommitFacts.model_validate(told | {"begin_spread": factors})

"""The engine against a dict and a list: sequences of commands, with balancing in their midst.

However many AEUs there are, on one node or on several, the answers are those of doing the commands
one after the other; each command is answered exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numatwin import InputError, load_scenario, run_scenario

if TYPE_CHECKING:
    from numatwin.engine_native._engine import Engine

engine = pytest.importorskip("numatwin.engine_native._engine", reason="built without libnuma")

KEYS, ENTRIES, MASK = 300, 500, 2**64 - 1
LOOKUP, UPSERT, SCAN, APPEND = range(4)
INDEX, COLUMN = 0, 1

# Each a list of commands, or new bounds or sizes.
Script = list[Any]

keys = st.one_of(st.integers(0, KEYS - 1), st.integers(0, 2 * KEYS), st.integers(0, MASK))
values = st.one_of(st.integers(0, 9), st.integers(0, MASK))
commands = st.one_of(
    st.tuples(st.just(LOOKUP), st.just(INDEX), keys, st.just(0)),
    st.tuples(st.just(UPSERT), st.just(INDEX), keys, values),
    st.tuples(st.just(SCAN), st.just(COLUMN), values, values),
    st.tuples(st.just(APPEND), st.just(COLUMN), st.just(0), values),
)
parts = st.lists(st.floats(0, 1), min_size=8, max_size=8)
SETTINGS = partial(
    settings, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
steps = st.lists(
    st.one_of(
        st.lists(commands, min_size=1, max_size=60),
        parts.map(lambda shares: ("bounds", shares)),
        parts.map(lambda shares: ("sizes", shares)),
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class Model:
    """What the engine should be: a dict, and a list."""

    index: dict[int, int] = field(default_factory=lambda: {key: key for key in range(KEYS)})
    column: list[int] = field(default_factory=list)

    def answer(self, kind: int, key: int, value: int) -> tuple[int, int]:
        """The value, and what was found."""
        if kind == LOOKUP:
            return self.index.get(key, 0), int(key in self.index)
        if kind == UPSERT:
            self.index[key] = value
        elif kind == APPEND:
            self.column.append(value)
        else:
            matches = [entry for entry in self.column if key <= entry <= value]
            return sum(matches) & MASK, len(matches)
        return 0, 1


def started(
    aeus: int, nodes: int, clients: bool, placement: str = "partitioned", value_bytes: int = 8
) -> Engine:
    setup = engine.EngineSetup([k % nodes for k in range(aeus)], [-1] * aeus, [-1] * nodes)
    setup.placement = placement
    setup.huge_pages = False
    setup.add_index("index", KEYS, value_bytes=value_bytes)
    setup.add_column("column", ENTRIES)
    # Traffic in the background: objects of its own, so that answers stay known.
    setup.add_index("busy", KEYS, value_bytes=value_bytes)
    if clients:
        setup.add_operation("lookup", "lookup", 2)
        setup.add_operation("upsert", "upsert", 2)
        setup.add_operation("scan", "scan", COLUMN, 0.5)
        uniform = engine.KeyDraws([0, KEYS], [1.0])
        setup.set_phase([0.5, 0.5, 0.001], [uniform, uniform, None])
        setup.think_ns = 20_000.0
    made: Engine = engine.Engine(setup)
    made.load()
    made.start()
    return made


def loaded_entries() -> list[int]:
    """The column as an engine of one AEU has it: equal values in equal places."""
    made = started(1, 1, clients=False)
    found: list[int] = []
    low = 0
    while len(found) < ENTRIES:  # the least entry from `low` on, by halving
        least, most = low, MASK
        while least < most:
            middle = (least + most) // 2
            _, matches, _ = made.execute([SCAN], [COLUMN], [low], [middle])
            least, most = (least, middle) if matches[0] else (middle + 1, most)
        _, matches, _ = made.execute([SCAN], [COLUMN], [least], [least])
        found += [least] * int(matches[0])
        low = least + 1
    made.stop()
    return found


@pytest.fixture(scope="module")
def entries() -> list[int]:
    return loaded_entries()


def cuts(shares: list[float], total: int, aeus: int) -> list[int]:
    inner = sorted(int(share * total) for share in shares[: aeus - 1])
    return [0, *inner, total]


def play(made: Engine, script: Script, model: Model, aeus: int) -> None:
    for step in script:
        if isinstance(step, tuple):
            what, shares = step
            number = INDEX if what == "bounds" else COLUMN
            if made.balancing(number):
                continue
            if what == "bounds":
                made.rebalance(INDEX, cuts(shares, KEYS, aeus))
            else:
                ends = cuts(shares, len(model.column), aeus)
                made.rebalance(COLUMN, np.diff(ends).tolist())
            continue  # the next commands run into the cycle
        kinds, objects, first, second = (list(part) for part in zip(*step, strict=True))
        expected = [
            model.answer(kind, key, value)
            for kind, key, value in zip(kinds, first, second, strict=True)
        ]
        found_values, found, times = made.execute(
            np.array(kinds, np.uint8),
            np.array(objects, np.uint64),
            np.array(first, np.uint64),
            np.array(second, np.uint64),
        )
        assert times.tolist() == [1] * len(step)
        assert list(zip(found_values.tolist(), found.tolist(), strict=True)) == expected
    while any(made.balancing(number) for number in (INDEX, COLUMN)):
        made.check()
    made.stop()  # raises where a command was lost or done twice


@pytest.mark.parametrize(("aeus", "nodes"), [(1, 1), (2, 1), (3, 3), (7, 3)])
@given(script=steps)
@SETTINGS(max_examples=25)
def test_answers_are_those_of_a_dict_and_a_list(
    aeus: int, nodes: int, entries: list[int], script: Script
) -> None:
    model = Model(column=list(entries))
    play(started(aeus, nodes, clients=False), script, model, aeus)


@pytest.mark.parametrize("aeus", [2, 7])
@given(script=steps)
@SETTINGS(max_examples=10)
def test_the_same_under_traffic(aeus: int, entries: list[int], script: Script) -> None:
    model = Model(column=list(entries))
    play(started(aeus, 2, clients=True), script, model, aeus)


@pytest.mark.parametrize("placement", ["interleaved", "single-ram"])
@given(script=st.lists(st.lists(commands, min_size=1, max_size=60), min_size=1, max_size=3))
@SETTINGS(max_examples=10)
def test_baselines_answer_alike(placement: str, entries: list[int], script: Script) -> None:
    model = Model(column=list(entries))
    play(started(2, 1, clients=False, placement=placement), script, model, 2)


@pytest.mark.parametrize("placement", ["partitioned", "interleaved"])
@pytest.mark.parametrize("value_bytes", [9, 100, 1000, 5000])
def test_large_values_are_found_as_they_were_written(placement: str, value_bytes: int) -> None:
    """Loaded ones, changed ones and new ones, beside clients that read and write others."""
    made = started(2, 1, clients=True, placement=placement, value_bytes=value_bytes)
    keys = [0, 1, KEYS - 1, KEYS + 5]
    values, found, _ = made.execute([LOOKUP] * 4, [0] * 4, keys, [0] * 4)
    assert list(found) == [1, 1, 1, 0]
    before = list(values[:3])
    for value in (7, 8):
        made.execute([UPSERT] * 3, [0] * 3, keys[1:], [value, value + 1, value + 2])
    values, found, _ = made.execute([LOOKUP] * 4, [0] * 4, keys, [0] * 4)
    assert list(found) == [1] * 4
    assert list(values) == [before[0], 8, 9, 10]
    made.stop()


@pytest.mark.parametrize(
    ("setting", "policy", "reason"),
    [
        ("system.inline_values=64 B", None, "trees hold words of 8 B"),
        ("workload.objects.index.value_size=7 B", None, "not a value that the native engine"),
        ("workload.objects.index.value_size=100 B", "ma-1", "does not move values"),
    ],
)
def test_what_the_engine_does_not_do_with_values(
    setting: str, policy: str | None, reason: str
) -> None:
    scenario = load_scenario("host-lookup", plane="native", policy=policy, settings=[setting])
    with pytest.raises(InputError, match=reason):
        run_scenario(scenario)

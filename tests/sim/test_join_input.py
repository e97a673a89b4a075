"""What a scenario may not say of a join: one line each, with its place."""

from pathlib import Path

import pytest

from numatwin.inputs import InputError
from numatwin.sim.run.scenario import load_scenario

NO_KEYS = "workload.operations={j: {kind: join, object: inner, outer: outer}}"
COLUMN = "workload.objects.outer={kind: column, entries: 5}"
TCP = "system.transport=IPoIB"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((NO_KEYS,), "missing field 'keys' of kind 'join'"),
        ((COLUMN,), "no table 'outer' that is stored by row"),
        (("workload.objects.inner.records=0",), "table 'inner' has no records"),
        (("system.partitions=4096",), "expected at most 3200 partitions"),
        (("system.buffer=1 GiB", "system.chunk=1 GiB"), "expected a smaller buffer"),
        (("system.partitions=9",), "expected a multiple of 8"),
        (("system.operator=ghj", "system.partitions=64"), "of operators rrj"),
        (("system.buffer=8 B",), "a tuple of 'inner'"),
        ((TCP,), "rrj needs one-sided verbs"),
        ((TCP, "system.operator=ghj", "system.queue=central"), "central needs one-sided verbs"),
        (("system.stragglers=[{node: 9, factor: 2}]",), "node 9 is not in use"),
        (("system.operator=aggregation",), "operator aggregation: expected one of ghj"),
        (("workload.objects.outer.records=1000000000000",), "than node 0"),
    ],
)
def test_bad_input_is_one_line(settings: tuple[str, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words.replace("(", ".")) as caught:
        load_scenario("join", settings=settings)
    assert "\n" not in str(caught.value)


def test_a_policy_of_another_kind_of_operation_is_refused() -> None:
    from numatwin.sim.run.runner import run_scenario

    with pytest.raises(InputError, match="operator cannot run here"):
        run_scenario(load_scenario("join", policy="operator=aggregation", plane="flow"))


AGGREGATION = "{kind: aggregate, object: outer, keys: {distribution: uniform}, groups: 100_000}"


@pytest.mark.parametrize(
    ("settings", "other"),
    [
        ((), "workload.operations.join.outer=inner"),
        ((), "workload.objects.outer.records=4_000_000"),
        (
            (f"workload.operations={{sum: {AGGREGATION}}}", "system.operator=aggregation"),
            "workload.operations.sum.groups=1_000_000",
        ),
        (
            (f"workload.operations={{sum: {AGGREGATION}}}", "system.operator=aggregation"),
            "workload.operations.sum.result_size=64 B",
        ),
    ],
)
def test_each_field_of_the_operations_changes_throughput(
    settings: tuple[str, ...], other: str
) -> None:
    from numatwin.sim.run.runner import run_scenario

    before, after = (
        run_scenario(load_scenario("join", plane="flow", settings=chosen)).throughput
        for chosen in (settings, (*settings, other))
    )
    assert before != after

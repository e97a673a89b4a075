"""Runs of the bundled scenarios: what is conserved, what repeats, what never gets worse."""

import json
import math
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples import few_and_many
from fresh_processes import printed_alike
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import CACHE, LINK, LOOKUP, NODE, SCAN, UPSERT, as_told, rate, small_file

from numatwin.sim.machine.defaults import ASSUMED_WRITE_TURNAROUND
from numatwin.sim.planes.rate_solver import TOLERANCE
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario, scenario_names

SAME = 1e-4  # the least that counts as a change

# This file is about the flow plane.
SCENARIOS = [name for name in scenario_names() if load_scenario(name).plane == "flow"]


@cache
def record_of(name: str) -> Record:
    return run_scenario(load_scenario(name))


@pytest.mark.parametrize("name", SCENARIOS)
def test_pieces_of_time_make_up_the_run(name: str) -> None:
    """No gap, no overlap; what is done is the sum over the pieces."""
    record = record_of(name)
    start_s, length_s = record.series["time_s"], record.series["duration_s"]
    assert start_s[0] == 0
    assert (length_s > 0).all()
    assert start_s[1:] == pytest.approx((start_s + length_s)[:-1], rel=1e-9)
    assert start_s[-1] + length_s[-1] == pytest.approx(record.horizon_s, rel=1e-9)
    assert set(record.throughput) == set(record.operations)
    for operation, done in record.operations.items():
        per_s = record.series[f"throughput/{operation}"]
        # Queries of a table wait while it is moved.
        assert (per_s >= 0).all()
        assert (per_s > 0).all() or name == "hana-fig10"
        assert done == pytest.approx(float(per_s @ length_s), rel=1e-9)
        assert record.throughput[operation] == pytest.approx(done / record.horizon_s, rel=1e-9)


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_resource_does_more_than_it_can(name: str) -> None:
    record = record_of(name)
    length_s = record.series["duration_s"]
    for use in record.resources:
        assert 0 <= use.utilisation <= 1 + 1e-6, use.name
        if use.Bps is not None and use.capacity_Bps is not None:
            part = use.Bps / use.capacity_Bps
            least = most = part
            if use.kind == "memory":
                # A controller is also busy turning its bus round, at most once for each line; or
                # written lines, half of all at most, have a path of their own.
                assert use.node is not None
                turn = load_scenario(name).machine.nodes[use.node].write_turnaround or 0.0
                least = part * (1 + min(turn, 0.0) / 2)
                most = part * (1 + ASSUMED_WRITE_TURNAROUND)
            assert least * (1 - 1e-6) <= use.utilisation <= most * (1 + 1e-6), use.name
        column = record.series.get(f"utilisation/{use.name}")
        if column is not None:
            assert (column >= 0).all()
            assert (column <= 1 + 1e-6).all()
            mean = float(column @ length_s) / record.horizon_s
            assert use.utilisation == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert max(use.utilisation for use in record.resources) > 0.5


@pytest.mark.parametrize("name", SCENARIOS)
def test_traffic_is_that_of_the_resources(name: str) -> None:
    """Of all controllers and directed links; the latter come in pairs, there and back."""
    record = record_of(name)
    for kind, total in (("memory", "memory"), ("link", "links")):
        uses = [use for use in record.resources if use.kind == kind]
        if record.bandwidth_Bps[total] is None:  # the system counts none
            assert not uses
            continue
        assert record.bandwidth_Bps[total] == pytest.approx(
            sum(use.Bps or 0.0 for use in uses), rel=1e-9
        )
    ends = Counter(use.ends for use in record.resources if use.ends and use.kind == "link")
    assert ends == Counter((b, a) for a, b in ends.elements())
    assert record.energy_J is None or record.energy_J > 0


@pytest.mark.parametrize(
    "name", [name for name in SCENARIOS if name.startswith(("eris-fig9", "eris-fig12"))]
)
def test_a_scan_reads_its_column_once(name: str) -> None:
    record = record_of(name)
    column = load_scenario(name).workload.objects["column"]
    read = record.throughput["scan"] * (column.entries or 0) * column.entry_size.value
    assert record.bandwidth_Bps["memory"] == pytest.approx(read, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "handed_nodes"),
    [("eris-fig8-amd", 0), ("eris-fig8-intel-shared", 0), ("eris-fig1", 64)],
)
def test_a_lookup_reads_the_lines_that_it_misses(name: str, handed_nodes: int) -> None:
    """And where commands of 16 B are handed over to others of so many nodes, without owners of
    modified lines (MESI): each line is written back as it is read, and comes from memory to be
    written again, unless its last writer or reader was the same.
    """
    record = record_of(name)
    (facts,) = record.model.values()
    missed = sum(value for name, value in facts.items() if name.endswith("missed_per_operation"))
    assert missed > 0
    each = missed * 64
    if handed_nodes:
        other = 1 - 1 / handed_nodes
        each += 16 * (other + other * (1 - 2 / handed_nodes))
    read = record.throughput["lookup"] * each
    assert record.bandwidth_Bps["memory"] == pytest.approx(read, rel=1e-5)


@pytest.mark.parametrize("name", SCENARIOS)
def test_why_names_what_is_full(name: str) -> None:
    """Gains fall; the best is about what was added, 10%, at most.

    A little more or less than nothing may come of it where fair shares, not the sum, are the aim.
    """
    record = record_of(name)
    assert set(record.why) == set(record.throughput)
    for why in record.why.values():
        gains = [gain.gain_per_10pct for gain in why.gains]
        assert (np.diff(gains) <= 1e-3).all()  # to what the search for rates leaves in doubt
        assert 0.01 < gains[0] <= 0.1 + 0.005
        assert gains[-1] >= -0.005
        assert len({gain.resource for gain in why.gains}) == len(gains)
        assert why.resource


@pytest.mark.sweep
def test_a_machine_of_1024_nodes() -> None:
    """Every node does the same in a hypercube; 1,024 nodes scan 1,024 times as much as one, but for
    what the search of each run leaves open."""

    def scan(*settings: str) -> Record:
        return run_scenario(
            load_scenario(
                "eris-fig12-scan",
                machine="hypercube-1024n",
                workload="eris-scan-8e9",
                settings=settings,
            )
        )

    record, alone = scan(), scan("system.nodes=1")
    as_many = pytest.approx(1024 * alone.throughput["scan"], rel=2 * TOLERANCE)
    assert record.throughput["scan"] == as_many
    lookups = run_scenario(load_scenario("eris-fig8-amd", machine="hypercube-1024n"))
    uses = [use.utilisation for use in lookups.resources if use.kind == "cores"]
    assert len(uses) == 1024
    assert np.ptp(uses) <= 1e-3


# All of records of both planes, one of several replications, with balancing and several operations.
AGAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
from small_scenarios import as_told
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
names = ["eris-fig11-shared", "eris-mixed-amd", "eris-fig9-interleaved"]
found = [as_told(run_scenario(load_scenario(name))) for name in names]
settings = ["horizon=35 s"]
found.append(as_told(run_scenario(load_scenario("eris-fig13", policy="ma-1", settings=settings))))
settings = ["statistics.replications=2", "statistics.warm_up=200 us", "horizon=3 ms",
            "policies.balancing.period=1 ms", "workload.objects.index.keys=300000", "seed=9"]
random = load_scenario(sys.argv[2], plane="event", policy="ma-1", settings=settings)
found.append(as_told(run_scenario(random)))
print(json.dumps(found))
"""
HOT_LOOKUPS_AND_UPSERTS = (
    "lookup: {kind: lookup, object: index, share: 3, "
    "keys: {distribution: hot_range, from: 0, to: 60_000, share: 0.9}}\n    " + UPSERT
)


def test_the_same_scenario_in_fresh_processes(tmp_path: Path) -> None:
    """Equal to the last digit, whatever order sets of names have."""
    path = small_file(tmp_path, HOT_LOOKUPS_AND_UPSERTS, nodes=2)
    found = printed_alike(AGAIN, str(Path(__file__).parent), str(path))
    assert len(json.loads(found)) == 5


def test_the_same_scenario_in_one_process() -> None:
    """A run leaves nothing behind that a later one would see."""
    name = "eris-mixed-amd"
    first = as_told(record_of(name))
    run_scenario(load_scenario("eris-fig8-intel-shared"))
    assert as_told(run_scenario(load_scenario(name))) == first


def spread(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers between the two, of any size alike."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


# Field, unit, least, most; whether more of it is better.
KNOBS = {
    "memory bandwidth": (f"{NODE}memory.bandwidth", " GB/s", 5, 200, True),
    "memory latency": (f"{NODE}memory.latency", " ns", 40, 300, False),
    "link bandwidth": (f"{LINK}bandwidth", " GB/s", 1, 100, True),
    "link latency": (f"{LINK}latency", " ns", 10, 400, False),
    "clock": (f"{NODE}clock", " GHz", 0.5, 6, True),
    "outstanding misses": (f"{NODE}outstanding_misses", "", 2, 60, True),
    "cache": (f"{NODE}caches.0.size", " MiB", 0.5, 100, True),
}
SETTINGS = st.fixed_dictionaries(
    {name: spread(low, high) for name, (_, _, low, high, _) in KNOBS.items()}
)
MIXED = "{lookup: {kind: lookup, object: index}, upsert: {kind: upsert, object: index, share: 0.3}}"


def written(chosen: dict[str, float], cores: int) -> list[str]:
    fields = [f"{KNOBS[name][0]}={value:.6g}{KNOBS[name][1]}" for name, value in chosen.items()]
    return [*fields, f"{NODE}cores={cores}"]


@pytest.mark.parametrize("placement", ["partitioned", "interleaved", "single-ram"])
@pytest.mark.parametrize("operation", [LOOKUP, UPSERT, SCAN, MIXED])
@few_and_many(5, 50)
def test_more_of_anything_never_lowers_throughput(
    tmp_path: Path, operation: str, placement: str, examples: int
) -> None:
    """On four nodes, each linked to each: where flows are equal, what is fair is also most.

    Elsewhere, fair shares may fall in total where one of them rises. A scan's memory latency is
    left out: the lines that streams have under way are worked out from it and the bandwidth seen.
    So are the caches of those who write shared data: larger ones hold more modified lines that
    others want, which come over links, and slow ones make that longer than memory takes.
    """

    @settings(max_examples=examples)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        check_more_of_anything(tmp_path, operation, placement, data)

    check()


def check_more_of_anything(
    tmp_path: Path, operation: str, placement: str, data: st.DataObject
) -> None:
    protocol = data.draw(st.sampled_from(["directory", "snoop"]))
    path = small_file(tmp_path, operation, placement, nodes=4, protocol=protocol, caches=CACHE)
    cores, chosen = data.draw(st.integers(1, 20)), data.draw(SETTINGS)
    left_out = set()
    if operation == SCAN:
        left_out = {"memory latency"}
    elif operation != LOOKUP and placement != "partitioned":
        left_out = {"cache"}
    names = [name for name in KNOBS if name not in left_out]
    name = data.draw(st.sampled_from(names))
    other = chosen | {name: data.draw(spread(*KNOBS[name][2:4]))}
    worse, better = sorted([chosen, other], key=lambda values: values[name])
    if not KNOBS[name][4]:
        worse, better = better, worse
    less, more = (rate(path, *written(values, cores)) for values in (worse, better))
    assert more >= less * (1 - SAME), (name, written(worse, cores), written(better, cores))


@pytest.mark.parametrize("placement", ["partitioned", "interleaved", "single-ram"])
@pytest.mark.parametrize("operation", [LOOKUP, SCAN])
@few_and_many(4, 30)
def test_more_cores_never_lower_throughput(
    tmp_path: Path, operation: str, placement: str, examples: int
) -> None:
    """A quarter more at least: one core more may cost one more level of the partition table."""

    @settings(max_examples=examples)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        check_more_cores(tmp_path, operation, placement, data)

    check()


def check_more_cores(tmp_path: Path, operation: str, placement: str, data: st.DataObject) -> None:
    path = small_file(tmp_path, operation, placement, nodes=4, caches=CACHE)
    few, chosen = data.draw(st.integers(1, 16)), data.draw(SETTINGS)
    many = data.draw(st.integers(math.ceil(1.25 * few), 2 * few + 1))
    # The cache is shared by four cores: of more cores, each has no less.
    chosen = chosen | {"cache": chosen["cache"] + 64}
    less, more = (rate(path, *written(chosen, cores)) for cores in (few, many))
    assert more >= less * (1 - SAME), (written(chosen, few), many)

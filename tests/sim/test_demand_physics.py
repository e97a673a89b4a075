"""What a demand must react to, and how: batches, caches, sharing, write-backs, snoops, clients."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_scenarios import CACHE, LOOKUP, NODE, UPSERT, ran, rate, small_file

from numatwin.sim._kernel import link_rows, water_filling
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.planes.flow import closed_rate
from numatwin.sim.planes.rates import spare_time_shares
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.topologies import load_machine

ZIPF = "{kind: lookup, object: index, share: %g, keys: {distribution: zipf, exponent: 0.99}}"


def exact_mva(customers: int, servers: int, service_s: float, think_s: float) -> float:
    """Throughput by exact mean value analysis (Reiser and Lavenberg 1980) of equal servers."""
    demand_s, queue, x = service_s / servers, 0.0, 0.0
    for n in range(1, customers + 1):
        response_s = servers * demand_s * (1.0 + queue)
        x = n / (think_s + response_s)
        queue = x * response_s / servers
    return x


@given(st.integers(1, 400), st.integers(1, 16), st.floats(1e-9, 1e-3), st.floats(0, 1e-2))
def test_closed_clients_against_exact_mva(
    customers: int, servers: int, service_s: float, think_s: float
) -> None:
    """Bard and Schweitzer's approximation stays within a tenth of the exact rate."""
    exact = exact_mva(customers, servers, service_s, think_s)
    assert closed_rate(customers, servers, service_s, think_s) == pytest.approx(exact, rel=0.1)


def test_closed_clients_in_the_limits() -> None:
    assert closed_rate(1, 4, 2e-6, 0.0) == pytest.approx(1 / 2e-6)
    assert closed_rate(1e9, 4, 2e-6, 0.0) == pytest.approx(4 / 2e-6, rel=1e-6)
    assert closed_rate(10, 4, 1e-9, 1.0) == pytest.approx(10.0, rel=1e-6)


@pytest.mark.parametrize("variation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_many_customers_wait_as_in_an_open_queue(load: float, variation: float) -> None:
    """M/G/1 (Pollaczek-Khinchine): S (1 + load (1 + variation) / (2 (1 - load)))."""
    customers, service_s, think_s = 1e5, 1.0, 1e5 / load
    rate = closed_rate(customers, 1, service_s, think_s, variation)
    used, response_s = rate * service_s, customers / rate - think_s
    expected_s = service_s * (1 + used * (1 + variation) / (2 * (1 - used)))
    assert response_s == pytest.approx(expected_s, rel=1e-3)


def test_who_thinks_longer_asks_for_less(tmp_path: Path) -> None:
    path = small_file(tmp_path, LOOKUP)
    think = "workload.clients={kind: closed, think_time: %s}"
    rates = [rate(path, think % time) for time in ("1 ns", "1 us", "10 us", "100 us", "1 ms")]
    assert (np.diff(rates) < 0).all()
    # 4 workers with 128 commands each, which take next to nothing of a millisecond.
    assert rates[-1] == pytest.approx(4 * 128 / 1e-3, rel=1e-2)


def test_arrivals_are_served_wherever_there_is_room(tmp_path: Path) -> None:
    """All flows together do what is asked for, though some nodes can do less than an equal part."""
    scenario = "eris-fig8-amd-shared"
    most = sum(run_scenario(load_scenario(scenario)).throughput.values())
    asked = 0.995 * most
    settings = [f"workload.clients={{kind: open, arrival_rate: {asked / 1e6:.6f} MHz}}"]
    record = run_scenario(load_scenario(scenario, settings=settings))
    assert sum(record.throughput.values()) == pytest.approx(asked, rel=1e-4)


@example([(0.0002719443386182373, 1e-12), (1e-12, 0.0002719443386182373)])
@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(1e-12, 1e-3)), min_size=1, max_size=20))
def test_work_that_any_core_can_do_goes_to_who_has_time(cores: list[tuple[float, float]]) -> None:
    own_s, issue_s = (np.array(part) for part in zip(*cores, strict=True))
    share = spare_time_shares(own_s, issue_s)
    assert np.isfinite(share).all()
    assert (share >= 0).all()
    assert share.sum() == pytest.approx(1.0)
    done_s = own_s + share * issue_s
    level = done_s[share > 0].max()
    slack = 1e-9 * max(level, issue_s.max())
    assert (done_s[share > 0] >= level - slack - 1e-6 * level).all()
    assert (own_s[share == 0] >= level - slack - 1e-6 * level).all()


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5, 1e-9]), st.floats(1e-9, 1e3))))
def test_water_filling_by_its_formula(columns: list[tuple[float, float]]) -> None:
    """To the last digit, equal heights in their order."""
    height, cost = (np.array([column[k] for column in columns]) for k in (0, 1))
    if not columns:
        with pytest.raises(ValueError, match="at least one"):
            water_filling(height, cost)
        return
    head = (height - height.min()) / cost
    order = height.argsort(kind="stable")
    level = (1.0 + head[order].cumsum()) / (1.0 / cost[order]).cumsum()
    expected = np.maximum(level.min() / cost - head, 0.0)
    assert water_filling(height, cost).tobytes() == expected.tobytes()


def test_water_filling_refuses() -> None:
    for height, cost, said in [
        ([1.0], [1.0, 2.0], "as many as heights, 1"),
        ([1.0], [0.0], "cost: expected above 0"),
        ([1.0], [np.nan], "cost: expected above 0"),
        ([np.nan], [1.0], "height: expected a number"),
    ]:
        with pytest.raises(ValueError, match=said):
            water_filling(np.array(height), np.array(cost))


def test_no_more_misses_overlap_than_a_batch_has(tmp_path: Path) -> None:
    path = small_file(tmp_path, LOOKUP)
    one, two, many, more = (rate(path, f"system.batch={n}") for n in (1, 2, 100, 1000))
    assert one < two < many
    assert more == pytest.approx(many, rel=1e-6)


def test_a_distribution_split_into_two_operations_is_the_same(tmp_path: Path) -> None:
    for placement in ("partitioned", "interleaved"):
        whole = small_file(tmp_path, "a: " + ZIPF % 1, placement, nodes=2, caches=CACHE)
        whole_rate = rate(whole)
        halves = f"a: {ZIPF % 0.5}\n    b: {ZIPF % 0.5}"
        split = small_file(tmp_path, halves, placement, nodes=2, caches=CACHE)
        assert rate(split) == pytest.approx(whole_rate, rel=1e-6)


def test_the_owner_of_the_hottest_keys_sets_the_pace(tmp_path: Path) -> None:
    """Scattered, too, a key that gets nearly all lookups has one owner."""
    path = small_file(tmp_path, "a: " + ZIPF % 1, nodes=4, caches=CACHE)
    exponent = "workload.operations.a.keys.exponent=%g"
    mild, steep = (rate(path, exponent % e) for e in (0.5, 4.0))
    assert steep < mild / 3.5  # the mild one's buffers crowd its index out of the small cache


def test_a_shared_cache_holds_what_one_of_it_holds(tmp_path: Path) -> None:
    """Two caches on a node hold the same lines of a shared index; of partitions, different ones."""
    rates = {}
    for placement in ("interleaved", "partitioned"):
        for cores in (4, 2):
            cache = CACHE.replace("shared_by_cores: 4", f"shared_by_cores: {cores}")
            cache = cache.replace("8 MiB", f"{2 * cores} MiB")  # 8 MiB a node in all
            path = small_file(tmp_path, LOOKUP, placement, caches=cache)
            rates[placement, cores] = rate(path, "workload.objects.index.keys=500_000")
    assert rates["interleaved", 2] < 0.97 * rates["interleaved", 4]
    assert rates["partitioned", 2] == pytest.approx(rates["partitioned", 4], rel=1e-6)


def test_write_backs_cross_links() -> None:
    """Upserts of a shared index are slower than lookups where links hold these."""
    slow = [f"machine.link_types.{kind}.carried=2 GB/s" for kind in ("ht-full", "ht-half")]
    lookups, upserts = (
        sum(run_scenario(load_scenario(name, settings=slow)).throughput.values())
        for name in ("eris-fig8-amd-shared", "eris-fig8-amd-upsert-shared")
    )
    assert upserts < 0.9 * lookups


def test_one_key_is_written_one_at_a_time(tmp_path: Path) -> None:
    """Its line goes from node to node, over a link of 50 ns to a memory of 100 ns; or stays."""
    path = small_file(tmp_path, UPSERT, "interleaved", nodes=4, caches=CACHE)
    record = ran(path, "workload.objects.index.keys=1")
    assert record.why["upsert"].resource == "one cache line that all write to, or one lock"
    # Of 16 cores 15 have to fetch it, three in four of these from another node.
    handed_s = 15 / 16 * (20e-9 + 3 * 150e-9) / 4
    assert sum(record.throughput.values()) == pytest.approx(1 / handed_s, rel=0.02)
    lookups = small_file(tmp_path, LOOKUP, "interleaved", nodes=4, caches=CACHE)
    assert rate(lookups, "workload.objects.index.keys=1") > 10 / handed_s


def test_larger_pages_are_never_slower(tmp_path: Path) -> None:
    tlbs = f"{NODE}tlbs=[{{page: 4 KiB, entries: 512}}, {{page: 2 MiB, entries: 32}}]"
    path = small_file(tmp_path, LOOKUP, caches=CACHE)
    sizes = ("4 KiB", "8 KiB", "64 KiB", "2 MiB", "1 GiB")
    rates = [rate(path, tlbs, f"system.page_size={size}") for size in sizes]
    assert (np.diff(rates) >= -1e-6 * rates[0]).all()
    assert rates[0] < 0.95 * rates[-1]


def test_snoops_counted_one_by_one() -> None:
    """Source snoop: who misses asks all others; who is asked answers the home, which need not."""
    machine = load_machine("intel-4s-qpi")
    costs, n = CostModel(machine), 4
    lines = np.arange(1.0, 17.0).reshape(n, n)
    messages = np.zeros(len(costs.link_Bps))
    for i in range(n):
        for home in range(n):
            pairs = [(i, home)] if i != home else []
            asked = [k for k in range(n) if k != i]
            pairs += [(i, k) for k in asked if k != home]
            pairs += [(k, home) for k in asked if k != home]
            for a, b in pairs:
                for link in machine.routes.links_of(a, b):
                    messages[link] += lines[i, home]
    control = costs.wire_Bps(lines)[1]
    assert control == pytest.approx(messages * costs.link_request_bytes)
    rows = costs.wire_rows(lines)
    assert rows.sum(axis=1) == pytest.approx(costs.wire_Bps(lines))


def test_what_is_not_known_is_told_once(tmp_path: Path) -> None:
    path = small_file(tmp_path, LOOKUP, nodes=4)
    text = (
        path.read_text()
        .replace("      ipc: 2\n", "")
        .replace("  generate: [{shape: all_to_all, link: link}]\n", "")
    )
    path.write_text(text)
    record = run_scenario(load_scenario(path))
    assert record.bandwidth_Bps["links"] is None
    told = "\n".join(record.warnings)
    assert told.count("no ipc is known of any node") == 1
    assert "no links are known" in told
    assert "no latency between nodes is known" in told


def test_balancing_needs_no_links(tmp_path: Path) -> None:
    """On a machine of which no links are known, parts are copied all the same."""
    path = small_file(tmp_path, LOOKUP, nodes=4)
    text = path.read_text().replace("  generate: [{shape: all_to_all, link: link}]\n", "")
    hot = "{distribution: hot_range, from: 0, to: 10_000_000}"
    text = text.replace("object: index}", f"object: index, keys: {hot}}}", 1)
    path.write_text(text + "policies: {balancing: {policy: one-shot, period: 100 ms}}\n")
    record = run_scenario(load_scenario(path, settings=["horizon=20 s"]))
    assert any(e.details.get("copies") for e in record.control_events if e.kind == "transfer")
    lookups = record.series["throughput/lookup"]
    assert lookups[-1] > 1.5 * lookups[0]


def test_faster_memory_never_slows_what_others_read(tmp_path: Path) -> None:
    """Neither more bandwidth nor less latency of memory takes from what remote nodes can draw."""
    for machine in ("sgi-uv2000-64n", "xeon-2s-spr-snc4", "intel-4s-qpi"):
        node = next(iter(load_machine(machine).description.node_types))
        facts = load_machine(machine).nodes[0]
        assert facts.memory_bandwidth_Bps is not None
        assert facts.memory_latency_ns is not None
        rates = []
        for factor in (0.7, 0.8, 0.9, 1.0, 1.2):
            bandwidth = facts.memory_bandwidth_Bps * factor / 1e9
            latency = facts.memory_latency_ns / factor
            settings = [
                "system.placement=interleaved",
                f"machine.node_types.{node}.memory.bandwidth={bandwidth:.6g} GB/s",
                f"machine.node_types.{node}.memory.latency={latency:.6g} ns",
            ]
            scenario = load_scenario("eris-fig12-scan", machine=machine, settings=settings)
            rates.append(sum(run_scenario(scenario).throughput.values()))
        assert (np.diff(rates) >= -1e-3 * rates[0]).all(), (machine, rates)


def test_a_column_that_stays_in_the_cache_leaves_less_to_the_index(tmp_path: Path) -> None:
    both = "scan: {kind: scan, object: column, share: 0.001}\n    " + LOOKUP
    path = small_file(tmp_path, both, caches=CACHE)
    keys = "workload.objects.index.keys=400_000"
    missed = [
        ran(path, keys, f"workload.objects.column.entries={entries}").model["index"]
        for entries in (1_000, 800_000)
    ]
    few, many = (facts["lines_missed_per_operation"] for facts in missed)
    assert many > 1.5 * few


def test_answers_of_all_rows_are_those_of_each() -> None:
    """Row by row, as links add up one table of traffic, to the last digit."""
    routes = load_machine("amd-8n-ht").routes
    assert routes.uses is not None
    factor, value = np.random.default_rng(1).random((2, 8, 8))
    links = 2 * routes.link_count
    found = link_rows(*routes.uses, 8, links, factor.T.ravel(), value.T.ravel())
    for row, of_row in enumerate(found.reshape(links, 8).T):
        traffic = np.outer(factor[row], value[row])
        np.fill_diagonal(traffic, 0.0)
        assert of_row.tolist() == routes.link_sums(traffic).tolist()
    with pytest.raises(ValueError, match="expected indices"):
        link_rows(*routes.uses, 8, links - 1, factor.ravel(), value.ravel())
    with pytest.raises(ValueError, match="a row for each node"):
        link_rows(*routes.uses, 8, links, factor.ravel(), value.ravel()[1:])


def test_an_exclusive_last_level_adds_its_lines_to_those_above() -> None:
    """Four caches of 2 MiB above one of 6 MiB hold what neither level holds alone."""
    missed = []
    for keys in (3_000_000, 8_000_000):
        index = run_scenario(
            load_scenario("eris-fig8-amd", settings=[f"workload.objects.index.keys={keys}"])
        ).model["index"]
        MiB_a_node = index["bytes_per_key"] * keys / 8 / (1 << 20)
        missed.append((round(MiB_a_node), index["lines_missed_per_operation"]))
    assert missed == [(9, 0.0), (23, pytest.approx(0.94, abs=0.1))]

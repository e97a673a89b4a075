"""What a scenario of transactions may not say: one clear line, with its place."""

from pathlib import Path

import pytest
from refusals import told_by

from numatwin.inputs import InputError, Quantity
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.facts.clusters import Cluster, build_cluster

SCENARIO = """\
name: mine
machine: ib-fdr-8n
workload: {workload}
system:
  kind: commits
  architecture: rsi
  clients: 70
  storage_nodes: 3
plane: event
horizon: 1 ms
"""


def told(tmp_path: Path, *changes: tuple[str, str], workload: str = "checkout") -> str:
    """The error, from the file's name on."""
    text = SCENARIO.replace("{workload}", workload)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    error = told_by(load_scenario, path)
    return error.removeprefix(f"{path}:")


@pytest.mark.parametrize(
    ("adapter", "scenario"), [("ethernet-25", "nam-fig6-ipoeth"), ("efa-100", "nam-fig6-rsi")]
)
def test_servers_with_adapters_of_the_catalogue(
    tmp_path: Path, adapter: str, scenario: str
) -> None:
    """Sockets on Ethernet are there called TCP."""
    memory = Quantity(2.0**38, 2.0**38, 2.0**38)
    path = tmp_path / "cluster.yaml"
    path.write_text(machine_yaml(build_cluster(Cluster("c", 8, "EPYC 7763", adapter, memory))))
    settings = ["statistics.replications=1", "statistics.warm_up=0 s", "horizon=3 ms"]
    record = run_scenario(load_scenario(scenario, machine=str(path), settings=settings))
    assert record.throughput["checkout"] > 0
    if adapter.startswith("ethernet"):
        assert "header of a packet" not in {one["name"] for one in record.assumptions}
    with pytest.raises(InputError, match="has no adapter for IPoIB: its adapters are for"):
        load_scenario("nam-fig6-ipoib", machine=str(path))


CLIENTS, STORAGE, RSI = "clients: 70", "storage_nodes: 3", "architecture: rsi"


@pytest.mark.parametrize(
    ("change", "expected"),
    {
        (CLIENTS, "clients: 0"): "7:12: system.clients: found '0', expected at least 1",
        (CLIENTS, "seed: 70"): "4:1: missing field 'clients' in system",
        (STORAGE, "storage_node: 3"): "8:3: unknown field 'storage_node' in system: "
        "expected 'storage_nodes'",
        (STORAGE, "storage_nodes: [0, 9]"): "8:22: system.storage_nodes.1: "
        "node 9 of machine 'ib-fdr-8n' does not exist",
        (STORAGE, "storage_nodes: 8"): "8:18: system.storage_nodes: "
        "8 wanted as storage_nodes, and of the 8 nodes with cores of machine 'ib-fdr-8n' 1 is "
        "client_nodes: expected at most 7 or a machine with more nodes",
        (STORAGE, "client_nodes: 6\n  storage_nodes: 4"): "9:18: system.storage_nodes: "
        "4 wanted as storage_nodes, and of the 8 nodes with cores of machine 'ib-fdr-8n' 6 are "
        "client_nodes: expected at most 2 or fewer client_nodes or a machine with more nodes",
        (STORAGE, "client_nodes: 4\n  storage_nodes: 4"): "9:18: system.storage_nodes: "
        "1 wanted as timestamp server, and of the 8 nodes with cores of machine 'ib-fdr-8n' 4 are "
        "client_nodes and 4 are storage_nodes: "
        "expected fewer client_nodes or fewer storage_nodes or a machine with more nodes",
        (STORAGE, "storage_nodes: [0, 1]\n  client_nodes: [1, 2]"): "8:22: "
        "system.storage_nodes.1: node 1 is also in client_nodes: expected disjoint nodes, "
        "or layout together",
        (STORAGE, "storage_nodes: 0"): "8:18: system.storage_nodes: found '0', expected at least 1",
        (STORAGE, "storage_nodes: 1\n  versions: 1000"): "8:18: system.storage_nodes: "
        "953.7 GiB of records for each, more than node 6 of machine 'ib-fdr-8n' holds: "
        "expected at most 256.0 GiB",
        (RSI, "architecture: ipoeth\n  lease: 1 ms"): "7:10: system.lease: "
        "a remedy for architecture",
        (RSI, "architecture: smoke"): "6:17: system.architecture: found 'smoke', expected 'rsi'",
        ("machine: ib-fdr-8n", "machine: amd-8n-ht"): "4:1: system: "
        "node 4 of machine 'amd-8n-ht' has no adapter for RDMA: it has no adapter",
    }.items(),
)
def test_the_system(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    assert told(tmp_path, change).startswith(expected)


TABLE = "records: 10, record_size: 100 B"
WORKLOAD = """\
{name: w, objects: {t: {kind: table, RECORDS}, i: {kind: index, keys: 9}},
 operations: {o: {kind: transaction, object: t, reads: 2, updates: 2, inserts: {t: 1}}}}
"""
MOVING = "keys: {distribution: moving_hot_range, from: 0, to: 4, step: 1, every: 1 s}"


def test_the_workload_that_is_changed_below_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "fine.yaml"
    workload = WORKLOAD.replace("RECORDS", TABLE)
    path.write_text(SCENARIO.replace("{workload}", workload), encoding="utf-8")
    assert load_scenario(path).workload.objects["t"].records == 10


@pytest.mark.parametrize(
    ("change", "expected"),
    {
        ("record_size: 100 B", "record_size: 0 B"): "record_size: found '0 B', expected a size abo",
        (", record_size: 100 B", ""): "missing field 'record_size' of kind 'table'",
        ("records: 10", "records: 1"): "2 different records of 1: expected at most 1",
        ("records: 10, ", ""): "table 't' has no records: expected 'records' there",
        ("updates: 2", "updates: 3"): "3 records: expected at most 2, those that it reads",
        ("reads: 2", "reads: 0"): "reads: found '0', expected at least 1",
        ("inserts: {t: 1}", "inserts: {u: 1}"): "no such object: expected one of t",
        ("inserts: {t: 1}", "inserts: {i: 1}"): "a index: expected one of t",
        ("updates: 2, inserts: {t: 1}", "updates: 0"): "writes nothing: expected updates, inserts",
        ("updates: 2", "updates: 2, changed_size: 101 B"): "expected at most 100 B, a record",
        ("object: t", "object: i"): "a transaction needs a table",
        ("kind: transaction, ", "kind: lookup, "): "inserts: does not belong to kind 'lookup'",
        ("updates: 2", "updates: 2, keys: {distribution: hot_range, from: 0, to: 9, share: 0.5}"): (
            "a hot range of 9 records: expected from 2 to 8"
        ),
        ("updates", f"{MOVING}, updates"): "keys of form moving_hot_range: "
        "expected one of uniform, zipf, hot_range",
        ("{t: 1}}}", "{t: 1}}}, clients: {kind: open, arrival_rate: 1 M/s}"): "open clients: "
        "expected closed ones",
        ("{t: 1}}}", "{t: 1}}}, phases: [{start: 1 s, name: b, operations: {o: {share: 2.0}}}]"): (
            "phases: expected none, as transactions do not change over time"
        ),
    }.items(),
)
def test_the_workload(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    workload = WORKLOAD.replace("RECORDS", TABLE)
    assert change[0] in workload
    error = told(tmp_path, workload=workload.replace(*change))
    assert expected in error
    assert error[0].isdigit()  # it has its line and column


def test_lookups_are_no_transactions(tmp_path: Path) -> None:
    assert told(tmp_path, workload="eris-lookup-1e9") == (
        "3:11: a system of kind commits cannot run 'eris-lookup-1e9': operation 'lookup' is a "
        "lookup: expected a transaction"
    )


def test_eris_runs_no_transactions() -> None:
    assert told_by(load_scenario, "eris-fig9", workload="checkout") == (
        "--workload checkout: a system of kind eris cannot run 'checkout': operation 'checkout' "
        "is a transaction: expected a lookup or an upsert or a scan or a route"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    {
        "backoff: 1e9 s": "9:12: system.backoff: found '1e9 s', expected at most 1,000 s",
        "poll: 1e9 s": "9:9: system.poll: found '1e9 s', expected at least 1 ps, at most 1,000 s",
        "poll: 0.1 ps": "9:9: system.poll: found '0.1 ps', expected at least 1 ps",
        "lease: 1e9 s": "9:10: system.lease: found '1e9 s', expected at least 1 ps",
        "skip_after: 1e9 s": "9:15: system.skip_after: found '1e9 s', expected at least 1 ps",
        "faults: [{kind: client, client: 1, at: 1e9 s}]": "9:42: system.faults.0.at: "
        "found '1e9 s', expected at most 1,000 s",
        "copy_bandwidth: 1 B/s": "9:19: system.copy_bandwidth: "
        "a transaction copies 10,240 B: expected at least 10.24",
        "snapshot_size: 1e18 B": "9:18: system.snapshot_size: found '1e18 B', "
        "expected at most 2 GiB",
        "versions: 65": "9:13: system.versions: expected at most 64",
        "layout: together\n  client_nodes: 2": "10:17: system.client_nodes: "
        "layout together: expected none",
        "message_threads: 21": "9:20: system.message_threads: "
        "node 4 of machine 'ib-fdr-8n' has 20 hardware threads",
        "ports: 3": "9:10: system.ports: the adapter for RDMA at node",
        "versions: 0": "9:13: system.versions: found '0', expected at least 1",
        "versions: 1000\n  timestamp_bits: 69": "10:19: system.timestamp_bits: "
        "found '69', expected at least 70, one for each client",
        "faults: [{kind: client, client: 70, at: 1 ms}]": "9:35: system.faults.0.client: "
        "client 70 does not exist: expected at most 69",
        "stragglers: [{client: 3, factor: 1}]": "9:36: system.stragglers.0.factor: "
        "found '1', expected at least 2",
    }.items(),
)
def test_fields_of_the_system(tmp_path: Path, line: str, expected: str) -> None:
    assert told(tmp_path, (STORAGE, f"{STORAGE}\n  {line}")).startswith(expected)


def test_a_pause_that_models_cannot_count(tmp_path: Path) -> None:
    told = told_by(load_scenario, "nam-fig6-rsi", settings=["workload.clients.think_time=1e9 s"])
    assert "think_time: out of the range of plane event: found '1e9 s', expected at most 1" in told


def test_there_are_no_policies() -> None:
    assert told_by(load_scenario, "nam-fig6-rsi", policy="ma-8") == (
        "--policy ma-8: a system of kind commits has no policies: found 'ma-8', expected none"
    )
    assert load_scenario("nam-fig6-rsi", policy="none").policy_name == "none"


FAULTS = STORAGE + "\n  faults:\n  - "


@pytest.mark.parametrize(
    ("fault", "expected"),
    {
        "{kind: stop, server: 0, at: 1 us}": "10:26: system.faults.0.server: "
        "there is no server 0 in this run",
        "{kind: stop, server: 4}": "10:5: system.faults.0: expected 'at', a time, or 'rate'",
        "{kind: stop, server: 4, rate: 9 /s, lasts: 1 us}": "10:35: system.faults.0.rate: "
        "a rate without a stream",
        "{kind: stop, server: 4, at: 1 us, lasts: 9 us}\n  - {kind: stop, server: 4, at: 5 us}": (
            "11:26: system.faults.1.server: node 4 would stop while it is stopped"
        ),
        "{kind: link, between: [0, 0], at: 1 us}": "10:31: system.faults.0.between.1: expected an",
        "{kind: link, between: [0, 9], at: 1 us}": "10:31: system.faults.0.between.1: "
        "there is no node 9 in this run",
        "{kind: port, node: 4, at: 5 ms}": "10:31: system.faults.0.at: the adapter of node 4 fails",
        "{kind: client, client: 70, at: 1 us}": "10:28: system.faults.0.client: client 70 does not",
        "{kind: client, client: 7, at: 1 us, step: commit}": "10:47: "
        "system.faults.0.step: 'commit' is no step of rsi",
        "{kind: stop, server: 4, at: 1 us}\n  lease: 9 us": "4:1: system.versions: "
        "expected at least 2 where messages may take longer than a lease",
    }.items(),
)
def test_faults_that_cannot_be(tmp_path: Path, fault: str, expected: str) -> None:
    found = told(tmp_path, (STORAGE, FAULTS + fault))
    assert found.startswith(expected), found

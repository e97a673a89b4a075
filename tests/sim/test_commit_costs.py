"""Costs of the commit protocols' messages, by hand from the facts of the source's cluster."""

from typing import Any

import pytest

from numatwin.sim._kernel import MessageCost
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.costs import CommitCosts

CYCLE_PS = 1e12 / 2.2e9
RECORD = 1_024


def costs(name: str, *settings: str) -> CommitCosts:
    return commit_parameters(load_scenario(f"nam-fig6-{name}", settings=settings))[1]


def alone_ps(cost: MessageCost) -> int:
    """From the adapter of the sender to the memory of the receiver, no other message about."""
    return cost.wire_ps + max(cost.in_ps, cost.out_ps)


def test_one_sided_verbs_cost_the_client_450_cycles_and_the_server_nothing() -> None:
    for name, (cost,) in costs("rsi").messages.items():
        answers = name.endswith(("-data", "-result", "-done")) or name == "record"
        if name in ("complaint", "complaint-done", "revoke", "revoked"):  # SEND and RECEIVE
            assert cost.send_ps == cost.receive_ps == round(450 * CYCLE_PS)
        else:
            assert cost.send_ps == (0 if answers else round(450 * CYCLE_PS)), name
            assert cost.receive_ps == 0, name


@pytest.mark.parametrize(
    ("there", "back", "latency_us"),
    [
        ("cas", "cas-result", 2.0),  # "atomics behave like an 8 B READ"
        ("read", "record", 2.0 + (4 + 8 + RECORD - 1_024) * 160 / (2**20 - 1_024)),
        ("snapshot-read", "snapshot-data", 2.0 + (4 + 7_500 - 1_024) * 160 / (2**20 - 1_024)),
    ],
)
def test_reads_and_atomics_take_the_latency_of_a_read(
    there: str, back: str, latency_us: float
) -> None:
    messages = costs("rsi").messages
    both_ps = alone_ps(messages[there][0]) + alone_ps(messages[back][0])
    assert both_ps == pytest.approx(latency_us * 1e6, abs=2)


def test_a_write_is_there_after_its_one_way_latency() -> None:
    (write,) = costs("rsi").messages["write"]
    assert alone_ps(write) == pytest.approx(1e6 + (16 + 8) * 160e6 / (2**20 - 1_024), abs=2)


@pytest.mark.parametrize("versions", [1, 2, 16])
def test_blocks_hold_all_versions(versions: int) -> None:
    found = costs("rsi", f"system.versions={versions}").wire_bytes
    block = versions * (8 + RECORD)
    for name, header in (("record", 4), ("write", 16)):
        packets = -(-(header + block) // 2_048)
        assert found[name] == (header + block + 26 * packets,)
    assert found["cas"] == (28 + 26,)


def test_a_snapshot_is_the_whole_bit_vector_unless_said_otherwise() -> None:
    assert costs("rsi").wire_bytes["snapshot-data"] == (4 + 7_500 + 4 * 26,)
    fewer = costs("rsi", "system.timestamp_bits=1600").wire_bytes["snapshot-data"]
    assert fewer == (4 + 200 + 26,)
    word = costs("rsi", "system.snapshot_size=8 B").wire_bytes["snapshot-data"]
    assert word == (4 + 8 + 26,)


@pytest.mark.parametrize(
    ("name", "cycles", "latency_us"), [("ipoeth", 7_544, 30), ("ipoib", 13_264, 20)]
)
def test_small_messages_over_sockets(name: str, cycles: int, latency_us: float) -> None:
    (vote,) = costs(name).messages["vote"]
    assert vote.send_ps == round(cycles * CYCLE_PS)
    # Half of what IPoIB's receiver does is done by one core for all.
    interrupt_ps = round(0.5 * cycles * CYCLE_PS) if name == "ipoib" else 0
    assert vote.receive_ps == round(cycles * CYCLE_PS) - interrupt_ps
    # A vote is a header of 32 B, 24 B more than the smallest message measured.
    assert latency_us * 1e6 <= alone_ps(vote) - interrupt_ps < latency_us * 1.01 * 1e6


def test_two_sided_verbs_cost_both_sides_450_cycles_at_any_size() -> None:
    for cost in costs("two-sided").messages["install"]:
        assert cost.send_ps == cost.receive_ps == round(450 * CYCLE_PS)


def test_the_write_set_goes_with_the_commit_request() -> None:
    """Three updates of 8 B and four inserts of 1 KiB, each with a header of 16 B."""
    found = costs("ipoeth")
    payload = 32 + 8 + 3 * (16 + 8) + 4 * (16 + RECORD)
    assert found.wire_bytes["commit-request"][7] == pytest.approx(payload + 90 * 3)
    whole = costs("ipoeth", "workload.operations.checkout.changed_size=1 KiB")
    payload += 3 * (RECORD - 8)
    assert whole.wire_bytes["commit-request"][7] == pytest.approx(payload + 90 * 6)


def test_tcp_costs_more_beyond_its_window() -> None:
    found = costs("ipoeth").messages["commit-request"]
    payload = 32 + 8 + 3 * (16 + 8) + 4 * (16 + RECORD)
    assert found[7].send_ps == round(7_544 * payload / 1_488 * CYCLE_PS)
    assert found[0].send_ps == round(7_544 * CYCLE_PS)


def test_work_on_records_goes_by_their_bytes() -> None:
    """The source's memory cost: 10^-9 s a byte; whoever makes new bytes touches those alone."""
    rsi, ipoeth = costs("rsi"), costs("ipoeth")
    assert rsi.compute_ps == 10 * RECORD * 1_000
    assert ipoeth.compute_ps == (3 * RECORD + 3 * 8 + 4 * RECORD) * 1_000
    assert ipoeth.work.read_ps == RECORD * 1_000
    assert ipoeth.work.install_ps == round((3 * 8 + 4 * RECORD) / 7 * 1_000)
    assert ipoeth.work.check_ps == 80_000  # one access to local memory


def test_who_runs_where() -> None:
    """Four servers for clients, three for records, one for timestamps; clients in turn."""
    scenario = load_scenario("nam-fig6-rsi")
    parameters, _ = commit_parameters(scenario)
    assert parameters.machines == 8
    assert [parameters.nodes[k].machine for k in parameters.storage] == [0, 1, 2]
    assert parameters.nodes[parameters.timestamps].machine == 3
    assert parameters.client_machine[:6] == (4, 5, 6, 7, 4, 5)
    assert len(parameters.client_machine) == 70
    assert (parameters.reads, parameters.updates, parameters.inserts) == (3, 3, 4)
    assert all(node.threads == 10 for node in parameters.nodes)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"system.storage_nodes": "[5, 2]"}, ((0, 1, 3, 4), (2, 5), 6)),
        ({"system.client_nodes": "[7]", "system.storage_nodes": "6"}, ((7,), tuple(range(6)), 6)),
    ],
)
def test_nodes_that_are_named_are_taken_first(settings: dict[str, str], expected: Any) -> None:
    changes = [f"{path}={value}" for path, value in settings.items()]
    scenario = load_scenario("nam-fig6-rsi", settings=[*changes, "system.clients=8"])
    roles = scenario.system.roles(scenario.machine)  # type: ignore[attr-defined]
    assert (roles.clients, roles.storage, roles.timestamps) == expected


def test_clients_on_the_servers() -> None:
    parameters, _ = commit_parameters(load_scenario("nam-rsi-1000n"))
    assert parameters.machines == 1_001
    assert parameters.client_machine[:3] == (0, 1, 2)
    assert parameters.client_machine[1_000] == 0
    assert len(parameters.storage) == 1_000


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("{distribution: zipf, exponent: 0.5}", ("zipf", 0.5, 0, 0.0)),
        ("{distribution: hot_range, from: 10, to: 30, share: 0.8}", ("hot", 0.0, 20, 0.8)),
        ("{distribution: uniform}", ("uniform", 0.0, 0, 0.0)),
    ],
)
def test_keys(setting: str, expected: tuple[str, float, int, float]) -> None:
    scenario = load_scenario(
        "nam-fig6-rsi", settings=[f"workload.operations.checkout.keys={setting}"]
    )
    keys = commit_parameters(scenario)[0].keys
    found = (keys.distribution, keys.exponent, keys.hot_records, keys.hot_probability)
    assert found == expected

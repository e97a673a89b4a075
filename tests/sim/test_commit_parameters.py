"""Parameters of a commit run that do not fit together are refused, in one line."""

from typing import Any

import pytest
from commit_clusters import cluster, verbs
from refusals import told_by

from numatwin.sim._kernel import MessageCost
from numatwin.sim.systems.commits.parameters import ARCHITECTURES, Death, KeyDraw, Node, Straggler


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_fits_is_accepted(architecture: str) -> None:
    parameters = cluster(architecture)
    assert parameters.one_sided == (architecture == "rsi")
    assert set(parameters.message_types) <= set(parameters.costs)


@pytest.mark.parametrize(
    ("architecture", "settings", "told"),
    [
        ("rsi", {"client_machine": ()}, "clients: found '0', expected at least 1"),
        ("rsi", {"client_machine": (9,)}, "machine of a client: found '9'"),
        ("rsi", {"nodes": (Node(2, 0),), "storage": (0,), "timestamps": 0}, "threads: found '0'"),
        ("rsi", {"storage": ()}, "storage servers: found '0'"),
        ("rsi", {"storage": (1, 1)}, "expected distinct nodes"),
        ("rsi", {"timestamps": 4}, "timestamps: found '4', expected an index from 0 to 3"),
        ("two-sided", {"managers": ()}, "managers: found '0'"),
        ("ipoib", {"costs": {}}, "costs of message 'snapshot-request': expected"),
        ("rsi", {"costs": verbs(thread_ps=-1)}, "send_ps of message 'snapshot-read': found '-1'"),
        (
            "rsi",
            {"costs": {**verbs(), "read": (MessageCost(),)}},
            "transactions would take no time",
        ),
        ("rsi", {"records": 2}, "reads: found '3', expected at most all 2 records"),
        ("rsi", {"updates": 4}, "updates: found '4', expected at most the 3 records read"),
        ("rsi", {"updates": 0, "inserts": 0}, "expected at least one write"),
        ("rsi", {"reads": 65}, "reads: found '65', expected at most 64"),
        ("rsi", {"timestamp_bits": 3}, "at least one for each of the 4 clients"),
        ("rsi", {"keys": KeyDraw("zipf", 4.0)}, "exponent of keys: found '4'"),
        ("rsi", {"keys": KeyDraw("hot", hot_records=2)}, "hot records: found '2'"),
        ("rsi", {"deaths": (Death(4, 0),)}, "client in deaths: found '4'"),
        ("rsi", {"deaths": (Death(1, 0), Death(1, 5))}, "expected each client once"),
        ("rsi", {"stragglers": (Straggler(0, 0),)}, "factor of a straggler: found '0'"),
        ("rsi", {"lease_ps": 0}, "lease_ps: found '0', expected a time above 0"),
        ("ipoeth", {"lease_ps": 1}, "2PC needs no such remedy"),
        ("rsi", {"think_ps": -1}, "think_ps: found '-1'"),
    ],
)
def test_what_does_not_fit_is_refused(
    architecture: str, settings: dict[str, Any], told: str
) -> None:
    assert told in told_by(cluster, architecture, **settings)

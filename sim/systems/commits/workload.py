"""The records that transactions read and create, and where they are stored.

Each client has streams of its own, named in ``STREAMS``: so one client's draws do not depend on
what the others do, nor on the protocol.
"""

import numpy as np

from ..._kernel import Durations, KeyDraws
from ...kernel.streams import stream, stream_key
from .parameters import CommitParameters

STREAMS = ("client {} keys", "client {} think")


def stream_keys(parameters: CommitParameters, seed: int, replication: int) -> np.ndarray:
    """(clients, 2, 2): the Philox keys of each client's STREAMS."""
    names = [
        [name.format(client) for name in STREAMS]
        for client in range(len(parameters.client_machine))
    ]
    keys = [[stream_key(seed, replication, name) for name in row] for row in names]
    return np.array(keys, dtype=np.uint64)


def key_draws(parameters: CommitParameters) -> KeyDraws:
    """The distribution of records."""
    keys, records = parameters.keys, parameters.records
    if keys.distribution == "zipf":
        return KeyDraws.zipf(records, keys.exponent, scattered=False)
    breaks, mass = [0, records], [1.0]
    if keys.distribution == "hot":
        breaks = [0, keys.hot_records, records]
        mass = [keys.hot_probability, 1 - keys.hot_probability]
    return KeyDraws.piecewise(np.array(breaks, dtype=np.int64), np.array(mass))


def think_times(parameters: CommitParameters) -> Durations:
    """The distribution of a client's think times, a straggler's factor left out."""
    if parameters.think == "exponential" and parameters.think_ps:
        return Durations.exponential(float(parameters.think_ps))
    return Durations.deterministic(parameters.think_ps)


def compute_times(parameters: CommitParameters) -> Durations:
    """The distribution of a client's own work, a straggler's factor left out."""
    mean, spread = parameters.compute_ps, round(parameters.compute_ps * parameters.compute_spread)
    if not spread:
        return Durations.deterministic(mean)
    return Durations.uniform(mean - spread, mean + spread)


def server_of(parameters: CommitParameters, key: int) -> int:
    """The storage server of a record: by key; those that a client creates, in turn from its own."""
    servers, clients = len(parameters.storage), len(parameters.client_machine)
    if key < parameters.records:
        return key % servers
    created = key - parameters.records
    return (created % clients + created // clients) % servers


class TransactionDraw:
    """One client's transactions, in order."""

    def __init__(
        self, parameters: CommitParameters, client: int, seed: int, replication: int
    ) -> None:
        self._parameters = parameters
        self._client = client
        self._created = 0
        self._keys, self._think = (
            stream(seed, replication, name.format(client)) for name in STREAMS
        )
        self._key_draws = key_draws(parameters)
        self._think_times = think_times(parameters)
        self._compute_times = compute_times(parameters)

    def records(self) -> tuple[list[int], list[int]]:
        """The records that the next transaction reads, all distinct, and those that it creates."""
        p = self._parameters
        reads: list[int] = []
        while len(reads) < p.reads:
            key = self._key_draws.draw(self._keys)
            if key not in reads:
                reads.append(key)
        clients = len(p.client_machine)
        first = self._created
        self._created += p.inserts
        created = range(first, self._created)
        return reads, [p.records + self._client + clients * number for number in created]

    def compute_ps(self) -> int:
        """The client's own work for the transaction at hand."""
        return self._compute_times.draw(self._think)

    def think_ps(self) -> int:
        """The next think time."""
        return self._think_times.draw(self._think)

"""Published results of transactions on fast networks, and how each is predicted.

Binnig et al., The End of Slow Networks: It's Time for a Redesign, PVLDB 9 (2016). Low-level facts
alone go into these predictions: the machine's adapters, cycles of a message, bytes of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....sim.run.record import Record
from ....sim.systems.commits.plane import IN, OUT
from ...results import Prediction, Published, Runs

# Both play transactions; the reference plane gives the same figures, later.
PLANES = ("event", "reference")

CLIENTS = (1, 10, 20, 30, 40, 50, 60, 70)
LINEAR_TO = 60


def _clients(count: int) -> str:
    return f"system.clients={count}"


def _use(record: Record, node: int, kind: str) -> float:
    return next(
        use.utilisation for use in record.resources if use.kind == kind and use.node == node
    )


# -- Upper bounds of 2PC --------------------------------------------------------------------------


def _bound_cpu(storage_nodes: int) -> Callable[[Runs], Prediction]:
    others = storage_nodes - 1
    counted = 5 + 8 * others

    def predict(runs: Runs) -> Prediction:
        record = runs("nam-bound-cpu", f"system.storage_nodes={storage_nodes}")
        threads = [use.utilisation for use in record.resources if use.kind == "threads"]
        note = (
            f"The cores of the {storage_nodes} servers are {100 * min(threads[:storage_nodes]):.0f}"
            f"% in use. They handle the bound's {counted} messages of each transaction, and two "
            f"more by which the client reads its record: {100 * 2 / counted:.0f}% that the bound "
            "leaves out."
        )
        return Prediction(
            runs.rate("nam-bound-cpu", f"system.storage_nodes={storage_nodes}"), note=note
        )

    return predict


def _bound_10gbe(runs: Runs) -> Prediction:
    """The rate at which all that the storage server sends and receives would fill one direction."""
    record = runs("nam-bound-10gbe")
    rate = runs.rate("nam-bound-10gbe")
    storage = 4  # the first node behind those of the clients
    both = _use(record, storage, OUT) + _use(record, storage, IN)
    note = (
        "The source adds what a server sends and what it receives, as if both shared one "
        f"direction; so does this row. Ethernet is full duplex: the plane itself commits "
        f"{rate / 1e3:.0f} k/s, with directions {100 * _use(record, storage, OUT):.0f}% and "
        f"{100 * _use(record, storage, IN):.0f}% in use. The source's 1 KB seems to be 1,024 B and "
        "its 10 Gb/s 1.25 GiB/s: decimal units alone make 208,333/s, and messages that bring the "
        "records do the rest."
    )
    return Prediction(rate / both, note=note)


# -- Figure 6 -------------------------------------------------------------------------------------


def _rsi(runs: Runs) -> Prediction:
    note = (
        "The timestamp server's adapter is full: each transaction reads the whole bit vector, "
        "7,500 B, to find the end of its leading run. The source does not say how clients do that; "
        "system.snapshot_size=8 B, a client that knows where to look, gives "
        f"{runs.rate('nam-fig6-rsi', 'system.snapshot_size=8 B') / 1e6:.2f} M/s. The choice was "
        "made with the published figure in sight."
    )
    return Prediction(runs.rate("nam-fig6-rsi"), note=note)


def _rsi_linear(runs: Runs) -> Prediction:
    """Throughput at 60 clients over 60 times that of one."""
    one = runs.rate("nam-fig6-rsi", _clients(1))
    parts = {n: runs.rate("nam-fig6-rsi", _clients(n)) / (n * one) for n in CLIENTS}
    straight = max(n for n, part in parts.items() if part >= 0.9)
    latency_ns = (runs("nam-fig6-rsi", _clients(1)).latency_ns["checkout"] or {})["mean"] or 0.0
    note = (
        f"One client takes {latency_ns / 1e3:.0f} µs for a transaction here; {straight} of them "
        f"are within 10% of {straight} times one. The level is that of the source, and is reached "
        "sooner. Clients of the source's prototype seem to take some 33 µs: requests that wait for "
        "one another, look-ups in the dictionary of addresses, work of its own on a transaction. "
        "The source gives no times of these."
    )
    words = ", ".join(f"{100 * parts[n]:.0f}% at {n}" for n in (30, 40, 50, 60))
    return Prediction(f"{words} clients of so many times one", parts[LINEAR_TO] >= 0.9, note)


def _rsi_limit(runs: Runs) -> Prediction:
    why = runs("nam-fig6-rsi").why["checkout"].resource
    return Prediction(f"limited by {why}", why.startswith("adapter"))


def _ipoeth(runs: Runs) -> Prediction:
    whole = runs.rate("nam-fig6-ipoeth", "workload.operations.checkout.changed_size=1 KiB")
    spread = runs.rate("nam-fig6-ipoeth", "system.managers=storage-nodes")
    why = runs("nam-fig6-ipoeth").why["checkout"].resource
    note = (
        f"Limited by {why}: the transaction manager's port of 1 Gb/s, through which the write set "
        "goes in with the commit request and out to the storage servers; at 32,000/s it would have "
        "3,900 B for a transaction, less than the four new records. So in the source's prototype "
        "records cannot all have gone that way. Updates carry the stock alone here; whole records "
        f"would give {whole / 1e3:.1f} k/s, managers on the storage servers {spread / 1e3:.1f} k/s."
    )
    return Prediction(runs.rate("nam-fig6-ipoeth"), note=note)


def _curve(scenario: str, clients: int) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        why = runs(scenario, _clients(clients)).why["checkout"].resource
        return Prediction(runs.rate(scenario, _clients(clients)), note=f"Limited by {why}.")

    return predict


CURVES = {"nam-fig6-ipoib": "2PC over IPoIB", "nam-fig6-two-sided": "2PC by SEND and RECEIVE"}


def _curves() -> dict[str, Published]:
    """Predictions made in advance: throughput by the number of clients."""
    return {
        f"{scenario}-{clients}": Published(
            None,
            "transactions/s",
            _curve(scenario, clients),
            planes=PLANES,
            about=f"{what}, {clients} {'client' if clients == 1 else 'clients'}",
            curve=(what, clients),
        )
        for scenario, what in CURVES.items()
        for clients in CLIENTS
    }


PUBLISHED: Mapping[str, Published] = {
    "nam-bound-cpu": Published(
        647e3,
        "transactions/s",
        _bound_cpu(4),
        planes=PLANES,
        about="bound of 2PC by CPU, 4 servers",
    ),
    "nam-bound-cpu-4": Published(
        634e3,
        "transactions/s",
        _bound_cpu(5),
        planes=PLANES,
        about="bound of 2PC by CPU, 5 servers",
    ),
    "nam-bound-10gbe": Published(
        218.5e3,
        "transactions/s",
        _bound_10gbe,
        planes=PLANES,
        about="bound of 2PC by 10 Gb Ethernet",
    ),
    "nam-fig6-rsi": Published(
        1.8e6, "transactions/s", _rsi, planes=PLANES, about="RSI, 70 clients"
    ),
    "nam-fig6-rsi-linear": Published(
        f"close to linear up to {LINEAR_TO} clients",
        "of so many times one",
        _rsi_linear,
        planes=PLANES,
        about="RSI, by the number of clients",
    ),
    "nam-fig6-rsi-limit": Published(
        "limited by bandwidth of the adapters",
        "limit",
        _rsi_limit,
        planes=PLANES,
        about="RSI, 70 clients",
    ),
    "nam-fig6-ipoeth": Published(
        32e3, "transactions/s", _ipoeth, planes=PLANES, about="2PC over 1 Gb Ethernet, 70 clients"
    ),
    **_curves(),
}

BLINDNESS = """\
**Transactions (NAM).** Not quite blind, either. Three choices that the source leaves open were made
with its figures in sight: that a client reads the whole bit vector (`nam-fig6-rsi`: the level is
the timestamp server's adapter over 7.5 KB), that its own work on records costs the source's 10^-9 s
a byte (`nam-fig6-rsi-linear`), and that an update carries the stock alone (`nam-fig6-ipoeth`). The
notes of these rows say what other choices give. No time, rate or size was changed to meet a figure.
The curves of IPoIB and of two-sided verbs were predicted without a published figure.
"""

"""All that validation has of transactions on a cluster: published results, and their predictions.

Binnig et al., The End of Slow Networks: It's Time for a Redesign, PVLDB 9 (2016). Low-level facts
alone go into these predictions: the machine's adapters, cycles of a message, bytes of records.
"""

from collections.abc import Callable

from ....sim.run.record import Record
from ....sim.systems.commits.servers import IN, OUT
from ....sim.systems.descriptor import LazyImport
from ...results import Prediction, Published, Runs, read_source
from ..descriptor import Microbenchmark, Validation

SOURCE = read_source("nam")

# Both run transactions; the reference plane gives the same figures, later.
PLANES = ("event", "reference")

CLIENTS = (1, 10, 20, 30, 40, 50, 60, 70)
LINEAR_TO = 60


def _clients(count: int) -> str:
    return f"system.clients={count}"


def _use(record: Record, node: int, kind: str) -> float:
    return next(
        use.utilisation for use in record.resources if use.kind == kind and use.node == node
    )


def _bound_cpu(storage_nodes: int) -> Callable[[Runs], Prediction]:
    others = storage_nodes - 1
    counted = 5 + 8 * others

    def predict(runs: Runs) -> Prediction:
        record = runs("nam-bound-cpu", f"system.storage_nodes={storage_nodes}")
        threads = [use.utilisation for use in record.resources if use.kind == "threads"]
        facts = {
            "servers": storage_nodes,
            "use": min(threads[:storage_nodes]),
            "counted": counted,
            "left_out": 2 / counted,
        }
        rate = runs.rate("nam-bound-cpu", f"system.storage_nodes={storage_nodes}")
        return Prediction(rate, facts=facts)

    return predict


def _bound_10gbe(runs: Runs) -> Prediction:
    """The rate at which all that the storage server sends and receives would fill one direction."""
    record = runs("nam-bound-10gbe")
    rate = runs.rate("nam-bound-10gbe")
    storage = 4  # the first node behind those of the clients
    sending, receiving = (_use(record, storage, kind) for kind in (OUT, IN))
    facts = {"kilo_per_s": rate / 1e3, "sending": sending, "receiving": receiving}
    return Prediction(rate / (sending + receiving), facts=facts)


def _rsi(runs: Runs) -> Prediction:
    shorter = runs.rate("nam-fig6-rsi", "system.snapshot_size=8 B")
    return Prediction(runs.rate("nam-fig6-rsi"), facts={"mega_per_s": shorter / 1e6})


def _rsi_linear(runs: Runs) -> Prediction:
    """Throughput at 60 clients over 60 times that of one."""
    single_client = runs.rate("nam-fig6-rsi", _clients(1))
    parts = {n: runs.rate("nam-fig6-rsi", _clients(n)) / (n * single_client) for n in CLIENTS}
    straight = max(n for n, part in parts.items() if part >= 0.9)
    latency_ns = (runs("nam-fig6-rsi", _clients(1)).latency_ns["checkout"] or {})["mean"] or 0.0
    facts = {"latency_us": latency_ns / 1e3, "straight": straight}
    words = ", ".join(f"{100 * parts[n]:.0f}% at {n}" for n in (30, 40, 50, 60))
    return Prediction(f"{words} clients of so many times one", parts[LINEAR_TO] >= 0.9, facts)


def _rsi_limit(runs: Runs) -> Prediction:
    why = runs("nam-fig6-rsi").why["checkout"].resource
    return Prediction(f"limited by {why}", why.startswith("adapter"))


def _ipoeth(runs: Runs) -> Prediction:
    whole = runs.rate("nam-fig6-ipoeth", "workload.operations.checkout.changed_size=1 KiB")
    spread = runs.rate("nam-fig6-ipoeth", "system.managers=storage-nodes")
    why = runs("nam-fig6-ipoeth").why["checkout"].resource
    facts = {"why": why, "whole": whole / 1e3, "spread": spread / 1e3}
    return Prediction(runs.rate("nam-fig6-ipoeth"), facts=facts)


OWN_MANAGERS = "system.manager_threads=per-client"
OWN_THREADS = SOURCE.stated("threads of servers", "one for each client, of two sockets")


def _with_own_threads(runs: Runs, clients: int) -> str:
    rate = runs.rate("nam-fig6-two-sided", _clients(clients), *OWN_THREADS)
    return f"{rate / 1e6:.2f} M/s"


def _two_sided(runs: Runs) -> Prediction:
    facts = {"with_40": _with_own_threads(runs, 40)}
    return Prediction(runs.rate("nam-fig6-two-sided", _clients(40)), facts=facts)


def _two_sided_fall(runs: Runs) -> Prediction:
    managers = runs.rate("nam-fig6-two-sided", _clients(70), OWN_MANAGERS, "horizon=30ms")
    falls = ", ".join(f"{_with_own_threads(runs, clients)} of {clients}" for clients in (50, 70))
    facts = {"falls": falls, "managers": managers / 1e6}
    return Prediction(runs.rate("nam-fig6-two-sided"), facts=facts)


def _ipoib(runs: Runs) -> Prediction:
    share = "machine.nics.0.transports.IPoIB.interrupt_share"
    low, high = (runs.rate("nam-fig6-ipoib", f"{share}={part}") for part in (0.7, 0.3))
    why = runs("nam-fig6-ipoib").why["checkout"].resource
    facts = {"why": why, "low": low / 1e3, "high": high / 1e3, "factor": low / 22e3}
    return Prediction(runs.rate("nam-fig6-ipoib"), facts=facts)


def _curve(scenario: str, clients: int) -> Callable[[Runs], Prediction]:
    def predict(runs: Runs) -> Prediction:
        why = runs(scenario, _clients(clients)).why["checkout"].resource
        return Prediction(runs.rate(scenario, _clients(clients)), facts={"why": why})

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
            note="Limited by {why}.",
        )
        for scenario, what in CURVES.items()
        for clients in CLIENTS
    }


PROCESSES = f"{__package__}.measured_processes"
VALIDATION = Validation.of(
    SOURCE,
    {
        "nam-bound-cpu": _bound_cpu(4),
        "nam-bound-cpu-4": _bound_cpu(5),
        "nam-bound-10gbe": _bound_10gbe,
        "nam-fig6-rsi": _rsi,
        "nam-fig6-rsi-linear": _rsi_linear,
        "nam-fig6-rsi-limit": _rsi_limit,
        "nam-fig6-ipoeth": _ipoeth,
        "nam-fig6-two-sided": _two_sided,
        "nam-fig6-two-sided-fall": _two_sided_fall,
        "nam-fig6-ipoib": _ipoib,
    },
    _curves(),
    measured={"processes": Microbenchmark(LazyImport(PROCESSES, "measure"), 3.0)},
    described=LazyImport(PROCESSES, "described"),
    calibration=LazyImport(f"{__package__}.process_costs", "CALIBRATION"),
)

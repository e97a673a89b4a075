"""The bottleneck of transactions: the busiest resource, and the gain from more of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..._kernel import MessageCost, ProcessorSetup, RecordWork
from ...kernel.histogram import Histogram
from ...planes.outcome import Gain, ResourceUse, Why, by_gain
from .checked_values import ps
from .parameters import CommitParameters
from .servers import POLLERS

MORE = 1.1
GAIN_MIN = 0.01  # below, the draws of a short run show
FULL = 0.9  # a queue in front of a server in use for so long is most of what is waited for

COMMITS, ROUNDS = 2_000, 20  # of a what-if, at least: in all, and by each client
EVENTS_MAX = 4_000_000  # beyond, a what-if takes seconds

Rate = Callable[[CommitParameters, int], float]


@dataclass(frozen=True)
class Need:
    """What a run has shown: its parameters, how long it was, its latencies, its events."""

    parameters: CommitParameters
    time_s: float
    latencies: Histogram
    events: int

    @property
    def until_ps(self) -> int | None:
        """How long a what-if must be; None where it would take too many events."""
        if not self.latencies.count:
            return None
        commits = max(COMMITS, ROUNDS * len(self.parameters.client_machine))
        part = min(commits / self.latencies.count, 1.0)
        if part * self.events > EVENTS_MAX:
            return None
        return ps(part * self.time_s)


def explain(need: Need, uses: Sequence[ResourceUse], rate: Rate, cap: str = "") -> Why:
    """``rate``: of parameters, up to a time, with the same draws; ``cap``: what bounds adapters, in
    words."""
    demands = {} if not need.latencies.count else {"a transaction": need.latencies.mean}
    return Why(binding(uses, cap), _gains(need, rate), demands)


def binding(uses: Sequence[ResourceUse], cap: str = "") -> str:
    """The busiest resource where it is full; else it is the time that a transaction takes."""
    busiest = max((use for use in uses if use.kind != POLLERS), key=lambda use: use.utilisation)
    if busiest.utilisation >= FULL:
        return busiest.name + (cap if busiest.kind.startswith("nic") else "")
    return f"the time that each transaction takes (busiest: {busiest.name})"


def _gains(need: Need, rate: Rate) -> tuple[Gain, ...]:
    until_ps = need.until_ps
    if until_ps is None:
        return ()
    before = rate(need.parameters, until_ps)
    if before <= 0:
        return ()
    better = what_ifs(need.parameters)
    gains = {n: rate(p, until_ps) / before - 1.0 for n, p in better.items()}
    clients = len(need.parameters.client_machine)
    gains["clients"] *= (MORE - 1.0) * clients / _more(clients)
    return by_gain(gains, GAIN_MIN)


def _more(clients: int) -> int:
    """A tenth of them, at least one."""
    return max(1, round(clients * (MORE - 1.0)))


def what_ifs(parameters: CommitParameters) -> Mapping[str, CommitParameters]:
    """The same run on better parts; clients keep their numbers, and so their draws."""
    work = {name: round(getattr(parameters.work, name) / MORE) for name in RecordWork.FIELDS}
    machines = parameters.client_machine
    more = _more(len(machines))
    return {
        "network bandwidth and message rate": _with_costs(parameters, "out_ps", "in_ps"),
        "speed of the network (1 / latency)": _with_costs(parameters, "wire_ps"),
        "processor speed": _with_costs(parameters, "send_ps", "receive_ps", interrupts=True),
        "bandwidth of a thread's copies": replace(
            parameters, compute_ps=round(parameters.compute_ps / MORE), work=RecordWork(**work)
        ),
        "clients": replace(
            parameters,
            client_machine=(*machines, *machines[:more]),
            start_ps=(*parameters.start_ps, *parameters.start_ps[:more]),
            timestamp_bits=max(parameters.timestamp_bits, len(machines) + more),
            processors=_with_clients(parameters, more),
            own_storage=_shared_storage(parameters, more),
        ),
    }


def _shared_storage(parameters: CommitParameters, more: int) -> tuple[int, ...]:
    """More clients have the threads of the first ones on storage servers, too."""
    own, clients = parameters.own_storage, len(parameters.client_machine)
    of_server = (own[first : first + clients] for first in range(0, len(own), clients))
    return tuple(node for nodes in of_server for node in (*nodes, *nodes[:more]))


def _with_clients(parameters: CommitParameters, more: int) -> ProcessorSetup | None:
    """More clients run where the first ones do; nobody moves."""
    shared, clients = parameters.processors, len(parameters.client_machine)
    if shared is None or not shared.homes:
        return shared
    homes = shared.homes
    return shared.replaced(homes=[*homes[:clients], *homes[:more], *homes[clients:]])


def _with_costs(
    parameters: CommitParameters, *parts: str, interrupts: bool = False
) -> CommitParameters:
    """With these parts of all messages a tenth shorter.

    ``interrupts``: the incoming side, too, where a core's interrupts make it longer than the
    outgoing one; it is then no matter of the network.
    """
    assert set(parts) <= {*MessageCost.FIELDS}

    def shorter(cost: MessageCost) -> MessageCost:
        by_core = cost.in_ps > cost.out_ps
        chosen = {part for part in parts if part != "in_ps" or not by_core}
        if interrupts and by_core:
            chosen.add("in_ps")
        return cost.replaced(**{part: round(getattr(cost, part) / MORE) for part in chosen})

    costs = {name: tuple(map(shorter, entries)) for name, entries in parameters.costs.items()}
    return replace(parameters, costs=costs)

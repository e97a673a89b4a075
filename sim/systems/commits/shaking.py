"""Random clusters, workloads and faults, each of a seed, whose histories are checked.

After the faults clients begin no more transactions. Then each must end the one that it is in, and
no lock may stay; but where RSI has no remedy for a dead client, it is told to block.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, TypeVar

from ....inputs import InputError
from ..._kernel import ClockFault, PathFault, Stream, Transport
from ...kernel.streams import stream
from .build import commit_parameters
from .parameters import (
    ARCHITECTURES,
    RELIABLE_ONCE,
    RSI_STEPS,
    TWO_PHASE_STEPS,
    CommitParameters,
    Death,
    KeyDraw,
    Stop,
)
from .plane import KernelCommitModel

BEGINS, ENDS, PATIENCE = 20, 25, 400  # in typical transactions: until when they begin, all faults
# are over, and each must have ended
Load = Callable[[Sequence[str]], Any]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Case:
    """One run: ``unit_ps`` is about what a transaction takes."""

    parameters: CommitParameters
    seed: int
    unit_ps: int


class CommitShaker:
    """Cases of a scenario; ``plant``: with a bug in the models (see ``KernelCommitModel``)."""

    def __init__(self, load: Load, plant: int = 0) -> None:
        self.bases, self.plant = clusters(load), plant

    def finding(self, seed: int) -> dict[str, Any] | None:
        """What is wrong with the case of a seed; see ``descriptor.Shaker``."""
        case = case_of(self.bases, seed)
        if not findings_of(case, self.plant):
            return None
        small = shrunk(case, self.plant)
        return {"findings": findings_of(small, self.plant), "case": described(small)}


def clusters(load: Load) -> list[CommitParameters]:
    """Of a scenario, under each protocol that its machine's adapters can run. ``load``: makes the
    scenario with these settings."""
    found, refused = list[CommitParameters](), None
    without = ["system.faults=[]", "system.retransmission=null"]
    for architecture in ARCHITECTURES:
        settings = [f"system.architecture={architecture}", *without]
        if architecture == "rsi":
            settings += ["system.lease=1 ms", "system.skip_after=1 ms"]
        else:
            settings += ["system.lease=null", "system.skip_after=null"]
        try:
            parameters, _ = commit_parameters(load(settings))
        except InputError as error:
            refused = error
            continue
        found.append(replace(parameters, stragglers=(), processors=None))
    if refused is not None and not found:
        raise refused
    return found


def case_of(bases: Sequence[CommitParameters], seed: int) -> Case:
    """The case of a seed."""
    draws = Draws(stream(seed, 0, "shake"))
    base = draws.one_of(bases)
    unit_ps = _unit_ps(base)
    clients = draws.whole(2, 10)
    rsi = base.one_sided
    lease_ps = draws.one_of((None, unit_ps // 2, unit_ps)) if rsi else None
    parameters = replace(
        base,
        client_machine=tuple(islice(cycle(base.client_machine), clients)),
        own_storage=(),
        own_managers=False,
        doorbell=True,
        in_step=False,
        timestamp_reach=None,
        managers=base.managers[:1],
        start_ps=(),
        records=draws.one_of((8, 30, 200)),
        reads=draws.whole(1, 4),
        updates=1,
        inserts=draws.whole(0, 2),
        keys=draws.one_of((KeyDraw(), KeyDraw("zipf", 0.99))),
        think_ps=draws.one_of((0, unit_ps // 2)),
        compute_ps=draws.one_of((0, unit_ps // 2)),
        retries=draws.whole(0, 2),
        versions=draws.whole(2, 4),
        send_queue=1,
        snapshot_every=draws.whole(1, 2),
        timestamp_bits=60_000,
        lease_ps=lease_ps,
        undoes=lease_ps is not None,
        skip_after_ps=draws.one_of((None, 2 * unit_ps)) if rsi else None,
        poll_ps=max(1, unit_ps // 10),
        rest_ps=BEGINS * unit_ps,
        transport=Transport(
            timeout_ps=max(1, draws.one_of((unit_ps // 10, unit_ps // 2, 2 * unit_ps))),
            growth=draws.whole(1, 2),
            longest_ps=6 * unit_ps,
            retries=draws.whole(0, 4),
            reconnect_ps=draws.one_of((0, unit_ps)),
        ),
    )
    parameters = replace(parameters, updates=draws.whole(1, parameters.reads))
    parameters = with_drawn_faults(parameters, draws, unit_ps)
    return Case(with_drawn_replicas(parameters, draws, unit_ps), seed, unit_ps)


def with_drawn_faults(p: CommitParameters, draws: "Draws", unit_ps: int) -> CommitParameters:
    """Up to three stops, paths and dying clients; all that stop come back."""
    clients, servers = len(p.client_machine), sorted({node.machine for node in p.nodes})
    stops, at_ps = list[Stop](), 0
    for _ in range(draws.whole(0, 3)):
        at_ps += draws.whole(1, 6 * unit_ps)
        back_ps = at_ps + draws.whole(1, 2 * unit_ps)
        stops.append(Stop(draws.one_of(servers), at_ps, back_ps))
        at_ps = back_ps
    paths = []
    for _ in range(draws.whole(0, 3)):
        from_ps = draws.whole(0, BEGINS * unit_ps)
        paths.append(
            PathFault(
                from_ps=from_ps,
                until_ps=from_ps + draws.whole(1, 5 * unit_ps),
                side=_sides(p, draws),
                loss=draws.one_of((0.0, 0.1, 0.5, 1.0)),
                factor=draws.one_of((1, 1, 5, 40)),
                late=draws.one_of((0.0, 0.1, 0.5)),
                late_ps=_late_ps(p, draws, unit_ps),
            )
        )
    steps = (None, *(RSI_STEPS if p.one_sided else TWO_PHASE_STEPS))
    deaths = {
        client: Death(client, draws.whole(0, BEGINS * unit_ps), draws.one_of(steps))
        for client in (draws.whole(0, clients - 1) for _ in range(draws.whole(0, 2)))
    }
    p = replace(p, stops=tuple(stops), path_faults=tuple(paths), deaths=tuple(deaths.values()))
    return replace(p, clock_faults=_clocks(p, draws, unit_ps)) if p.has_remedy else p


def _late_ps(p: CommitParameters, draws: "Draws", unit_ps: int) -> int:
    """Where the transport delivers once, no more than it waits."""
    assert p.transport is not None
    late_ps = draws.whole(1, 4 * unit_ps)
    return min(late_ps, p.transport.timeout_ps) if p.architecture in RELIABLE_ONCE else late_ps


def _clocks(p: CommitParameters, draws: "Draws", unit_ps: int) -> tuple[ClockFault, ...]:
    """Up to two that are off, by more than a lease or a lot faster or slower."""
    found = []
    for _ in range(draws.whole(0, 2)):
        from_ps = draws.whole(0, BEGINS * unit_ps)
        found.append(
            ClockFault(
                machine=draws.whole(0, p.machines - 1),
                from_ps=from_ps,
                until_ps=from_ps + draws.whole(1, 5 * unit_ps),
                ahead_ps=draws.one_of((0, draws.whole(-2 * unit_ps, 2 * unit_ps))),
                drift_ppm=draws.one_of((0, 200_000, -900_000)),
            )
        )
    return tuple(found)


def with_drawn_replicas(p: CommitParameters, draws: "Draws", unit_ps: int) -> CommitParameters:
    """Of each record, or none; servers of records alone may come back empty. Of those with replicas
    the first that stops, as a later one may have the only copy."""
    stores = [stop for stop in p.stops if stop.machine != p.nodes[p.timestamps].machine]
    empty = {stop for stop in stores if draws.one_of((True, False))}
    if len(p.storage) > 1 and draws.one_of((True, False)):
        copy_ps = draws.one_of((0, unit_ps // 50, unit_ps // 4))
        p = replace(p, replicas=1, failover_ps=draws.whole(1, 2 * unit_ps), copy_ps=copy_ps)
        empty &= {*stores[:1]}
    return replace(p, stops=tuple(replace(stop, empty=stop in empty) for stop in p.stops))


def _sides(p: CommitParameters, draws: "Draws") -> list[int]:
    """A machine's port, or paths between any groups."""
    if draws.one_of((True, False)):
        machine = draws.whole(0, p.machines - 1)
        return [1 if other == machine else 2 for other in range(p.machines)]
    return [draws.whole(0, 2) for _ in range(p.machines)]


@dataclass(frozen=True)
class Draws:
    """From a stream."""

    stream: Stream

    def whole(self, least: int, most: int) -> int:
        """Both may come."""
        return least + min(int(self.stream.uniform() * (most - least + 1)), most - least)

    def one_of(self, values: Sequence[Value]) -> Value:
        """Each as probable."""
        return values[self.whole(0, len(values) - 1)]


def _unit_ps(p: CommitParameters) -> int:
    """About what a transaction takes: its messages one after another."""
    each = [
        cost.send_ps + cost.out_ps + cost.wire_ps + cost.in_ps + cost.receive_ps
        for name in p.message_types
        for cost in p.costs[name][:1]
    ]
    return 12 * max(1, sum(each) // len(each))


def findings_of(case: Case, plant: int = 0) -> list[str]:
    """What is wrong with the run of a case, a line each."""
    p, seed = case.parameters, case.seed
    model = KernelCommitModel(p, seed, checked=True, plant=plant)
    model.run(ENDS * case.unit_ps)
    for until in range(ENDS + 5, PATIENCE, 5):
        if model.findings or not model.busy_clients:
            break
        model.run(until * case.unit_ps)
    # What nobody waits for is still under way.
    while not model.busy_clients and model.pending and model.now_ps < 4 * PATIENCE * case.unit_ps:
        model.run(model.now_ps + 20 * case.unit_ps)
    found = list(model.findings)
    blocks = p.one_sided and p.deaths and (p.lease_ps is None or p.skip_after_ps is None)
    fences = p.lease_ps is not None and p.skip_after_ps is None
    if not found and not blocks and not fences:
        found += [f"client {c} does not end its transaction" for c in model.busy_clients]
        if not model.busy_clients:
            model.end_check()
            found += model.findings
    if not found:
        found += list(_locks_that_stay(p, model))
    return found


def _locks_that_stay(p: CommitParameters, model: KernelCommitModel) -> Iterator[str]:
    """A lock of a dead or fenced client may stay where nobody has met it."""
    may_stay = {*model.busy_clients}
    if p.one_sided:
        may_stay |= {*model.stopped_clients}
    for key, owner in model.locked_records:
        if owner not in may_stay:
            yield f"record {key} stays locked by client {owner}, who is in no transaction"


def shrunk(case: Case, plant: int = 0) -> Case:
    """A smaller case that is wrong as well: with fewer faults and clients, and shorter."""
    smaller = True
    while smaller:
        smaller = False
        for other in _smaller(case):
            if findings_of(other, plant):
                case, smaller = other, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    p = case.parameters
    for name in ("stops", "path_faults", "clock_faults", "deaths"):
        faults = getattr(p, name)
        for index in range(len(faults)):
            rest = faults[:index] + faults[index + 1 :]
            yield replace(case, parameters=replace(p, **{name: rest}))
    clients = len(p.client_machine)
    for fewer in {clients // 2, clients - 1} - {0, clients}:
        deaths = tuple(death for death in p.deaths if death.client < fewer)
        few = replace(p, client_machine=p.client_machine[:fewer], deaths=deaths)
        yield replace(case, parameters=few)
    assert p.rest_ps is not None
    if p.rest_ps > case.unit_ps:
        yield replace(case, parameters=replace(p, rest_ps=p.rest_ps // 2))


def described(case: Case) -> list[str]:
    """Its cluster and its faults, a line each."""
    p = case.parameters
    lines = [
        f"{p.architecture}: {len(p.client_machine)} clients, {len(p.storage)} storage servers, "
        f"{p.records} records{' and replicas' if p.replicas else ''}, "
        f"begins until {(p.rest_ps or 0) / 1e6:.6g} us"
    ]
    lines += [
        f"machine {stop.machine} stops at {stop.at_ps / 1e6:.6f} us, "
        f"is back at {(stop.returns_ps or 0) / 1e6:.6f} us" + (", empty" if stop.empty else "")
        for stop in p.stops
    ]
    lines += [
        f"paths between machines {[m for m, s in enumerate(f.side) if s == 1]} and "
        f"{[m for m, s in enumerate(f.side) if s == 2]} lose {f.loss:.0%}, take {f.factor} times "
        f"as long, delay {f.late:.0%} by {f.late_ps / 1e6:.6f} us, "
        f"from {f.from_ps / 1e6:.6f} us to {f.until_ps / 1e6:.6f} us"
        for f in p.path_faults
    ]
    lines += [
        f"the clock of machine {f.machine} is {f.ahead_ps / 1e6:.6f} us ahead and drifts by "
        f"{f.drift_ppm} ppm, from {f.from_ps / 1e6:.6f} us to {f.until_ps / 1e6:.6f} us"
        for f in p.clock_faults
    ]
    lines += [
        f"client {death.client} dies at {death.at_ps / 1e6:.6f} us"
        + (f" or after, at its {death.step}" if death.step else "")
        for death in p.deaths
    ]
    return lines

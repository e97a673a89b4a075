"""The cycle of a client as a closed network: each message's path through threads and adapters.

The same parameters and costs as the event plane's. Machines and nodes that have the same parts in
it are one station with several members.

Shares of machines and nodes, by group of those that are alike; how likely a number is.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, product, repeat
from math import comb

import numpy as np

from ..._kernel import MessageCost
from ...machine.processors import SHARES_NONE
from ...planes.closed_network import Branch, Cycle, Stage, Station, Visit
from .checked_values import PS
from .parameters import CommitParameters

Counts = Mapping[int, float]
"""How likely a message has so many records carried."""


def add(sums: dict[int, float], key: int, amount: float) -> None:
    """Adds to the share of ``key``, if there is one yet."""
    sums[key] = sums.get(key, 0.0) + amount


def same(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """How likely both are the same one."""
    return sum(share * other.get(key, 0.0) for key, share in one.items())


def grouped(
    items: range, form: Callable[[int], tuple[float, ...]]
) -> tuple[list[int], list[list[int]]]:
    """The group of each, and the members of each group: those of the same form."""
    known: dict[tuple[float, ...], int] = {}
    exact: dict[tuple[float, ...], int] = {}  # before rounding, as most are equal
    group_of, groups = [], list[list[int]]()
    for item in items:
        values = form(item)
        group = exact.get(values)
        if group is None:
            key = tuple(round(value, 12) for value in values)
            group = exact[values] = known.setdefault(key, len(groups))
            if group == len(groups):
                groups.append([])
        group_of.append(group)
        groups[group].append(item)
    return group_of, groups


def by_group(shares: Mapping[int, float], group: Sequence[int]) -> dict[int, float]:
    """The shares of groups; ``group``: that of each item."""
    sums: dict[int, float] = {}
    for item, share in shares.items():
        add(sums, group[item], share)
    return sums


def binomial(count: int, chance: float) -> dict[int, float]:
    """How many of ``count`` come, each with this chance."""
    return {k: comb(count, k) * chance**k * (1.0 - chance) ** (count - k) for k in range(count + 1)}


def in_turn(count: int, servers: int) -> dict[int, float]:
    """Records that go round the servers: how many one of them gets."""
    least, more = divmod(count, servers)
    return {least: 1.0 - more / servers, **({least + 1: more / servers} if more else {})}


def sum_of(one: Counts, other: Counts) -> dict[int, float]:
    """The sum of two counts that are independent."""
    found: dict[int, float] = {}
    for (a, p), (b, q) in product(one.items(), other.items()):
        add(found, a + b, p * q)
    return found


CLIENT, STORAGE, TIMESTAMPS, MANAGER = ROLES = ("client", "storage", "timestamps", "manager")

# Who answers, in stages in which clients wait.
ANSWERED_BY = {
    "snapshot": TIMESTAMPS,
    "reads": STORAGE,
    "locks": STORAGE,
    "writes": STORAGE,
    "commit request": MANAGER,
}

NONE: Counts = {0: 1.0}


@dataclass(frozen=True)
class Chances:
    """Of a try: that its reads see its snapshot (else it aborts), and that it then commits.
    ``retry``: that an aborted one is followed by another try of the same transaction."""

    reads: float = 1.0
    votes: float = 1.0
    retry: float = 0.0

    @property
    def commits(self) -> float:
        """Of a try."""
        return self.reads * self.votes


@dataclass(frozen=True)
class Rest:
    """On a host, by role: how likely a process is ``asleep`` when a message for it comes, and how
    likely its processor is ``idle`` then."""

    asleep: Mapping[str, float]
    idle: Mapping[str, float]


ALONE = Rest(dict.fromkeys(ROLES, 1.0), dict.fromkeys(ROLES, 1.0))


class Routes:
    """Where the messages of ``parameters`` go: the ``cycle`` of a try.

    Stations are adapters outwards, then inwards, by group of machines, then threads by group of
    nodes, then, where clients share processors, these. ``rest``: of a host's processes.
    """

    def __init__(self, parameters: CommitParameters, rest: Rest = ALONE) -> None:
        self.p = p = parameters
        self._rest = rest
        clients = len(p.client_machine)
        of_machine = Counter(p.client_machine)
        shares = list(accumulate(repeat(1.0 / clients, max(of_machine.values()))))
        self._machines: dict[str, dict[int, float]] = {
            CLIENT: {machine: shares[count - 1] for machine, count in of_machine.items()}
        }
        self._nodes = {
            STORAGE: dict.fromkeys(p.storage, 1.0 / len(p.storage)),
            TIMESTAMPS: {p.timestamps: 1.0},
            MANAGER: dict.fromkeys(p.managers, 1.0 / max(len(p.managers), 1)),
        }
        machine_of = [node.machine for node in p.nodes]
        self._machines |= {role: by_group(of, machine_of) for role, of in self._nodes.items()}
        self.machine_group, self._groups = grouped(
            range(p.machines), lambda m: tuple(self._machines[role].get(m, 0.0) for role in ROLES)
        )
        self.node_group, self._node_groups = grouped(
            range(len(p.nodes)),
            lambda n: (
                p.nodes[n].threads,
                *(shares.get(n, 0.0) for shares in self._nodes.values()),
            ),
        )
        self._first_node = 2 * len(self._groups)
        self._first_processor = self._first_node + len(self._node_groups)
        self._adapters = {
            role: by_group(self._machines[role], self.machine_group) for role in ROLES
        }
        # On a host, by role: the stations on which its processes run, and how many of them.
        self.processors = {
            role: {self._first_node + group: share for group, share in shares.items()}
            for role, shares in (
                (role, by_group(nodes, self.node_group)) for role, nodes in self._nodes.items()
            )
        }
        self._same: dict[tuple[str, str], tuple[float, float]] = {}
        self._crowd = 1.0  # clients to a processor that work for themselves alone
        self.on_host = False  # whether servers share processors, too
        self.cycle = Cycle((*self._own_stations(), *self._processors()), self._stages())

    def _own_stations(self) -> list[Station]:
        found = []
        for direction, group in product(("out", "in"), self._groups):
            drawn = any(m in self._machines[STORAGE] for m in group)
            found.append(Station(f"adapters {direction}", 1, len(group), drawn))
        for group in self._node_groups:
            drawn = any(n in self._nodes[STORAGE] for n in group)
            threads = self.p.nodes[group[0]].threads
            found.append(Station("message threads", threads, len(group), drawn))
        return found

    def _processors(self) -> list[Station]:
        """Those that are shared: by clients of crowded machines, or by all processes of a host."""
        shared, clients = self.p.processors, len(self.p.client_machine)
        if shared is None:
            return []
        if self.p.own_managers:
            self.processors[MANAGER] = {self._first_processor: 1.0}
            return [Station("threads of managers", shared.count)]
        in_turn = [k % shared.count for k in range(clients + len(self.p.nodes))]
        homes = shared.homes or in_turn
        of_clients, of_nodes = homes[:clients], homes[clients:]
        if SHARES_NONE in of_nodes:
            groups = len(set(shared.groups)) or shared.count
            self.processors[CLIENT] = {self._first_processor: 1.0}
            return [Station("processors of clients", shared.count // groups, groups)]
        if self._serve_themselves():
            self._crowd = clients / len(set(of_clients))
            return []
        self.on_host = True
        stations = [self._first_processor + home for home in homes]
        equal = dict.fromkeys(range(clients), 1.0 / clients)
        self.processors[CLIENT] = by_group(equal, stations[:clients])
        for role, nodes in self._nodes.items():
            self.processors[role] = by_group(nodes, stations[clients:])
        return [Station(f"processor {k}") for k in range(shared.count)]

    def _serve_themselves(self) -> bool:
        """Whether verbs are the clients' own loads and stores."""
        asked = ("snapshot-read", "read", "cas", "write", "bit")
        return self.p.one_sided and not any(self._cost(name, 0).receive_ps for name in asked)

    def station(self, role: str, direction: str) -> int:
        """The position of a role's adapters, ``out`` or ``in``: where most of it is."""
        shares = self._adapters[role]
        return max(shares, key=lambda g: shares[g]) + (direction == "in") * len(self._groups)

    def message(
        self,
        kind: str,
        sender: str,
        receiver: str,
        carried: Counts = NONE,
        work_ps: int = 0,
        each_ps: int = 0,
        *,
        posted: bool = True,
        together: float = 1.0,
    ) -> tuple[list[Visit], float]:
        """Visits, and seconds on the wire; the receiver works for ``work_ps``, and ``each_ps`` for
        each record carried. Not ``posted``: with others of its step, see ``post``. A look finds
        ``together`` of them."""
        other, net = self._distant(sender, receiver)
        costs = [(share, self._cost(kind, k), k) for k, share in carried.items()]

        def mean(part: Callable[[MessageCost, int], float]) -> tuple[float, float]:
            first = second = 0.0
            for share, cost, k in costs:
                seconds = part(cost, k) / PS
                first += share * seconds
                second += share * seconds * seconds
            return first, second

        def works(cost: MessageCost, k: int) -> float:
            return cost.receive_ps + work_ps + k * each_ps + self._found_ps(cost, together)

        inwards = len(self._groups)
        visits = self._on_threads(sender, other, mean(lambda c, _: c.send_ps)) if posted else []
        for group, share in self._adapters[sender].items():
            visits.append(Visit(group, net * share, *mean(lambda c, _: c.out_ps)))
        for group, share in self._adapters[receiver].items():
            visits.append(Visit(inwards + group, net * share, *mean(lambda c, _: c.in_ps)))
        visits += self._on_threads(receiver, other, mean(works))
        visits += self._on_threads(receiver, 1.0 - other, mean(lambda _, k: work_ps + k * each_ps))
        wire_s, _ = mean(lambda c, _: c.wire_ps - min(c.out_ps, c.in_ps))
        return [v for v in visits if v.often > 0 and v.service_s > 0], net * wire_s

    def _distant(self, sender: str, receiver: str) -> tuple[float, float]:
        """How likely both are different nodes, and on different machines."""
        ends = sender, receiver
        if ends not in self._same:
            nodes = same(self._nodes.get(sender, {}), self._nodes.get(receiver, {}))
            machines = same(self._machines[sender], self._machines[receiver])
            self._same[ends] = 1.0 - nodes, 1.0 - machines
        return self._same[ends]

    def _on_threads(self, role: str, often: float, service: tuple[float, float]) -> list[Visit]:
        if role not in self.processors:
            mean_s, square_s2 = service
            return [Visit(None, often, self._crowd * mean_s, self._crowd**2 * square_s2, role)]
        each = self.processors[role].items()
        return [Visit(k, often * share, *service, role) for k, share in each]

    def _found_ps(self, cost: MessageCost, together: float) -> float:
        """On a host: a look at the connection that ``together`` messages come over, of each."""
        shared = self.p.processors
        if shared is None or not self.on_host:
            return 0.0
        table = shared.connection_ps
        parts = range(1, len(table) + 1)
        connection_ps = float(np.interp(cost.parts * together, parts, table)) if table else 0.0
        return (shared.look_ps + connection_ps) / together

    def _cost(self, kind: str, carried: int) -> MessageCost:
        entries = self.p.costs[kind]
        return entries[min(carried, len(entries) - 1)]

    def branch(self, *messages: tuple[list[Visit], float], count: int = 1) -> Branch:
        """Messages one after another."""
        visits = tuple(visit for of_message, _ in messages for visit in of_message)
        return Branch(visits, sum(wire_s for _, wire_s in messages), count)

    def _posting(self, ps: float) -> Branch:
        """The client's thread is busy for so long."""
        return Branch(tuple(self._on_threads(CLIENT, 1.0, _always(ps)) if ps else ()))

    def _computing(self) -> Branch:
        """Its own work: on a thread of its own it counts as time, and not as messages' work."""
        if CLIENT in self.processors:
            return self._posting(self.p.compute_ps)
        return Branch((), self._crowd * self.p.compute_ps / PS)

    def often(self, chances: Chances) -> list[float]:
        """How often each stage of the cycle comes in a try, and in the pause after it."""
        p, aborted = self.p, chances.reads * (1.0 - chances.votes)
        # Copies of a snapshot serve until they are used up, or a try aborts.
        fetched = chances.commits / p.snapshot_every + 1.0 - chances.commits
        known = {
            "snapshot": fetched,
            "undoing": aborted,
            "thinking": 1.0 - chances.retry,
            "backing off": chances.retry,
            # A READ in between vouches for the bits before it.
            "bit known": 1.0 / p.send_queue if p.snapshot_every > p.send_queue else 0.0,
        }
        known |= dict.fromkeys(("reads", "bit", "posting the bit"), 1.0)
        known |= dict.fromkeys(("writes", "installing"), chances.commits)
        return [known.get(kind, chances.reads) for kind in self.kinds]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Of the stages of the cycle: ``locks`` of ``posting: locks``."""
        return tuple(stage.name.rpartition(": ")[2] for stage in self.cycle.stages)

    def _stages(self) -> list[Stage]:
        p = self.p
        found = self._one_sided() if p.one_sided else self._two_phase()
        pauses = (("thinking", p.think_ps), ("backing off", p.backoff_ps))
        return [*self._woken(found), *(Stage(name, (Branch((), ps / PS),)) for name, ps in pauses)]

    def _woken(self, stages: Sequence[Stage]) -> list[Stage]:
        """On shared processors a client that waits falls asleep, and is woken, once a stage. On a
        host servers sleep, too: see ``_wakings``."""
        shared = self.p.processors
        if shared is None or CLIENT not in self.processors:
            return list(stages)
        found = list[Stage]()
        for stage in stages:
            found.append(stage)
            server = ANSWERED_BY.get(stage.name)
            if server is None:
                continue
            if self.on_host:
                found += self._wakings(stage.name, server)
                continue
            visits = self._on_threads(CLIENT, 1.0, _always(shared.sleep_ps))
            branch = Branch(tuple(v for v in visits if v.service_s), shared.wake_ps / PS)
            found.append(Stage(f"waking: {stage.name}", (branch,)))
        return found

    def _wakings(self, name: str, server: str) -> list[Stage]:
        """Of the server by a request, where it sleeps, and of the client by the answer. Who is
        woken runs later where its processor is idle; who wakes it is busy with that after the
        message, so that nobody waits for it.
        """
        shared, found = self.p.processors, list[Stage]()
        assert shared is not None
        pays = _always(shared.sleep_ps + shared.spin_ps)
        for sleeper, waker in ((server, CLIENT), (CLIENT, server)):
            asleep, idle = self._rest.asleep[sleeper], self._rest.idle[sleeper]
            own = tuple(
                replace(visit, without_queueing=True)
                for visit in self._on_threads(sleeper, asleep, pays)
            )
            notifies = tuple(self._on_threads(waker, asleep, _always(shared.notify_ps)))
            late_s = asleep * idle * shared.wake_ps / PS
            found.append(Stage(f"waking {sleeper}: {name}", (Branch(own, late_s),)))
            found.append(
                Stage(f"notifying {sleeper}: {name}", (Branch(notifies),), asynchronous=True)
            )
        return found

    def _two_phase(self) -> list[Stage]:
        p, to, work = self.p, self.message, self.p.work
        servers, writes = len(p.storage), p.updates + p.inserts
        copies = 1 + p.replicas
        updated = binomial(p.updates, copies / servers)
        written = sum_of(updated, in_turn(p.inserts * copies, servers))
        taking_part = servers
        if not p.every_rm:
            share = 1.0 - written.get(0, 0.0)
            taking_part = max(round(servers * share), 1)
            written = {k: chance / share for k, chance in written.items() if k}
        asked = to("snapshot-request", CLIENT, TIMESTAMPS), to("snapshot", TIMESTAMPS, CLIENT)
        read = to("read", CLIENT, STORAGE, NONE, work.read_ps), to("record", STORAGE, CLIENT)
        stamped = (
            to("timestamp-request", MANAGER, TIMESTAMPS),
            to("timestamp", TIMESTAMPS, MANAGER),
        )
        prepared = (
            to("prepare", MANAGER, STORAGE, updated, 0, work.check_ps),
            to("vote", STORAGE, MANAGER),
        )
        installed = (
            to("install", MANAGER, STORAGE, written, 0, work.install_ps),
            to("installed", STORAGE, MANAGER),
        )
        undone = to("rollback", MANAGER, STORAGE, updated, 0, work.check_ps)
        votes = (self.branch(*stamped), self.branch(*prepared, count=taking_part))
        request = to("commit-request", CLIENT, MANAGER, {writes: 1.0})
        return [
            Stage("snapshot", (self.branch(*asked),)),
            Stage("reads", (self.branch(*read, count=p.reads),)),
            Stage("own work", (self._computing(),)),
            Stage("commit request", (self.branch(request),)),
            Stage("votes", votes),
            Stage("outcome", (self.branch(to("outcome", MANAGER, CLIENT)),)),
            Stage("installing", (self.branch(*installed, count=taking_part),), asynchronous=True),
            Stage("undoing", (self.branch(undone, count=taking_part),), asynchronous=True),
            Stage(
                "finishing", (self.branch(to("finished", MANAGER, TIMESTAMPS)),), asynchronous=True
            ),
        ]

    def _one_sided(self) -> list[Stage]:
        p, copies = self.p, 1 + self.p.replicas
        updates, writes = copies * p.updates, copies * (p.updates + p.inserts)
        locks = [self._verbs("cas", "cas-result", STORAGE, updates)] if updates else []
        posted = updates * self._cost("cas", 0).send_ps
        if p.skip_after_ps is not None:
            locks.append(self._verbs("claim", "claim-result", TIMESTAMPS, 1))
            posted += self._cost("claim", 0).send_ps
        bit = self.message("bit", CLIENT, TIMESTAMPS, posted=False)
        done = self.message("bit-done", TIMESTAMPS, CLIENT)
        return [
            *self._step("snapshot", "snapshot-read", "snapshot-data", TIMESTAMPS, 1),
            *self._step("reads", "read", "record", STORAGE, p.reads),
            Stage("own work", (self._computing(),)),
            Stage("posting: locks", (self._posting(posted if p.doorbell else 0),)),
            *([Stage("locks", tuple(locks))] if locks else []),
            *self._step("writes", "write", "write-done", STORAGE, writes),
            *self._step("undoing", "unlock", "unlock-done", STORAGE, max(updates - 1, 1)),
            Stage("posting the bit", (self._posting(self._cost("bit", 0).send_ps),)),
            Stage("bit", (self.branch(bit),), asynchronous=True),
            Stage("bit known", (self.branch(bit, done),)),
        ]

    def _step(self, name: str, request: str, answer: str, to: str, count: int) -> list[Stage]:
        """Requests that are posted together, and their answers; without a doorbell each is on its
        way while the next one is posted."""
        at_once_ps = count * self._cost(request, 0).send_ps if self.p.doorbell else 0
        return [
            Stage(f"posting: {name}", (self._posting(at_once_ps),)),
            Stage(name, (self._verbs(request, answer, to, count),)),
        ]

    def _verbs(self, request: str, answer: str, to: str, count: int) -> Branch:
        request_path = self.message(
            request, CLIENT, to, posted=not self.p.doorbell, together=self._together(count, to)
        )
        back = self.message(answer, to, CLIENT, together=self._together(count, CLIENT))
        return self.branch(request_path, back, count=count)

    def _together(self, count: int, role: str) -> float:
        """How many of ``count`` messages a process finds at once: one after another where it waits
        for them, all where it has others' to handle first."""
        return 1.0 + (count - 1.0) * (1.0 - self._rest.idle[role])


def _always(ps: float) -> tuple[float, float]:
    """Mean and square of a service that always takes as long."""
    return ps / PS, (ps / PS) ** 2

"""Commits between processes of one host: what their steps cost, and how they share processors.

From measured facts of single steps (``processes`` and ``engines.commits`` of a machine file) to the
same parameters that a cluster has: a message costs its sender, and its receiver, time of a
processor.

- Over shared memory, RSI's verbs are the client's own loads, stores and atomics: no server takes
  part. What a READ or WRITE of a block costs depends on how much memory the records take, as caches
  and the processor's tables of pages hold a part of it.
- Over other transports the engine's servers work for the verbs (UCX emulates them over TCP), and
  2PC's messages are messages. Each end's own time per message is what was measured of one more of
  many at a time; beside that, looks cost, and connections that messages came over.
- A line that another processor has changed comes from its cache: of the timestamps' bits one when
  a client looks at them, one when it sets its own.

Placement of a cluster's processes (clients, servers, others) on the processors of a host.
"""

import math
from dataclasses import dataclass

from ....topologies import Machine
from ....workloads import Workload
from ..._kernel import MessageCost, ProcessorSetup, RecordWork
from ...machine.message_costs import interpolated
from .checked_values import ps
from .facts import HostFacts
from .host_steps import BlockCosts, Ends, Region
from .messages import ANSWERS
from .sizes import WORD, Records, Sizes

# How the engine does it (engine_native/rsi): looks before it sleeps, with processors for all and
# without; blocks that a server keeps of what clients create, and of each client at the most.
SPINS, SPINS_CROWDED = 64, 1
INSERT_BYTES, INSERT_SLOTS_MAX, INSERT_SLOTS_MIN = 64 << 20, 4096, 4
CLOCKS = 2  # looks at the clock, of a transaction
# Linux 6.18, kernel/sched/fair.c: sysctl_sched_base_slice, scaled by the logarithm of the
# processors, of which so many count. It ends at a tick: that is the turn which is measured.
BASE_SLICE_S, CPUS_COUNTED = 0.7e-3, 8


@dataclass(frozen=True)
class Host:
    """A run on one host. ``storage``: servers with records; a timestamp server is another one."""

    clients: int
    storage: int
    transport: str
    one_sided: bool
    versions: int
    record_bytes: float
    vector_bytes: float
    cpus: int

    @property
    def direct(self) -> bool:
        """Whether verbs need no server."""
        return self.one_sided and self.transport == "shm"

    @property
    def active(self) -> int:
        """Processes that want a processor."""
        return self.clients if self.direct else self.clients + self.storage + 1

    @property
    def together(self) -> bool:
        """Whether clients run at the same time."""
        return min(self.clients, self.cpus) > 1

    @property
    def crowded(self) -> bool:
        """Whether some must wait for one."""
        return self.active > self.cpus

    @property
    def block_bytes(self) -> float:
        """Of a record, with all its versions."""
        return self.versions * (WORD + self.record_bytes)

    @property
    def insert_bytes(self) -> float:
        """Of all places that created records take in turn."""
        slots = INSERT_BYTES // (self.clients * self.block_bytes)
        slots = max(min(slots, INSERT_SLOTS_MAX), INSERT_SLOTS_MIN)
        return self.storage * self.clients * slots * self.block_bytes


def host_costs(
    host: Host,
    facts: HostFacts,
    sizes: Sizes,
    machine: Machine,
    workload: Workload,
    records: Records,
) -> tuple[dict[str, tuple[MessageCost, ...]], RecordWork, ProcessorSetup]:
    """Of all messages, in the order of ``sizes``; of a server's work on records; the processors."""
    blocks = BlockCosts(facts.engine.blocks, together=host.together)
    region = Region(machine, workload, blocks, records, host.insert_bytes)
    ends = Ends(facts.engine.transports[host.transport]) if not host.direct else None
    if not host.one_sided:
        assert ends is not None
        messages = {
            name: tuple(_message(ends, size) for size in of_type) for name, of_type in sizes.items()
        }
        (first,) = messages["snapshot-request"]
        begin_ps = first.send_ps + ps(_begin_s(facts, records))
        messages["snapshot-request"] = (first.replaced(send_ps=begin_ps),)
    elif ends is None:
        messages = _direct(host, facts, blocks, region, records, sizes)
    else:
        messages = _served(host, ends, facts, records, sizes)
    read_s = region.mean("get", host.block_bytes)
    insert_s = blocks.seconds("insert", host.block_bytes, region.insert_reach(host.block_bytes))
    install_s = insert_s * records.changed / records.written
    work = RecordWork(read_ps=ps(read_s), install_ps=ps(install_s))
    return messages, work, _processors(host, facts, ends)


def _processors(host: Host, facts: HostFacts, ends: Ends | None) -> ProcessorSetup:
    turn_s, alone_s = facts.processes.turn.value, facts.processes.give_way.value
    shared = ProcessorSetup(
        count=host.cpus,
        slice_ps=ps(base_slice_s(host.cpus)),
        tick_ps=max(ps(facts.processes.slice.value), 1),
        switch_ps=ps(max(turn_s - alone_s, 0.0)),
        yield_ps=ps(alone_s),
        gives_way=host.crowded and host.direct,
        homes=homes(
            host.clients,
            host.storage,
            1,
            host.cpus,
            served=not host.direct,
            manages=not host.one_sided,
        ),
    )
    if ends is None:
        return shared
    costs = ends.costs
    size = costs.sleeper_size.value
    operation = "get" if host.one_sided else "message"
    post_s = ends.total("message", "post", size, 1)
    one_way_s = post_s + ends.total("message", "serve", size, 1)
    # On one processor all comes in turn: the message, going to sleep, the other one's waking up.
    sleep_s = max(costs.sleeper_same.value - one_way_s - costs.arm.value, 0.0)
    other = costs.sleeper_other or costs.sleeper_same
    posted = costs.post_sleeper.value if costs.post_sleeper else post_s
    # What both ends take longer where their lines lie in another processor's caches: requests and
    # answers alternate, so that either end has both.
    across_s = 0.0
    if costs.post_across is not None and costs.serve_across is not None:
        across_s += max(costs.post_across.value - post_s, 0.0)
        across_s += max(costs.serve_across.value - (one_way_s - post_s), 0.0)
    interrupt_s = 0.0
    if costs.interrupted is not None:
        # Less what the sleeper does there in any case: it takes over, receives, answers (which
        # wakes who asked), sleeps, and the other one takes over again.
        takes_over_s = max(turn_s - alone_s, 0.0)
        own_s = one_way_s + max(posted - post_s, 0.0) + costs.arm.value + sleep_s + takes_over_s
        interrupt_s = max(costs.interrupted.value - own_s, 0.0)
    looks = (SPINS_CROWDED if host.crowded else SPINS) + 1
    return shared.replaced(
        look_ps=ps(ends.costs.look.value),
        connection_ps=[*map(ps, ends.connection(operation, "serve", size))],
        spin_ps=ps(looks * costs.look.value + costs.arm.value),
        sleep_ps=ps(sleep_s),
        notify_ps=ps(max(posted - post_s, 0.0)),
        across_ps=ps(across_s),
        interrupt_ps=ps(interrupt_s),
        wake_ps=ps(max(other.value - one_way_s - sleep_s - across_s, 0.0)),
    )


def base_slice_s(cpus: int) -> float:
    """Linux's slice of a process on a host with so many processors."""
    return BASE_SLICE_S * (1 + int(math.log2(min(cpus, CPUS_COUNTED))))


def _begin_s(facts: HostFacts, records: Records) -> float:
    """A client's own time for each transaction: it draws records, looks at the clock and at its
    timestamps, and counts what it did."""
    drawn = records.reads + records.writes - records.updates
    engine, clock_s = facts.engine, facts.processes.clock.value
    note_s = engine.note.value if engine.note is not None else 0.0
    return drawn * engine.key_draw.value + CLOCKS * clock_s + engine.timestamp.value + note_s


def _direct(
    host: Host, facts: HostFacts, blocks: BlockCosts, region: Region, records: Records, sizes: Sizes
) -> dict[str, tuple[MessageCost, ...]]:
    """All is the client's own time; answers cost nothing."""
    size = host.block_bytes
    lines_s = 0.0
    if (line := facts.processes.line) is not None:
        # Others' lines, of those that run at the same time.
        lines_s = (min(host.clients, host.cpus) - 1) * line.value
    get_s = region.mean("get", size)
    # They were measured one after the other: on a restless host one may be more than both.
    update_s = max(region.mean("update", size) - get_s, 0.0)
    insert_s = blocks.seconds("insert", size, region.insert_reach(size))
    machine = facts.processes
    lock_s = min(machine.word_add.value, update_s)
    updates = records.updates
    written_s = updates * max(update_s - lock_s, 0.0) + (records.writes - updates) * insert_s
    cached = [(8.0, machine.word_get.value), (8192.0, machine.words_get.value)]
    words_s = interpolated(cached, host.vector_bytes)
    begin_s = words_s + _begin_s(facts, records)
    seconds = {
        "snapshot-read": begin_s + lines_s,
        "read": get_s,
        "cas": lock_s,
        "write": written_s / records.writes,
        "unlock": machine.word_add.value,
        "bit": machine.word_add.value + lines_s,
        "claim": machine.word_add.value + lines_s,
        "break": machine.word_add.value,
    }
    return {name: (MessageCost(send_ps=ps(seconds.get(name, 0.0))),) for name in sizes}


def _served(
    host: Host, ends: Ends, facts: HostFacts, records: Records, sizes: Sizes
) -> dict[str, tuple[MessageCost, ...]]:
    """Verbs that a server works for: by the client posted and completed, by the server served."""
    block = host.block_bytes

    def verb(operation: str, size: float) -> tuple[float, float, float]:
        post, serve, complete = (
            ends.each(operation, part, size) for part in ("post", "serve", "complete")
        )
        return post, serve, complete

    def sum_of(*parts: tuple[float, float, float]) -> tuple[float, float, float]:
        post, serve, complete = map(sum, zip(*parts, strict=True))
        return post, serve, complete

    # All blocks of a server are flushed together: a share of that is each one's.
    each_server = max(records.writes / host.storage, 1.0)
    put = tuple(
        ends.less_polling("put", part, block, each_server, PARTS["write"]) / each_server
        for part in ("post", "serve", "complete")
    )
    word, cas, add = verb("get", WORD), verb("compare-and-swap", WORD), verb("add", WORD)
    verbs = {
        "snapshot-read": verb("get", host.vector_bytes),
        "read": sum_of(verb("get", block), word),  # and its first word again
        "cas": cas,
        "write": put,
        "unlock": verb("put", 2 * WORD),
        "bit": add,
        "claim": cas,
        "break": cas,
    }
    begin_s = _begin_s(facts, records)
    messages: dict[str, tuple[MessageCost, ...]] = {}
    for name, answer in ANSWERS.items():
        if name not in sizes:
            continue
        post_s, serve_s, complete_s = verbs[name]
        if name == "snapshot-read":
            post_s += begin_s
        parts = PARTS.get(name, 1)
        messages[name] = (MessageCost(send_ps=ps(post_s), receive_ps=ps(serve_s), parts=parts),)
        messages[answer] = (MessageCost(receive_ps=ps(complete_s), parts=parts),)
    # The signaled one is flushed: what one takes longer than another one among many. Its client
    # posts that too, and completes both.
    flushed = [ends.less_polling("add", part, WORD, 1) for part in ("post", "serve", "complete")]
    post_s, serve_s = (
        max(both - single, 0.0) for both, single in zip(flushed[:2], add[:2], strict=True)
    )
    messages["bit-done"] = (MessageCost(send_ps=ps(serve_s), receive_ps=ps(post_s + flushed[2])),)
    for name in sizes:
        if name not in messages:
            messages[name] = tuple(_message(ends, size) for size in sizes[name])
    return {name: messages[name] for name in sizes}


# Verbs of more than one message each way: a block and its first word, a word and its flush.
PARTS = {"read": 2, "write": 2, "unlock": 2}


def _message(ends: Ends, size: float) -> MessageCost:
    return MessageCost(
        send_ps=ps(ends.each("message", "post", size)),
        receive_ps=ps(ends.each("message", "serve", size)),
    )


def homes(
    clients: int, storage: int, others: int, cpus: int, *, served: bool, manages: bool = False
) -> tuple[int, ...]:
    """The processor of each process: clients, then storage servers, then the others (timestamps).

    Where clients work alone (``served`` is False) they take processors in turn. Else about as much
    is to be done by all storage servers together as by all clients, and by the timestamp server an
    eighth of it, or three quarters where it ``manages`` transactions: the largest part first, each
    goes where least is to be done.
    """
    nodes = storage + others
    if not served:
        return tuple(place % cpus for place in range(clients + nodes))
    # In parts of a whole number, so that equal ones are equal.
    part = clients * storage * max(others, 1)
    parts = [part * 8 // clients] * clients + [part * 8 // storage] * storage
    parts += [part * (6 if manages else 1) // max(others, 1)] * others
    load, found = [0] * cpus, [0] * len(parts)
    # Of equal parts servers come first: they are fewer.
    for place in sorted(range(len(parts)), key=lambda p: (-parts[p], p < clients, p)):
        found[place] = min(range(cpus), key=lambda cpu: (load[cpu], cpu))
        load[found[place]] += parts[place]
    return tuple(found)

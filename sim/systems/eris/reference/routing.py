"""ERIS's command routing in plain SimPy: the specification of the compiled model, and its oracle.

A worker's loop, the incoming double buffer with its descriptor, and back-pressure, by key and for
closed clients. ``streams``: of each worker's commands, then, where others have turns on their
cores, of these, then, where their pace changes, of that.
Same costs and streams give the same trace as ``../kernel/routing.hpp``, which also has scans,
answers, balancing and clients that think or arrive.
"""

from bisect import bisect_right
from collections.abc import Generator, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
import simpy

from ...._kernel import ErisDemands, ErisMachine, Stream
from ....kernel.plain_fields import plain
from ....machine.disturbances.reference.disturbances import Disturbances
from ....machine.reference.clock import run_until
from ....machine.reference.core import Core, CoreWork
from ....machine.reference.interconnect import Crossing, Interconnect, MemoryPaths, Routes
from ....machine.reference.memory_controller import LoadCurve, MemoryController
from ....machine.reference.servers import rounded
from ..routing import BATCH_PER_TARGET_MIN
from .worker import Batch, Counts, Incoming, Worker

SPREAD = 8  # points by which the latencies of a batch are represented

Steps = Generator[simpy.Event, Any, None]


class FromMemory(NamedTuple):
    """Of a phase, lines at the home's controller, and those of them that are written."""

    lines: float = 0.0
    written: float = 0.0


NOTHING = FromMemory()


class ErisRoutingReference:
    """Workers that route commands to each other; ``trace`` has (time, kind, worker, other, amount).

    Kinds: ``round`` begins (amount: commands waiting), ``issued``, ``copied`` (a flush has
    arrived), ``executed``.
    """

    def __init__(
        self,
        machine: ErisMachine,
        demands: ErisDemands,
        sums: Sequence[float],
        operations: int,
        streams: Sequence[Stream],
        disturbances: Disturbances | None = None,
    ) -> None:
        self.env, self.events, self.now_ps = simpy.Environment(), 0, 0
        self.m, self.d = plain(machine), plain(demands)
        self.sums, self.operations = list(sums), operations
        self.count = len(self.m.node)
        self.keeps_parts = self.m.batch >= BATCH_PER_TARGET_MIN * self.count
        # Commands under a header that is no part of what was made together.
        self.whole = self.m.buffer_commands
        if self.keeps_parts:
            self.whole = min(self.whole, self.m.batch, self.m.round_commands)
        m = self.m
        self.cores = [Core(threads) for threads in np.bincount(m.core).tolist()]
        self.memory = [
            MemoryController(*facts)
            for facts in zip(m.memory_line_ps, m.memory_write_ps, m.memory_idle_ps, strict=True)
        ]
        self.curve = LoadCurve(m.load, m.load_ratio)
        routes = Routes(m.entering, m.predecessor, m.vertices)
        self.links = Interconnect(m.link_data_ps, m.link_request_ps, routes)
        self.paths = MemoryPaths(m.line_data_ps, m.line_control_ps, m.line_bytes)
        self.workers = [
            Worker(k, self.count, operations, stream) for k, stream in enumerate(streams)
        ]
        self.disturbances = disturbances or Disturbances()
        self.trace: list[tuple[int, str, int, int, int]] = []
        self.drawn = self.done = 0  # commands, since the start
        self.start_counting()
        for worker in self.workers:
            self.env.process(self.loop(worker))

    @property
    def now(self) -> int:
        """The time reached, in whole picoseconds."""
        return int(self.env.now)

    def run(self, until_ps: int) -> bool:
        """Handles what comes before that time."""
        self.events += run_until(self.env, until_ps)
        self.now_ps = until_ps
        return True

    def start_counting(self) -> None:
        """Forgets what was counted; what is under way goes on."""
        now = self.now
        self.counts = Counts(self.operations, self.count)
        for core in self.cores:
            core.start_counting(now)
        for controller in self.memory:
            controller.start_counting(now)
        self.links.start_counting(now)
        for w in self.workers:
            w.asleep, w.asleep_since = 0, now
            w.time.start_counting(now)
            self.core(w).held += w.time.held_left(now)

    def loop(self, w: Worker) -> Steps:
        """Round after round."""
        while True:
            yield from self.stopped(w)
            idle = True
            w.full_targets = []
            self.counts.rounds += 1
            old = w.incoming[w.writable]
            self.note("round", w.index, 0, old.offset * self.m.command_bytes)
            if old.offset:
                idle = False
                yield from self.receive(w, old)
            elif looped := self.m.round_ps[self.node(w)]:
                yield self.phase(w, "receive", CoreWork(looped))
            made = yield from self.work(w, old if old.batches else None)
            yield from self.flush_rest(w)
            idle = idle and not made
            again = not idle or w.incoming[w.writable].offset > 0
            for to in w.full_targets:
                wanted = min(sum(w.out[to]), self.m.buffer_commands)
                again = again or self.has_room(to, wanted)
            if again:
                yield self.env.timeout(0)
                continue
            for to in w.full_targets:
                if w.index not in self.workers[to].waiters:
                    self.workers[to].waiters.append(w.index)
            w.wakes, w.asleep_since = self.env.event(), self.now
            yield w.wakes

    def pace(self, who: Sequence[int], factor: float) -> None:
        """From now on these workers take so many times as long; without end: they stop, each before
        its next round, or the next batch that it would execute or make."""
        for w in (self.workers[k] for k in who):
            w.stops = factor == inf
            if w.stops:
                continue
            w.pace = factor
            if w.goes_on is not None:
                w.goes_on.succeed()
                w.asleep, w.goes_on = w.asleep_until(self.now), None

    def stopped(self, w: Worker) -> Steps:
        """Until a worker that has to stop may go on."""
        while w.stops:
            w.goes_on, w.asleep_since = self.env.event(), self.now
            yield w.goes_on

    def wake(self, w: Worker, delay: int) -> None:
        """Lets a worker that sleeps begin a round after ``delay``."""
        if w.wakes is not None:
            w.asleep = w.asleep_until(self.now)
            event, w.wakes = w.wakes, None
            event._ok, event._value = True, None  # as Event.succeed, but later
            self.env.schedule(event, delay=delay)

    def receive(self, w: Worker, old: Incoming) -> Steps:
        """Swaps the buffers, waits for the old one's writers, takes its commands."""
        old.active = False
        w.writable ^= 1
        new = w.incoming[w.writable]
        new.active, new.offset, new.writers, new.waits = True, 0, 0, 0
        for waiting in w.waiters:
            self.wake(self.workers[waiting], self.handed(waiting, w.index))
        w.waiters = []
        yield self.env.timeout(w.paced(rounded(self.m.swap_ps[self.node(w)])))
        yield from self.await_writers(w, old)
        # First the core waits for what tells it of the others' flushes.
        held, commands, parts, waits = 0.0, 0, 0, old.waits
        for batch in old.batches:
            count = sum(batch.counts)
            commands += count
            lines = count * self.m.lines_per_command
            held += self.line_slots(w.index, batch.source, lines, self.m.read_slots)
            here = sum(0 < each < self.whole for each in batch.counts)
            parts += here
            waits += here * self.lines_awaited(self.m.part_waits, w.index, batch.source)
        core = self.m.round_ps[self.node(w)] + commands * self.m.receive_ps[self.node(w)]
        core += parts * self.m.part_ps[self.node(w)]
        copied = self.end_of_handing(w, core, held) + w.paced(waits)
        self.counts.steps_ps["receive"][w.index] += copied - self.now
        yield self.env.timeout(copied - self.now)

    def await_writers(self, w: Worker, old: Incoming) -> Steps:
        """Until all who reserved room in ``old`` have copied."""
        if old.writers:
            w.writers_done = self.env.event()
            yield w.writers_done

    def work(self, w: Worker, taken: Incoming | None) -> Generator[simpy.Event, Any, bool]:
        """Executes a batch, makes a batch, in turn; whether any was made."""
        to_make = self.m.round_commands
        if w.first_round:
            w.first_round = False
            to_make = int(to_make * w.stream.uniform()) + 1
        w.stuck, makes, any_made = False, False, False
        to_do = (
            [sum(counts) for counts in zip(*(b.counts for b in taken.batches), strict=True)]
            if taken
            else []
        )
        w.taken, w.to_do = taken, sum(to_do)
        at, of_batch = 0, 0
        operation = 0
        while True:
            yield from self.stopped(w)
            makes = not makes
            may_make = to_make > 0 and not w.stuck
            if taken is not None and (not makes or not may_make):
                while operation < self.operations and not to_do[operation]:
                    operation, at, of_batch = operation + 1, 0, 0
                if operation == self.operations:
                    taken.batches = []
                    taken, w.taken, makes = None, None, False
                    continue
                count = min(to_do[operation], self.m.batch)
                yield self.execution(w, operation, count)
                to_do[operation] -= count
                w.to_do -= count
                self.counts.executed[operation, w.index] += count
                self.done += count
                self.note("executed", w.index, operation, count)
                at, of_batch = self.record_latencies(taken, operation, count, at, of_batch)
            elif may_make:
                made = yield from self.make(w, to_make, taken)
                to_make -= made
                any_made = any_made or made > 0
            else:
                return any_made

    def execution(self, w: Worker, operation: int, count: int) -> simpy.Event:
        """Walks a batch of ``count`` commands, whose misses overlap."""
        k = operation * self.count + w.index
        slots = min(self.d.slots[k], float(count) * self.core(w).threads)
        waits = 0.0
        if self.d.lines[k] > 0:
            each = self.memory_latency(w) / slots
            if self.d.line_max_ps[k] > 0:
                each = min(each, self.d.line_max_ps[k])
            waits = self.d.lines[k] * each
        memory = FromMemory(count * self.d.memory_lines[k], count * self.d.written[k])
        work = CoreWork(
            count * self.d.core_ps[k],
            count * (self.d.hit_ps[k] + waits),
            self.m.batch_ps[self.node(w)],
        )
        return self.phase(w, "walk", work, memory)

    def record_latencies(
        self, taken: Incoming, operation: int, count: int, at: int, of_batch: int
    ) -> tuple[int, int]:
        """Commands of batches are done in their order; those of a batch were handed over evenly
        between its two times."""
        now = self.now
        while count:
            batch = taken.batches[at]
            part = left = min(count, batch.counts[operation] - of_batch)
            least, most = now - batch.last, now - batch.first
            for k in range(SPREAD if part else 0):
                share = left // (SPREAD - k)
                point = least + (most - least) * (2 * k + 1) // (2 * SPREAD)
                self.counts.latency[operation].add(point, share)
                left -= share
            count -= part
            of_batch += part
            if of_batch == batch.counts[operation]:
                at, of_batch = at + 1, 0
        return at, of_batch

    def make(
        self, w: Worker, most: int, taken: Incoming | None
    ) -> Generator[simpy.Event, Any, int]:
        """Draws up to a batch of commands into outgoing buffers; flushes those that are full.

        The client hands them over together, as it begins with them.
        """
        behind = max(taken.offset if taken else 0, w.incoming[w.writable].offset)
        w.stuck = 2 * behind > self.m.incoming_commands
        since, made, full = self.now, 0, None
        while not w.stuck and (left := min(most, self.m.batch) - made) > 0:
            some, full = self.draw_some(w, left, since)
            if some:
                yield self.phase(w, "issue", CoreWork(some * self.m.issue_ps[self.node(w)]))
                made += some
                self.counts.made += some
                self.note("issued", w.index, -1 if full is None else full, some)
            if full is not None:
                sent = yield from self.flush(w, full)
                if not sent and w.pending is not None:
                    w.stuck = True  # without room for a command in hand no other can be made
        return made

    def draw_some(self, w: Worker, most: int, since: int) -> tuple[int, int | None]:
        """Puts up to so many into outgoing buffers: how many, and which buffer is full then."""
        made = 0
        while made < most:
            if w.pending is None:
                w.pending = self.draw(w)
            operation, to = divmod(w.pending, self.count)
            if sum(w.out[to]) >= self.m.buffer_commands:
                return made, to
            if not sum(w.out[to]):
                w.first[to] = since
            w.out[to][operation] += 1
            w.parts[to][since, operation] = w.parts[to].get((since, operation), 0) + 1
            w.last_made = since
            w.pending, made = None, made + 1
            self.drawn += 1
            if sum(w.out[to]) == self.m.buffer_commands and not self.m.flushed_late:
                return made, to
        return made, None

    def draw(self, w: Worker) -> int:
        """A cell of the table: operation and target."""
        return bisect_right(self.sums, w.stream.uniform()) - 1

    def flush(self, w: Worker, to: int) -> Generator[simpy.Event, Any, bool]:
        """Copies an outgoing buffer into its target's incoming one; False where it has no room."""
        target, count = self.workers[to], sum(w.out[to])
        buffer = yield from self.reserve(w, to, count)
        if buffer is None:
            self.counts.full += 1
            w.full_targets.append(to)
            return False
        here, there, lines = self.node(w), self.m.node[to], count * self.m.lines_per_command
        core = self.m.flush_ps[here] + count * self.m.copy_ps[here]
        held = self.line_slots(w.index, to, lines, self.m.stream_slots)
        copied = self.end_of_handing(w, core, held)
        copied = self.hand_over(here, there, lines, copied)
        w.time.over = copied
        yield self.flushing(w, copied - self.now)
        if self.keeps_parts:
            for (since, operation), part in w.parts[to].items():
                counts = [part if o == operation else 0 for o in range(self.operations)]
                buffer.batches.append(Batch(w.index, counts, since, since))
        else:
            last = max(w.first[to], w.last_made)
            buffer.batches.append(Batch(w.index, w.out[to], w.first[to], last))
        waits = self.lines_awaited(self.m.read_waits, to, w.index)
        buffer.waits = max(buffer.waits, waits)
        w.out[to], w.parts[to] = [0] * self.operations, {}
        self.note("copied", w.index, to, count)
        yield self.flushing(w, w.paced(self.handed(w.index, to)))
        buffer.writers -= 1
        self.counts.flushes += 1
        self.counts.flushed += count
        if target.writers_done is not None and not buffer.active and not buffer.writers:
            target.writers_done.succeed()
            target.writers_done = None
        self.wake(target, 0)
        return True

    def reserve(
        self, w: Worker, to: int, count: int
    ) -> Generator[simpy.Event, Any, Incoming | None]:
        """The target's buffer, with room and a writer more; None where it has no room.

        One exchange of the descriptor reserves the room; it fails if the word has changed since it
        was read, a line's way before, or where it comes to be written, just now.
        """
        target = self.workers[to]
        while True:
            buffer = target.incoming[target.writable]
            read = buffer.word
            yield self.flushing(w, w.paced(self.handed(w.index, to)))
            if self.m.exchanged_at_once:
                buffer = target.incoming[target.writable]
            elif buffer.word != read:
                self.counts.retries += 1
                continue
            break
        if not self.has_room(to, count):
            return None
        buffer.offset += count
        buffer.writers += 1
        return buffer

    def flush_rest(self, w: Worker) -> Steps:
        """All that outgoing buffers hold, the next worker's first."""
        for k in range(1, self.count + 1):
            to = (w.index + k) % self.count
            if sum(w.out[to]):
                yield from self.flush(w, to)

    def has_room(self, to: int, commands: int) -> bool:
        """Whether so many fit into the writable buffer."""
        target = self.workers[to]
        return bool(target.incoming[target.writable].offset + commands <= self.m.incoming_commands)

    def flushing(self, w: Worker, time_ps: int) -> simpy.Event:
        """A part of a flush, as an event."""
        self.counts.steps_ps["flush"][w.index] += time_ps
        return self.env.timeout(time_ps)

    def phase(
        self, w: Worker, step: str, work: CoreWork, memory: FromMemory = NOTHING
    ) -> simpy.Event:
        """A phase of a worker, as an event."""
        time_ps = self.end_of_phase(w, work, memory) - self.now
        self.counts.steps_ps[step][w.index] += time_ps
        return self.env.timeout(time_ps)

    def hand_over(self, writer: int, reader: int, lines: float, done: int) -> int:
        """When the last of lines is across, no earlier than ``done``: they come to be written, and
        go back filled. Nobody waits for what is written back, nor for the memory.
        """
        if writer == reader:
            return done
        m, now = self.m, self.now
        messages, passed = lines * m.handed_messages, m.handed_passed_messages
        written = lines * m.handed_written
        fetched = Crossing(lines * m.handed_fetched, messages, m.handed_passed, passed)
        done = self.links.cross(now, reader, writer, fetched, done)
        filled = Crossing(lines, messages, lines * m.handed_back, passed)
        done = self.links.cross(now, writer, reader, filled, done)
        moved = lines * m.handed_read + written
        if moved > 0:
            self.memory[m.home[reader]].serve(now, moved, written)
        return done

    def end_of_handing(self, w: Worker, core: float, held: float) -> int:
        """When a phase that hands over lines is over, which hold so much of a core's slots."""
        if self.m.handed_additive:
            return self.end_of_phase(w, CoreWork(held=held, separate=core))
        return self.end_of_phase(w, CoreWork(core, held))

    def end_of_phase(self, w: Worker, work: CoreWork, memory: FromMemory = NOTHING) -> int:
        """When a phase of a worker is over."""
        now, node, work = self.now, self.node(w), work.times(w.pace)
        alone, done = self.core(w).begin(now, work)
        w.time.begin(now, alone, work.held)
        if memory.lines > 0:
            controller = self.memory[self.m.home[node]]
            done = max(done, controller.serve(now, memory.lines, memory.written))
            # What goes back to the node's own memory asks nobody.
            own = self.m.home[node] == node
            asked = memory.lines - memory.written if own else memory.lines
            done = self.links.use_memory(now, self.paths, node, asked, done)
        w.time.over = self.disturbances.stretched_ps(w.index, now, done)
        return w.time.over

    def memory_latency(self, w: Worker) -> float:
        """Of a line from home's memory, at the load of the last window."""
        controller = self.memory[self.m.home[self.node(w)]]
        return float(self.m.memory_idle_ps[self.node(w)] + controller.wait_ps(self.now, self.curve))

    def line_slots(self, worker: int, other: int, lines: float, slots: Sequence[float]) -> float:
        """Slots of a core for lines that come from another worker's, so many at a time."""
        at_a_time = slots[int(self.m.node[worker])]
        return lines * self.handed(worker, other) / at_a_time

    def lines_awaited(self, waits: float, worker: int, other: int) -> int:
        """How long a worker waits for lines of another's, one after the other."""
        return rounded(waits * self.handed(worker, other))

    def handed(self, worker: int, other: int) -> int:
        """Latency of a line that one worker gets from another."""
        if worker == other and self.m.own_cached:
            return 0
        one, two = self.m.node[worker], self.m.node[other]
        return int(self.m.handed_ps[one * len(self.m.home) + two])

    def core(self, w: Worker) -> Core:
        """The worker's core."""
        return self.cores[int(self.m.core[w.index])]

    def node(self, w: Worker) -> int:
        """Position of the worker's node."""
        return int(self.m.node[w.index])

    def note(self, kind: str, worker: int, other: int, amount: int) -> None:
        """One row of the trace."""
        self.trace.append((self.now, kind, worker, other, amount))

"""Two threads that take turns on a core: what becomes of their loop, step by step."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np


@dataclass(frozen=True)
class Loop:
    """The loop of a worker of ERIS, in any unit of time.

    Per command: ``issue`` and ``receive``, which are instructions alone; ``walk``, instructions,
    and ``walked``, how long that takes alone. Of a flush: ``way`` of a line that is read and of one
    that is written, between them ``flush`` and ``copy`` (per command), instructions; ``handed`` per
    command, how long it takes alone. A round makes ``round_commands`` for ``targets`` whose buffers
    hold ``buffer`` of them, and executes as many, ``batch`` at a time.
    """

    issue: float
    receive: float
    walk: float
    walked: float
    way: float
    flush: float
    copy: float
    handed: float
    round_commands: int
    targets: int
    buffer: int
    batch: int

    def phases(self, rng: np.random.Generator) -> Iterator[tuple[float, float, int]]:
        """Instructions, time alone, and commands executed, of one phase after the other."""
        held = np.zeros(self.targets, dtype=int)
        while True:
            commands = self.round_commands
            to = rng.integers(self.targets, size=commands).tolist()
            yield self.receive * commands, self.receive * commands, 0
            to_make, to_do = commands, commands
            while to_make or to_do:
                if to_make:
                    made = 0
                    full = None
                    while made < min(to_make, self.batch) and full is None:
                        target = to[to_make - 1 - made]
                        held[target] += 1
                        made += 1
                        full = target if held[target] == self.buffer else None
                    to_make -= made
                    yield self.issue * made, self.issue * made, 0
                    if full is not None:
                        yield from self.flushed(held, full)
                if to_do:
                    done = min(to_do, self.batch)
                    to_do -= done
                    yield self.walk * done, self.walked * done, done
            for target in np.flatnonzero(held):
                yield from self.flushed(held, int(target))

    def flushed(self, held: np.ndarray, target: int) -> Iterator[tuple[float, float, int]]:
        """The phases of a flush."""
        count, held[target] = int(held[target]), 0
        core = self.flush + self.copy * count
        yield 0.0, self.way, 0
        yield core, max(core, self.handed * count), 0
        yield 0.0, self.way, 0

    def alone(self, seed: int, rounds: int = 20) -> float:
        """Commands per unit of time of a thread that nobody holds up."""
        return self._rate([self.phases(np.random.default_rng(seed))], rounds)

    def together(self, seed: int, rounds: int = 40) -> float:
        """Commands per unit of time of each of two threads on one core."""
        streams = np.random.default_rng(seed).spawn(2)
        return self._rate([self.phases(one) for one in streams], rounds)

    def _rate(self, threads: list[Iterator[tuple[float, float, int]]], rounds: int) -> float:
        """Instructions of a phase wait for those before them, first come first served."""
        free, now, done = 0.0, 0.0, 0
        half = self.round_commands * self.walked * 0.37  # they do not begin together
        ends = [(k * half, k) for k in range(len(threads))]
        while done < rounds * self.round_commands:
            now, k = heappop(ends)
            core, alone, executed = next(threads[k])
            end = now + alone
            if core:
                free = max(free, now) + core
                end = max(end, free)
            done += executed
            heappush(ends, (end, k))
        return done / now / len(threads)

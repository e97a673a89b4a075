"""The model of the operating system's scheduler against real threads, as they see it themselves.

Threads that compute, or compute and sleep, tell by getcpu on which processors they run
(``os_scheduler/threads_seen.c``): on this host, and with ``--guest`` in a booted guest of four
nodes with two processors each, where balancing goes between nodes. The model plays the same. A line
each: what threads did, against what the model says they do.

This host should have nothing else to do. Where it may, the program asks for priority; figures of
threads that have not had their processors are marked ``busy``. A guest's clock goes on while its
processors wait for the host's: there, where threads end and how often they moved between nodes is
compared, and no time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from numatwin.inputs import InputError
from numatwin.sim._kernel import OsScheduler, OsSetup
from numatwin.sim.machine.os_scheduler import processors_of, scheduler_of
from numatwin.topologies import build_machine, load_machine
from numatwin.topologies.emulator import guest_machine, run_in_guest
from numatwin.topologies.emulator.command_line import guest_slit
from numatwin.topologies.importers import import_machine

HERE = Path(__file__).parent
US, MS = 1_000_000, 1_000_000_000  # ps
START_US = 50  # what a new thread runs until it waits for the others to be there
GUEST = "opteron-4n"
GUEST_PROCESSORS = 8


@dataclass(frozen=True)
class Scene:
    """``threads`` that run for ``run_us`` and sleep for ``sleep_us`` in turn (0: never), for ``ms``
    in all, on the processors ``first``, and from ``after_ms`` on on all (None: on all at once)."""

    threads: int
    ms: int
    run_us: int = 0
    sleep_us: int = 0
    first: tuple[int, ...] | None = None
    after_ms: int = 0

    @property
    def arguments(self) -> list[str]:
        """Of ``threads_seen``."""
        first = "-" if self.first is None else ",".join(map(str, self.first))
        numbers = (self.threads, self.ms, self.run_us, self.sleep_us)
        then = [] if self.first is None else ["-", str(self.after_ms)]
        return [*map(str, numbers), first, *then]


@dataclass(frozen=True)
class Seen:
    """Of each thread: its time on processors, turns, moves to another processor and to another
    node, and the processor it was on last."""

    used_us: tuple[float, ...]
    turns: tuple[int, ...]
    moves: tuple[int, ...]
    far_moves: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def turn_ms(self) -> float:
        """How long a turn is on average."""
        return sum(self.used_us) / 1000 / sum(self.turns)

    def most_together(self) -> int:
        """Threads on one processor at last, where most are."""
        return max(map(self.last.count, self.last))


BUSY = 0.95  # threads that have had less of a processor shared it with others


def host_scenes(cpus: int) -> dict[str, Scene]:
    """On a host with so many processors."""
    return {
        "one computes": Scene(1, 1000),
        "one a processor": Scene(cpus, 1000),
        "one more than processors": Scene(cpus + 1, 3000),
        "two a processor": Scene(2 * cpus, 2000),
        "two a processor, first all on one": Scene(2 * cpus, 2000, first=(0,), after_ms=500),
        "one sleeps now and then": Scene(1, 1000, run_us=100, sleep_us=300),
    }


GUEST_SCENES = {
    "eight compute": Scene(8, 2000),
    "eight, of node 0, then of all": Scene(8, 4000, first=(0, 1), after_ms=1000),
    "sixteen, of node 0, then of all": Scene(16, 6000, first=(0, 1), after_ms=1000),
    "two sleep now and then": Scene(2, 2000, run_us=200, sleep_us=800),
}


# -- what the model says --------------------------------------------------------------------------


def play(setup: OsSetup, scene: Scene) -> Seen:
    """The same threads by the model; one more, number ``scene.threads``, starts and wakes them."""
    played = _Played(setup, scene)
    played.start()
    played.run()
    return Seen(
        tuple(ps / US for ps in played.used),
        tuple(played.turns),
        tuple(played.moves),
        tuple(played.far_moves),
        tuple(played.last),
    )


class _Played:
    """One scene; times in ps."""

    def __init__(self, setup: OsSetup, scene: Scene) -> None:
        self.setup, self.scene = setup, scene
        threads, cpus = scene.threads, range(len(setup.core))
        begin, own = [0] * (threads + 1), [list(cpus)] * (threads + 1)
        self.os = OsScheduler(setup.replaced(begin=begin, own=own))
        self.os.use(0, list(scene.first or cpus))
        self.on = [-1] * threads
        self.last, self.ran_last = [-1] * threads, [-1] * len(cpus)
        self.used, self.left = [0] * threads, [scene.run_us * US or 1 << 60] * threads
        self.turns, self.moves, self.far_moves = ([0] * threads for _ in range(3))
        self.wakes: dict[int, int] = {}
        self.now = 0

    def start(self) -> None:
        """Each new thread runs a little, then sleeps; then all are woken at once."""
        main = self.scene.threads
        self.os.wake(0, main)
        for thread in range(main):
            self.os.wake(self.now, thread, self.os.on(main))
            self.now += START_US * US
            while self.os.on(thread) < 0:  # it waits behind the one that starts all
                self.os.tick(self.os.next_tick(self.now) or 0)
                self.now = (self.os.next_tick(self.now) or 0) + START_US * US
            self.last[thread] = self.os.on(thread)
            self.os.sleep(self.now, thread)
        self.now = (self.now // MS + 50) * MS
        waker = self.os.on(main)
        for thread in range(main):
            self.os.wake(self.now, thread, waker)
        self.os.sleep(self.now, main)
        self.last = [-1] * main
        self._look()

    def run(self) -> None:
        """Until the scene is over."""
        scene, begin = self.scene, self.now
        end = begin + scene.ms * MS
        opens = begin + scene.after_ms * MS if scene.first is not None else None
        while True:
            tick = self.os.next_tick(self.now)
            at = min(
                [end, *self.wakes.values()]
                + [time for time in (tick, opens) if time is not None]
                + [self.now + self.left[k] for k, cpu in enumerate(self.on) if cpu >= 0]
            )
            for k, cpu in enumerate(self.on):
                if cpu >= 0:
                    self.used[k] += at - self.now
                    self.left[k] -= (at - self.now) * (scene.run_us > 0)
            self.now = at
            if at == end:
                return
            for k, cpu in enumerate(list(self.on)):
                if cpu >= 0 and self.left[k] <= 0:
                    self.os.sleep(at, k)
                    self.wakes[k] = at + scene.sleep_us * US
                    self.left[k] = scene.run_us * US
            for k in [k for k, time in self.wakes.items() if time <= at]:
                del self.wakes[k]
                self.os.wake(at, k, self.last[k])  # its timer is on its own processor
            if at == tick:
                self.os.tick(at)
            if at == opens:
                self.os.use(at, list(range(len(self.setup.core))))
                opens = None
            self._look()

    def _look(self) -> None:
        """As threads see it by themselves."""
        for k in range(self.scene.threads):
            self.on[k] = cpu = self.os.on(k)
            if cpu < 0:
                continue
            if cpu != self.last[k] or self.ran_last[cpu] != k:
                self.turns[k] += 1
            if self.last[k] >= 0 and cpu != self.last[k]:
                self.moves[k] += 1
                self.far_moves[k] += self.setup.node[cpu] != self.setup.node[self.last[k]]
            self.last[k], self.ran_last[cpu] = cpu, k


# -- what threads see -----------------------------------------------------------------------------


def build(folder: Path) -> Path:
    """The program; ends where it does not compile."""
    program, source = folder / "threads_seen", HERE / "os_scheduler" / "threads_seen.c"
    command = ["gcc", "-O2", "-static", "-pthread", str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"threads_seen.c does not compile:\n{done.stderr[:2000]}")
    return program


def seen_of(output: str) -> Seen:
    """What one run of the program prints."""
    rows = [[int(word) for word in line.split()] for line in output.splitlines()]
    used, turns, moves, far, last = zip(*rows, strict=True)
    return Seen(tuple(map(float, used)), turns, moves, far, last)


def _ask_for_priority() -> None:
    """For this process and its group of processes; where it may not, it goes on without."""
    os.setsid()
    with contextlib.suppress(OSError):
        os.nice(-40)
        Path("/proc/self/autogroup").write_text("-20")


def on_host(program: Path, scene: Scene) -> Seen:
    """The threads of a scene on this host."""
    done = subprocess.run(
        [str(program), *scene.arguments],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=_ask_for_priority,
    )
    return seen_of(done.stdout)


def in_guest(program: Path, scenes: Sequence[Scene], longer: int = 1) -> list[Seen]:
    """The threads of each scene, in one guest, so many times as long."""
    scenes = [replace(one, ms=one.ms * longer, after_ms=one.after_ms * longer) for one in scenes]
    machine = load_machine(GUEST)
    guest = guest_machine(machine, scale=GUEST_PROCESSORS / 16, memory_bytes=1 << 30)
    calls = [" ".join([str(program), *scene.arguments]) for scene in scenes]
    done = run_in_guest(guest, ["sh", "-ec", "; echo; ".join(calls)], time_limit_s=600)
    if done.status != 0:
        raise SystemExit(f"threads_seen failed in the guest: {done.errors.decode()[:2000]}")
    return [seen_of(text) for text in done.output.decode().split("\n\n")]


def host_setup() -> OsSetup:
    """Of this host. Raises InputError where this process may not use all of its processors."""
    machine = build_machine(import_machine(Path("/")))
    setup = scheduler_of(machine, [k for k, node in enumerate(machine.nodes) if node.cores])
    if len(os.sched_getaffinity(0)) != len(setup.core):
        raise InputError("not all of the host's processors may be used")
    return setup


def guest_setup() -> OsSetup:
    """Of the guest: QEMU's processors of a node share a cache."""
    machine = load_machine(GUEST)
    guest = guest_machine(machine, scale=GUEST_PROCESSORS / 16, memory_bytes=1 << 30)
    node = [k for k in range(len(guest.nodes)) for _ in range(guest.node(k).threads)]
    nodes = list(range(len(guest.nodes)))
    distance = np.asarray(guest_slit(guest), dtype=np.float64)
    return processors_of(range(len(node)), node, node, nodes, distance)


# -- figures --------------------------------------------------------------------------------------


def print_figure(name: str, seen: float, model: float, unit: str) -> None:
    line = {
        "name": f"os_scheduler/{name}",
        "value": round(seen, 3),
        "unit": unit,
        "versus": f"model: {model:.3g}",
        "ratio": round(seen / model, 2) if model else None,
    }
    print(json.dumps(line), flush=True)


def compare_on_host(program: Path) -> None:
    setup = host_setup()
    for name, scene in host_scenes(len(setup.core)).items():
        seen, model = on_host(program, scene), play(setup, scene)
        got = sum(seen.used_us) / sum(model.used_us)
        busy = f" (busy: {got:.0%} of the processor time)" if got < BUSY else ""
        print_figure(f"host, {name}{busy}: moves", sum(seen.moves), sum(model.moves), "moves")
        if scene.threads > len(setup.core):
            print_figure(f"host, {name}{busy}: turn", seen.turn_ms, model.turn_ms, "ms")


def compare_in_guest(program: Path) -> None:
    setup, scenes = guest_setup(), list(GUEST_SCENES.values())
    for (name, scene), seen in zip(GUEST_SCENES.items(), in_guest(program, scenes), strict=True):
        model = play(setup, scene)
        print_figure(
            f"guest, {name}: most on a processor at last",
            seen.most_together(),
            model.most_together(),
            "threads",
        )
        print_figure(
            f"guest, {name}: moves between nodes",
            sum(seen.far_moves),
            sum(model.far_moves),
            "moves",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guest", action="store_true", help="boot a guest, too (QEMU)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        compare_on_host(program)
        if options.guest:
            compare_in_guest(program)


if __name__ == "__main__":
    try:
        main()
    except InputError as failure:
        print(f"left out: {failure}", file=sys.stderr)

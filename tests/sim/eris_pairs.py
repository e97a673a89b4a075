"""ERIS's routing on both planes, the kernel and the reference, for tests that compare the two."""

import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.commands import SetPace
from numatwin.sim.systems.eris.costs import ErisCosts
from numatwin.sim.systems.eris.engine import Eris
from numatwin.sim.systems.eris.players import Counted, RoutedPlayer
from numatwin.sim.systems.eris.reference.player import ReferencePlayer

US = 1_000_000  # ps
KINDS = {0: "round", 3: "executed", 4: "issued", 6: "copied"}
NONE = 2**32 - 1

Row = tuple[int, str, int, int, int]


@dataclass(frozen=True)
class Case:
    """A scenario, and for how long it is played."""

    scenario: str
    until_ps: int
    machine: str | None = None
    settings: tuple[str, ...] = ()
    seed: int = 0

    @property
    def replay(self) -> str:
        """The command that plays it on the reference plane."""
        words = ["numatwin", "run", self.scenario]
        words += ["--machine", self.machine] if self.machine else []
        for setting in (
            *self.settings,
            f"horizon={self.until_ps} ps",
            "statistics.replications=1",
            "statistics.warm_up=0 ns",
        ):
            words += ["--set", setting]
        return shlex.join([*words, "--seed", str(self.seed), "--on", "reference"])


def scenario_of(case: Case) -> Scenario:
    """What is played."""
    return load_scenario(
        case.scenario, machine=case.machine, seed=case.seed, settings=case.settings
    )


def faults(case: Case) -> list[tuple[int, SetPace]]:
    """When workers change their pace, by time."""
    return [(round(c.event.time_s * 1e12), c.command) for c in scenario_of(case).changes]


def players(case: Case) -> tuple[RoutedPlayer, ReferencePlayer]:
    """Both, at time 0; the kernel's keeps its trace."""
    scenario = scenario_of(case)
    made = (
        maker(Eris(scenario), ErisCosts(scenario.machine), scenario, 1)
        for maker in (RoutedPlayer, ReferencePlayer)
    )
    compiled, plain = made
    assert isinstance(compiled, RoutedPlayer)
    assert isinstance(plain, ReferencePlayer)
    compiled.model.tracing = True
    return compiled, plain


def told(trace: Iterable[Sequence[int]]) -> list[Row]:
    """A trace of the kernel as the reference tells it."""
    return [
        (time_ps, KINDS[kind], worker, -1 if other == NONE else other, amount)
        for time_ps, kind, worker, other, amount in trace
    ]


def kernel_trace(player: RoutedPlayer) -> list[Row]:
    """Of a player's model."""
    return told(player.model.trace().tolist())


def plain_values(counted: Counted, name: str) -> Any:
    """A field in a form that can be compared and told."""
    value = getattr(counted, name)
    if name == "latencies":
        return [
            (one.total, *np.flatnonzero(one.counts), *one.counts[one.counts > 0]) for one in value
        ]
    if name == "steps_ps":
        return {step: ps.tolist() for step, ps in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def difference(compiled: RoutedPlayer, plain: ReferencePlayer) -> str | None:
    """Where the two traces, or what was counted, first differ."""
    pairs = itertools.zip_longest(kernel_trace(compiled), plain.model.trace)
    for at, (found, expected) in enumerate(pairs):
        if found != expected:
            return f"row {at}: the kernel has {found}, the reference {expected}"
    one, other = compiled.counted(), plain.counted()
    for name in vars(one):
        if (found := plain_values(one, name)) != (expected := plain_values(other, name)):
            return f"{name}: the kernel has {found}, the reference {expected}"
    if compiled.model.events != plain.model.events:
        return f"the kernel had {compiled.model.events} events, the reference {plain.model.events}"
    return None


# Machines of small nodes: snooping or with a directory, one or two threads a core, with links or
# without, each with the nodes that may be chosen.
MACHINES = {
    "amd-8n-ht": ((), 8),
    "intel-4s-qpi": (("machine.node_types.e7-4860.cores=1",), 4),
    "opteron-4n": ((), 4),
    "xeon-2s-spr-snc4": ((), 8),
    "epyc-2s-nps4": (("system.page_size=4 KiB",), 8),
}
KEYS = st.sampled_from(
    (
        "{distribution: uniform}",
        "{distribution: hot_range, from: 0, to: 1000, share: 0.9}",
        "{distribution: hot_range, from: 6_000_000, to: 9_000_000, share: 0.5}",
        "{distribution: zipf, exponent: 0.99}",
        "{distribution: zipf, exponent: 1.5, order: sorted}",
    )
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few workers with little buffers: they meet each other, and find buffers full."""
    machine = draw(st.sampled_from(sorted(MACHINES)))
    settings, count = MACHINES[machine]
    nodes = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True))
    threads = draw(st.integers(1, 2))
    workers = threads * len(nodes)
    buffer_commands = draw(st.integers(1, 40))
    round_commands = draw(st.integers(1, 2 * workers * buffer_commands))
    command = draw(st.sampled_from((16, 24, 64)))
    incoming = draw(st.integers(1, 4 * workers)) * buffer_commands * command
    failing = draw(st.lists(st.integers(0, workers - 1), max_size=3, unique=True))
    fails = [
        f"{{kind: {draw(st.sampled_from(('stop', 'slow, factor: 2.5')))}, worker: {worker}, "
        f"at: {draw(st.integers(1, 9))} us, lasts: {draw(st.integers(1, 30))} us}}"
        for worker in failing
    ]
    operations = [
        f"{name}: {{kind: {draw(st.sampled_from(('lookup', 'upsert', 'route')))}, "
        f"object: index, share: {draw(st.integers(1, 9))}, keys: {draw(KEYS)}}}"
        for name in "abc"[: draw(st.integers(1, 3))]
    ]
    return Case(
        "eris-fig5",
        draw(st.sampled_from((10 * US, 40 * US))),
        machine,
        (
            *settings,
            "workload.objects.index.keys=10_000_000",
            f"system.nodes={sorted(nodes)}",
            f"system.threads={threads}",
            f"system.buffer_commands={buffer_commands}",
            f"system.round_commands={round_commands}",
            f"system.command_size={command} B",
            f"system.incoming_size={incoming} B",
            f"system.batch={draw(st.sampled_from((1, 7, 128)))}",
            f"workload.operations={{{', '.join(operations)}}}",
            f"system.faults=[{', '.join(fails)}]",
        ),
        draw(st.integers(0, 2**64 - 1)),
    )

"""What the cost model says of lines that cores hand over, against the plugin's caches."""

from typing import Any

import numpy as np
import pytest
from played_caches import LINE, MIB, Played, Shape

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.hand_over_traffic import hand_over_traffic
from numatwin.topologies import Machine, load_machine
from numatwin.topologies.emulator.traffic import MATRICES, Counts, Traffic, snoop_domains

LINES, ROUNDS = 32, 40
LARGE = ((1, 64, 8), (1, 64, 16))


def played_on(machine: Machine) -> Played:
    """Its caches, large ones."""
    rules = machine.description.coherence
    owned = rules is not None and bool(rules.owned)
    return Played(Shape(len(machine.nodes), 1, LARGE, snoop_domains(machine), owned=owned))


def pairs_of(played: Played, n: int) -> dict[str, Any]:
    """What was counted so far, as matrices."""
    pairs = {name: np.zeros((n, n), dtype=np.int64) for name in MATRICES}
    for name, found in played.counts().items():
        if name in pairs:
            for at, count in found.items():
                pairs[name][at] = count
    return pairs


def counted(machine: Machine, source: list[float], target: list[float]) -> Traffic:
    """Lines of readers' homes, each written by a node and then read at home, many times over."""
    n, random, played = len(machine.nodes), np.random.default_rng(1), played_on(machine)
    readers = np.flatnonzero(target)
    before: dict[str, Any] = {}
    for rounds in (1, ROUNDS):
        for _ in range(rounds):
            for reader in readers:
                for line, writer in enumerate(random.choice(n, LINES, p=source)):
                    address = int(reader) * MIB + line * LINE
                    played.write(int(writer), address)
                    played.read(int(reader), address)
        before, last = pairs_of(played, n), before
    counts = Counts(
        {name: found - last[name] for name, found in before.items()}, np.zeros((n, 3), np.int64)
    )
    return Traffic(machine, LINE, (1, 3), counts)


@pytest.mark.parametrize(
    "name", ["intel-4s-qpi", "amd-8n-ht", "opteron-4n", "sgi-uv300h-8s", "fat-tree-64n"]
)
@pytest.mark.parametrize("spread", ["evenly", "from two to one"])
def test_hand_overs_move_what_the_caches_count(name: str, spread: str) -> None:
    machine = load_machine(name)
    n = len(machine.nodes)
    source, target = np.full(n, 1.0 / n), np.full(n, 1.0 / n)
    if spread == "from two to one":
        source, target = np.zeros(n), np.zeros(n)
        source[[0, 1]], target[2] = (0.75, 0.25), 1.0
    of = counted(machine, source.tolist(), target.tolist())
    each = np.count_nonzero(target) * LINES * ROUNDS
    found = hand_over_traffic(CostModel(machine), source, target)
    read, written = (part / LINE / each for part in of.memory_bytes())
    near = 0.05 if spread == "evenly" else 0.1  # of a few hundred draws
    assert found.read.sum() == pytest.approx(read.sum(), rel=near, abs=1e-3)
    assert found.written.sum() == pytest.approx(written.sum(), rel=near, abs=1e-3)
    for part, bytes_ in zip(found.wire, of.link_bytes(), strict=True):
        assert part.sum() == pytest.approx(bytes_.sum() / each, rel=near)


def link_bytes(machine: Machine, steps: list[list[tuple[int, int, bool]]]) -> Any:
    """(2, 2L) wire bytes of the last part of ``steps``, of (processor, address, write)."""
    n, played, found = len(machine.nodes), played_on(machine), []
    for part in steps:
        for step in part:
            played.access(*step)
        counts = Counts(pairs_of(played, n), np.zeros((n, 3), np.int64))
        traffic = Traffic(machine, LINE, (1, 3), counts)
        found.append(np.array(traffic.link_bytes()))
    return found[-1] - found[-2]


MACHINES = pytest.mark.parametrize("name", ["intel-4s-qpi", "amd-8n-ht", "fat-tree-64n"])
WITH_GROUPS = pytest.mark.parametrize(
    "name", ["intel-4s-qpi", "amd-8n-ht", "sgi-uv300h-8s", "fat-tree-64n"]
)


@WITH_GROUPS
def test_lines_that_pass_from_writer_to_writer(name: str) -> None:
    """Lines of each node, written by a node after another, drawn evenly, and read by nobody."""
    machine = load_machine(name)
    n, random = len(machine.nodes), np.random.default_rng(2)
    homes, turns = np.arange(n), 4000 // n

    def written(turns: int) -> list[tuple[int, int, bool]]:
        return [
            (int(random.integers(n)), int(home) * MIB, True) for _ in range(turns) for home in homes
        ]

    counted = link_bytes(machine, [written(1), written(turns)]) / (turns * n)
    evenly, costs = np.full(n, 1.0 / n), CostModel(machine)
    bare, passing = (
        hand_over_traffic(costs, evenly, evenly, passed_on=passed_on) for passed_on in (0.0, 1.0)
    )
    found = passing.wire - bare.wire
    for part, expected in zip(found, counted, strict=True):
        assert part.sum() == pytest.approx(expected.sum(), rel=0.03)
    # Lines that come back are told per line of another node's: these are passed on at home, too.
    assert passing.passed == pytest.approx(1.0)
    assert bare.passed == 0.0


@MACHINES
def test_lines_taken_to_be_read_and_then_written(name: str) -> None:
    """Lines of each node, in turn read and then written by a node: all were modified by another."""
    machine = load_machine(name)
    n, random = len(machine.nodes), np.random.default_rng(3)
    last = random.integers(n, size=n)

    def turns(count: int) -> list[tuple[int, int, bool]]:
        steps = []
        for _ in range(count):
            for home in range(n):
                # Another than the last one, as a line that is found moves nothing.
                last[home] = (last[home] + 1 + random.integers(n - 1)) % n
                steps += [(int(last[home]), home * MIB, write) for write in (False, True)]
        return steps

    count = 4000 // n
    counted = link_bytes(machine, [turns(1), turns(count)]) / (count * n)
    costs, evenly = CostModel(machine), np.full((n, n), 1.0 / n**2)
    found = costs.taken_wire_rows(evenly).sum(axis=1)
    if not (machine.description.coherence and machine.description.coherence.owned):
        found = found + costs.written_wire_rows(evenly).sum(axis=1)  # as another reads them
    for part, expected in zip(found, counted, strict=True):
        assert part.sum() == pytest.approx(expected.sum(), rel=0.05)

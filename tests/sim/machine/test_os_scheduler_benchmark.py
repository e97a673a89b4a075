"""Real threads, which tell where they run, do what the model of the scheduler says.

In a guest of four nodes with two processors each they are balanced between nodes. What the model
says is checked by hand; how long turns are on this host, the benchmark compares.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulator_needed import needs_emulator

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmark as a module."""
    sys.path.insert(0, str(BENCHMARKS))
    import os_scheduler

    yield os_scheduler
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def program(bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program."""
    found: Path = bench.build(tmp_path_factory.mktemp("threads"))
    return found


def test_what_the_model_plays(bench: Any) -> None:
    """Two a processor of eight: turns of a tick, 4 ms, as a slice of 2.8 ms is over by then; some
    are longer, until the last processor has two."""
    setup = bench.guest_setup()
    one = bench.play(setup, bench.Scene(8, 100))
    assert (one.turns, sum(one.moves)) == ((1,) * 8, 0)
    assert 4 <= bench.play(setup, bench.Scene(16, 400)).turn_ms < 5
    two = bench.play(setup, bench.Scene(16, 400, first=(0, 1), after_ms=100))
    assert set(Counter(two.last).values()) == {2}
    assert sum(two.far_moves) >= 12  # four of sixteen may stay on node 0
    sleeper = bench.play(setup, bench.Scene(1, 100, run_us=100, sleep_us=300))
    assert (sleeper.used_us[0], sum(sleeper.moves)) == (pytest.approx(25_000), 0)


def test_threads_tell_of_themselves(bench: Any, program: Path) -> None:
    """They have no more than the host's processors, and each was seen somewhere."""
    seen = bench.on_host(program, bench.Scene(3, 60))
    assert len(seen.used_us) == 3
    assert all(turns > 0 for turns in seen.turns)
    wrong = subprocess.run([str(program), "3"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr.split()[0]) == (2, "usage:")


def differences(bench: Any, found: Any, models: Any) -> list[str]:
    """What threads in the guest did otherwise than the model."""
    alone, spread, full, pauses = bench.GUEST_SCENES
    on_node = Counter(cpu // 2 for cpu in found[full].last)
    far = {name: (sum(found[name].far_moves), sum(models[name].far_moves)) for name in found}
    same = {
        "one a processor": found[alone].most_together() == models[alone].most_together(),
        "spread, one a processor": found[spread].most_together() == models[spread].most_together(),
        "moves of eight": 6 <= far[spread][0] <= 3 * far[spread][1],
        "spread over nodes": len(on_node) == 4 and max(on_node.values()) <= 6,
        "moves of sixteen": 10 <= far[full][0] <= 3 * far[full][1],
        "sleepers stay": far[pauses] == (0, 0),
    }
    return [what for what, is_so in same.items() if not is_so]


@pytest.mark.sweep
@needs_emulator
def test_in_a_guest_of_four_nodes(bench: Any, program: Path) -> None:
    """Threads that may leave their node spread over all processors alike, those of which there is
    one a processor stay, and those that sleep and wake never leave their node. Its processors need
    time of the host's for that: if they have none, it is tried longer, then left out."""
    setup, scenes = bench.guest_setup(), bench.GUEST_SCENES
    models = {name: bench.play(setup, scene) for name, scene in scenes.items()}
    assert models["sixteen, of node 0, then of all"].most_together() == 2
    for longer in (1, 3):
        seen = bench.in_guest(program, list(scenes.values()), longer)
        found = dict(zip(scenes, seen, strict=True))
        differs = differences(bench, found, models)
        if not differs:
            return
    if found["sixteen, of node 0, then of all"].turn_ms > 40:
        pytest.skip("the guest's processors have too little of this host's")
    assert differs == []

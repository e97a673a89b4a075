"""The range over uncertain facts: each corner is simulated, and tells how far it is."""

from itertools import pairwise
from pathlib import Path

import pytest
from small_scenarios import CACHE, LOOKUP, NODE, small_file

from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

UNCERTAIN = f"{NODE}memory.latency={{value: 90 ns, range: [80 ns, 120 ns], doubtful: true}}"

MACHINE = """
name: mine
node_types:
  node:
    cores: 4
    memory: {size: 64 GiB, latency: {value: 90 ns, range: [80 ns, 120 ns], doubtful: true}}
nodes: [{id: 0, type: node}]
"""


def test_progress_covers_the_corners(tmp_path: Path) -> None:
    """Three runs of one length: the scenario itself, longer latency, shorter latency."""
    seen: list[float] = []
    path = small_file(tmp_path, LOOKUP, caches=CACHE)
    record = run_scenario(load_scenario(path, settings=[UNCERTAIN]), progress=seen.append)
    low, high = record.fact_range["throughput"]["lookup"]
    assert low < record.throughput["lookup"] < high
    assert len(record.fact_range["corners"]) == 2
    assert all(one <= other for one, other in pairwise(seen))
    assert {round(run / 3, 9) for run in (1, 2, 3)} <= {round(part, 9) for part in seen}
    assert seen[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        (["memory.latency.value=100 ns"], ()),
        (["memory.latency=100 ns"], ()),
        (["memory.latency.source=mine"], ("node_types.node.memory.latency",)),
        (
            ["memory.latency.doubtful=true", "memory.latency.value=100 ns"],
            ("node_types.node.memory.latency",),
        ),
    ],
)
def test_what_a_user_states_is_certain(
    tmp_path: Path, settings: list[str], facts: tuple[str, ...]
) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text(MACHINE)
    path = small_file(tmp_path, LOOKUP, caches=CACHE)
    scenario = load_scenario(
        path,
        machine=str(machine),
        settings=[f"machine.node_types.node.{one}" for one in settings],
    )
    assert scenario.machine.doubtful == facts


def test_a_stated_protocol_is_certain(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text(MACHINE + "coherence: {protocol: snoop, doubtful: true}\n")
    path = small_file(tmp_path, LOOKUP, caches=CACHE)
    stated = load_scenario(
        path,
        machine=str(machine),
        settings=["machine.coherence.protocol=directory"],
    )
    coherence = stated.machine.description.coherence
    assert coherence is not None
    assert (coherence.protocol, coherence.doubtful) == ("directory", None)

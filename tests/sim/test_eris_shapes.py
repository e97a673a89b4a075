"""What the ERIS models are told in wrong shapes is refused by name, and crashes nothing."""

from pathlib import Path
from typing import Any

import pytest
from small_scenarios import LOOKUP, small_file

from numatwin.sim._kernel import ErisRouting, ErisShared, SparseRows
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris import players
from numatwin.sim.systems.eris.event_model import kernel_demands, machine_of
from numatwin.sim.systems.eris.event_plane import ErisEvents
from numatwin.sim.systems.eris.players import SharedArrays


def plane(folder: Path, placement: str) -> ErisEvents:
    path = small_file(folder, LOOKUP, placement, nodes=2)
    return ErisEvents(load_scenario(path, plane="event"), 1)


@pytest.fixture
def routed(tmp_path: Path) -> ErisEvents:
    return plane(tmp_path, "partitioned")


# By fields: values that each of them refuses.
MACHINE: dict[str, list[Any]] = {
    "node": [[], [0] * 7 + [2], [-1] * 8],
    "core": [[0], [8] * 8],
    "home": [[0, 5]],
    "issue_ps": [[1.0], [-1.0, 1.0], [float("nan")] * 2, [float("inf")] * 2],
    "batch_ps round_ps part_ps memory_write_ps": [[], [-1.0, 1.0]],
    "stream_slots read_slots": [[0.0, 0.0]],
    "read_waits part_waits": [-1.0, float("nan")],
    "handed_ps": [[1, 2]],
    "memory_line_ps link_request_ps": [[]],
    "load": [[0.5]],
    "load_ratio": [[1.0]],
    "line_data_ps": [SparseRows([0, 1, 9], [0], [1.0]), SparseRows([0, 1, 1], [99], [1.0])],
    "entering": [[], [99] * 4],
    "predecessor": [[0, 1, 0, 1], [9] * 4],
    "vertices": [1],
    "buffer_commands round_commands batch scans_max": [0],
    "incoming_commands": [1, 2**40],
    "think_ps": [-1.0],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (field, value)
        for fields, values in MACHINE.items()
        for field in fields.split()
        for value in values
    ],
)
def test_machine(routed: ErisEvents, field: str, value: Any) -> None:
    assert isinstance(routed.player, players.RoutedPlayer)
    demands = routed.player.demands
    machine = machine_of(demands, routed.workload.description.clients)
    setattr(machine, field, value)
    # A way that does not end is found where the links of the way are looked up.
    with pytest.raises(ValueError, match=rf"^({field}|entering|predecessor): expected"):
        ErisRouting(machine, 1, 1, [(k, 1) for k in range(16)], 1, 1)


def test_streams_operations_and_order(routed: ErisEvents) -> None:
    assert isinstance(routed.player, players.RoutedPlayer)
    machine = machine_of(routed.player.demands, routed.workload.description.clients)
    keys = [(k, 1) for k in range(16)]
    with pytest.raises(ValueError, match=r"^keys"):
        ErisRouting(machine, 1, 1, keys[:3], 1, 1)
    with pytest.raises(ValueError, match=r"^keyed"):
        ErisRouting(machine, 1, 2, keys, 1, 1)
    with pytest.raises(ValueError, match=r"^start"):
        ErisRouting(machine, 1, 1, keys, 1, 1).start()


def test_demands_and_table(routed: ErisEvents) -> None:
    player = routed.player
    assert isinstance(player, players.RoutedPlayer)
    commands = player.demands.commands(routed.eris.phase, 0.0, routed.eris.partitions)
    for field in ("core_ps", "hit_ps", "lines", "slots", "memory_lines", "written", "scan_lines"):
        demands = kernel_demands(commands, player.order)
        setattr(demands, field, [1.0])
        with pytest.raises(ValueError, match=f"^{field}: expected 8 values, found 1"):
            player.model.update(demands)
    even = [k / 8 for k in range(9)]
    for total, guide, moves, field in (
        (even[:-1], [0], [], "sum"),
        ([0.5, *even[1:]], [0], [], "sum"),
        ([0.0, 1.0, *even[2:]], [0], [], "sum"),
        (even, [], [], "guide"),
        (even, [8], [], "guide"),
        (even, [3], [], "guide"),
        (even, [0], [(7, 0, 1, 0.5)], "moves"),
        (even, [0], [(0, 0, 9, 0.5)], "moves"),
    ):
        with pytest.raises(ValueError, match=f"^{field}: expected"):
            player.model.route(total, guide, moves)
    player.model.run(10**8)  # nothing of it was taken
    player.check()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("node", []),
        ("core", [0]),
        ("steps", []),
        ("shares", []),
        ("batch", 0),
        ("limit_ps", [1.0]),
        ("memory_lines", SparseRows([0, 5, 1], [0], [1.0])),
        ("link_load_max", 1.0),
        ("load", []),
    ],
)
def test_shared(tmp_path: Path, field: str, value: Any) -> None:
    player = plane(tmp_path, "interleaved").player
    assert isinstance(player, players.SharedPlayer)
    demand = player.eris.demand(player.demands, 0.0)
    setup = SharedArrays(player.demands, demand).setup(player.eris.phase, player.clients)
    setattr(setup, field, value)
    with pytest.raises(ValueError, match=f"^{field}: expected"):
        ErisShared(setup, [(k, 1) for k in range(8)], 1, 1)
    with pytest.raises(ValueError, match=r"^\w+: expected"):
        player.model.update(setup)

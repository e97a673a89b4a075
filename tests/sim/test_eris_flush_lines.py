"""Lines that flushes move over links, counted by hand: for each what passes from writer to writer,
and what its commands take, of lookups and of scans.
"""

from typing import Any

import pytest
from eris_machines import Latencies, machine, routing, rows

from numatwin.sim._kernel import ErisMachine, ErisRouting

MS = 10**9
FETCHED, BACK, PASSED = 0.5, 0.25, 1.75  # of a line, and of a flush
A_COMMAND = 0.25 * (1 + FETCHED + BACK)


def linked(**more: Any) -> ErisMachine:
    """Two nodes with a worker each, and a link."""
    usual: dict[str, Any] = {
        "handed_fetched": FETCHED,
        "handed_back": BACK,
        "handed_passed": PASSED,
        "link_data_ps": [1] * 2,
        "link_request_ps": [0] * 2,
        "entering": [-1, 0, 1, -1],
        "predecessor": [-1, 0, 1, -1],
        "vertices": 2,
    }
    return machine(**usual | more)


def moved(model: ErisRouting) -> tuple[int, float]:
    """Flushes to the other node, and lines that crossed the link."""
    model.run(2 * MS)
    crossed = sum(row[2] != row[3] for row in rows(model, "copied"))
    assert crossed > 100
    return crossed, float(model.counts()["link_lines"].sum())


def test_the_command_of_a_scan_is_a_flush_to_each_node() -> None:
    """One scan at a time, of a column on both nodes: its maker tells the other one."""
    model = routing(linked(), [], [[2_000, 2_000]])
    flushes, lines = moved(model)
    assert abs(flushes - Latencies(model).count) <= 1  # one is under way
    assert lines / flushes == pytest.approx(A_COMMAND + PASSED, rel=1.5 / flushes)


@pytest.mark.parametrize("commands", [1, 4])
def test_a_flush_of_few_commands_passes_on_as_much_as_one_of_many(commands: int) -> None:
    """All to the other node's worker, where each round is a flush, or each fourth command is."""
    model = routing(linked(round_commands=commands), [[0.0, 1.0]])
    flushes, lines = moved(model)
    sent = sum(row[4] for row in rows(model, "copied") if row[2] != row[3])
    expected = sent * A_COMMAND + flushes * PASSED
    assert lines == pytest.approx(expected, rel=2 / flushes)
    assert 1 <= sent / flushes <= commands

"""What operators write lies on the node of the worker that has written it, on all planes.

By hand: a table of 1,000 rows on node 0, which has no workers; a worker of node 1 reads a line of
the table for each row and writes half a line of results: as much is fetched first, and written.
"""

import numpy as np
import pytest
from task_programs import MS, cost, machine, parameters, program, query, stage, table

from numatwin.sim.machine.costs import CostModel
from numatwin.sim.systems.tasks.event_plane import EventModel, ReferenceModel
from numatwin.sim.systems.tasks.layout import Layout
from numatwin.sim.systems.tasks.program import MemoryUse
from numatwin.sim.systems.tasks.steady_rates import State
from numatwin.sim.systems.tasks.steady_state import SteadyState

pytestmark = pytest.mark.kernel

USES = (MemoryUse("part", 1.0), MemoryUse("local", 0.5, 0.5))
MADE = program(
    [query(stage("scan", cost(2, 10e-9, memory=USES)))], workers=[0, 1], tables=[table((1_000, 0))]
)


@pytest.mark.parametrize("make", [EventModel, ReferenceModel], ids=["event", "reference"])
def test_task_by_task(make: type[EventModel | ReferenceModel]) -> None:
    model = make(parameters(MADE), 1, 1)
    model.run(2 * MS)
    rows, use = model.counts()["classes"][0, 1] * 1_000, model.counts()
    assert rows > 0
    assert use["lines_read"] == pytest.approx([rows, 0.5 * rows], rel=0.01)
    assert use["lines_written"] == pytest.approx([0.0, 0.5 * rows], rel=0.01)
    assert model.counts()["traffic"][1] == pytest.approx([64 * rows, 64 * rows])


def test_as_rates() -> None:
    layout = Layout(MADE.tables, np.full(2, 10**6), 1e-6, 1e-6, [0, 1])
    state = State(tuple(layout.parts.items()), (1.0,), 0.0, (0.0,), frozenset(), (0.0, 1.0))
    rates = SteadyState(MADE, CostModel(machine())).solve(state)
    rows_Bps = rates.queries[0] * 1_000 * 64
    assert rows_Bps > 0
    np.testing.assert_allclose(rates.served.pair_Bps, [[0, 0], [rows_Bps] * 2], rtol=1e-3)

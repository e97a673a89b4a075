"""Schedules of tasks by hand, from the compiled model and from the reference.

Workers, tasks and times are named in the table above each case. Costs here are instructions alone:
a task takes entries times cost.
"""

import pytest
from task_programs import BOTH, MS, NS, US, Maker, cost, parameters, program, query, stage, table

from numatwin.sim.systems.tasks.event_plane import Model
from numatwin.sim.systems.tasks.history import ANSWERED, BEGAN, ENDED, WOKEN
from numatwin.sim.systems.tasks.program import Entries, MemoryUse

pytestmark = pytest.mark.kernel

US_EACH = cost(2, 1e-6)
"""An entry takes 1 µs."""


def rows(model: Model, what: int) -> list[list[int]]:
    """Rows of that kind: time, then the columns."""
    found = model.trace()
    return [[row[0], *row[2:]] for row in found[found[:, 1] == what].tolist()]


@BOTH
def test_one_worker_does_one_task_after_the_other(make: Maker) -> None:
    """Entries 10, of 1 µs, and 0.5 µs for the task itself: a query each 10.5 µs."""
    p = parameters(program([query(stage("a", US_EACH))], [1, 0], [table((10, 0))], task_s=5e-7))
    model = make(p, 1, 1, True)
    model.run(MS)
    assert [row[0] for row in rows(model, ANSWERED)] == [10_500 * NS * k for k in range(1, 96)]


@BOTH
def test_saturated_workers_bound_the_throughput(make: Maker) -> None:
    """9 clients, 4 workers, 20 µs a query in one task: 4 queries each 20 µs."""
    made = program([query(stage("a", US_EACH), clients=9)], [2, 2], [table((20, 0))], concurrency=1)
    model = make(parameters(made), 1, 1, True)
    model.allow([True])
    model.run(MS)
    assert model.counts()["answered"].tolist() == [4 * 49]


@BOTH
def test_fork_and_join(make: Maker) -> None:
    """10 entries as 2 tasks on node 0 and 3 on node 1 (rows 4 and 6, hint 5), then one more task.

    | 0 to 2 µs | 2 to 5 µs |
    | --- | --- |
    | 5 tasks of 2 entries each | the join: 0.6 entries for each of the 5 |
    """
    fork = stage("fork", US_EACH, concurrency=5)
    join = stage("join", US_EACH, None, inputs=(0,), entries=Entries(per_input_task=0.6))
    p = parameters(
        program([query(fork, join)], [2, 3], [table((4, 0), (6, 1))], concurrency=1), cores=3
    )
    model = make(p, 1, 1, True)
    model.run(4 * US)
    assert [row[0] for row in rows(model, ENDED)] == [2 * US] * 5
    model.run(MS)
    assert rows(model, ANSWERED)[0][0] == 5 * US


@BOTH
@pytest.mark.parametrize(("allowed", "ends_us"), [(False, 4), (True, 2)])
def test_an_idle_worker_steals_where_it_may(make: Maker, allowed: bool, ends_us: int) -> None:
    """Two tasks of 2 µs on node 0, which has one worker; node 1 has one too."""
    made = program([query(stage("a", US_EACH, concurrency=2))], [1, 1], [table((4, 0))])
    model = make(parameters(made), 1, 1, True)
    model.allow([allowed])
    model.run(MS)
    assert rows(model, ANSWERED)[0][0] == ends_us * US
    stolen = [row[4] for row in rows(model, BEGAN)]
    assert stolen[:2] == ([0, 1] if allowed else [0, 0])


@BOTH
def test_the_nearest_node_is_stolen_from(make: Maker) -> None:
    """Nodes 0, 1, 2 in a line with a worker each; 5 tasks of 1 µs on node 1, 4 on node 2.

    | from | worker 0 | worker 1 | worker 2 |
    | --- | --- | --- | --- |
    | 0 µs | steals from node 1 | its own | steals from node 1, as node 2's come later |
    | 1 µs | steals from node 1, not from 2 | its own, the last one | its own |
    | 2 µs | steals from node 2 | steals from node 2 | its own |
    """
    made = program(
        [query(stage("a", cost(3, 1e-6), concurrency=9))], [1, 1, 1], [table((5, 1), (4, 2))]
    )
    model = make(parameters(made, nodes=3), 1, 1, True)
    model.allow([True])
    model.run(3 * US)
    # (time, worker): node of the queue
    assert {(row[0] // US, row[2]): row[3] for row in rows(model, BEGAN)} == {
        **{(0, 0): 1, (0, 1): 1, (0, 2): 1},
        **{(1, 0): 1, (1, 1): 1, (1, 2): 2},
        **{(2, 0): 2, (2, 1): 2, (2, 2): 2},
    }


@BOTH
def test_nodes_that_are_equally_far_are_stolen_from_in_turn(make: Maker) -> None:
    """Three nodes in a line with a worker each; nodes 0 and 2 have 20 tasks of 1 µs each."""
    made = program(
        [query(stage("a", cost(3, 1e-6), concurrency=40))], [1] * 3, [table((20, 0), (20, 2))]
    )
    model = make(parameters(made, nodes=3), 1, 1, True)
    model.allow([True])
    model.run(8 * US)
    victims = [row[3] for row in rows(model, BEGAN) if row[2] == 1]
    assert victims in ([0, 2] * 4 + [0], [0] + [0, 2] * 4, [0, 2] * 4)


@BOTH
def test_a_sleeping_worker_is_woken(make: Maker) -> None:
    """It looks for 1 µs, and takes 3 µs to wake: a query that comes later waits for that."""
    made = program(
        [query(stage("a", US_EACH), clients=0, share=1.0)],
        [1, 0],
        [table((10, 0))],
        arrivals_per_s=1e4,
        look_s=1e-6,
        wake_s=3e-6,
    )
    model = make(parameters(made), 1, 1, True)
    model.run(MS)
    woken = rows(model, WOKEN)
    assert len(woken) > 2
    assert rows(model, ANSWERED)[0][4] == 13 * US


@BOTH
@pytest.mark.parametrize(("allowed", "ends_us"), [(True, 7), (False, 11)])
def test_a_sleeping_worker_of_another_node_is_woken_where_it_may_steal(
    make: Maker, allowed: bool, ends_us: int
) -> None:
    """Queries of 2 tasks of 4 µs on node 0; a worker of each node, which looks for 1 µs and takes
    3 µs to wake. The first query comes while both sleep:

    | from | worker 0 | worker 1 |
    | --- | --- | --- |
    | 0 µs | is woken for the first task | is woken for the second, if it may steal |
    | 3 µs | the first task | the second, if it may steal |
    | 7 µs | the second, if nobody stole it | |
    """
    made = program(
        [query(stage("a", US_EACH, concurrency=2), clients=0, share=1.0)],
        [1, 1],
        [table((8, 0))],
        arrivals_per_s=1e3,
        look_s=1e-6,
        wake_s=3e-6,
    )
    model = make(parameters(made), 1, 1, True)
    model.allow([allowed])
    model.run(20 * MS)
    latencies = [row[4] for row in rows(model, ANSWERED)]
    assert latencies[0] == ends_us * US


@BOTH
def test_tasks_of_a_part_that_moves_wait(make: Maker) -> None:
    """Two clients, tasks of 10 µs on node 0. From 15 µs on the part moves, for 100 µs: what runs
    ends at 20 µs, and at 115 µs both go on at node 1."""
    made = program([query(stage("a", US_EACH), clients=2)], [2, 2], [table((10, 0))], concurrency=1)
    model = make(parameters(made), 1, 1, True)
    model.run(15 * US)
    model.block(0, 0)
    model.copy(1, 0, 1, 10, 10.0 * US)
    assert not model.run(MS)
    assert model.now_ps == 115 * US
    assert list(model.take_arrived()) == [1]
    assert model.counts()["parts_waiting"] == 2
    model.place(0, 0, 1)
    model.run(126 * US)
    assert [row[0] for row in rows(model, ANSWERED)] == [t * US for t in (10, 10, 20, 20, 125, 125)]
    assert [row[3] for row in rows(model, BEGAN)][-2:] == [1, 1]


@BOTH
def test_released_workers_end_their_task_and_take_no_more(make: Maker) -> None:
    """Node 1's worker leaves at 5 µs: its task ends at 10 µs, the other node does the rest."""
    made = program([query(stage("a", US_EACH, concurrency=2))], [1, 1], [table((10, 0), (10, 1))])
    model = make(parameters(made), 1, 1, True)
    model.run(5 * US)
    model.use([True, False])
    model.run(MS)
    assert [row[0] for row in rows(model, ANSWERED)][:3] == [10 * US, 30 * US, 50 * US]
    assert {row[2] for row in rows(model, BEGAN)[2:]} == {0}


@BOTH
def test_a_stage_is_left_out_with_few_parts(make: Maker) -> None:
    """The merge comes once the table is in two parts, in queries that are asked from then on."""
    scan = stage("scan", US_EACH, concurrency=2)
    seven = Entries(constant=7.0)
    merge = stage("merge", US_EACH, None, inputs=(0,), parts_min=2, entries=seven, concurrency=1)
    model = make(parameters(program([query(scan, merge)], [2, 2], [table((8, 0))])), 1, 1, True)
    model.run(6 * US)
    model.set_parts(0, [4, 4], [0, 1])
    model.run(MS)
    # 8 entries in two tasks: 4 µs; then in two parts, a task each, 4 µs and 7 µs.
    assert [row[0] for row in rows(model, ANSWERED)][:3] == [4 * US, 8 * US, 19 * US]


@BOTH
def test_memory_throughput_of_a_class(make: Maker) -> None:
    """A line of 64 B per entry of 1 µs: 64 MB/s; 10 lines at a time of 100 ns are no limit."""
    each = cost(2, 1e-6, memory=[MemoryUse("part", 1.0)])
    model = make(
        parameters(program([query(stage("a", each))], [1, 0], [table((10, 0))])), 1, 1, True
    )
    model.run(MS)
    counts = model.counts()
    assert counts["class_bytes_per_ps"][0] * 1e12 == pytest.approx(64e6, rel=1e-6)
    assert counts["traffic"][0, 0] == pytest.approx(64.0 * 10 * counts["answered"][0])

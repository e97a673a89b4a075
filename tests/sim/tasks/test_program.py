"""What a Program says of itself, and that those made by hand are sound."""

from hand_programs import program, programs, query, scan, table
from hypothesis import given

from numatwin.sim.systems.tasks.program import Program


def test_classes_are_named_once_in_order_of_queries_and_stages() -> None:
    made = program(
        query(scan(task_class="b"), scan(task_class="a", inputs=(0,))),
        query(scan(task_class="c"), scan(task_class="b")),
    )
    assert made.classes == ("b", "a", "c")


def test_rows_of_a_table_by_hand_are_divided_evenly() -> None:
    assert [part.rows for part in table(rows=10, nodes=(0, 1, None)).parts] == [3, 3, 4]


@given(programs())
def test_inputs_stand_before_what_needs_them_and_shares_sum_to_1(made: Program) -> None:
    for asked in made.queries:
        for at, stage in enumerate(asked.stages):
            assert all(before < at for before in stage.inputs)
            assert len(stage.inputs) == 1 or not stage.pipelined
    shares = sum(asked.share for asked in made.queries)
    assert (abs(shares - 1) < 1e-12) == bool(made.mix_clients)

"""Semi-joins: the source's formulas by hand."""

import pytest

from numatwin.topologies import load_machine
from numatwin.validate.results import Runs
from numatwin.validate.systems.joins import (
    C_MEM_S,
    MACHINE,
    MESSAGE_BYTES,
    break_even,
    played_break_even,
    shipped_s,
)


@pytest.mark.parametrize("c_net", [0.1, 1.0, 10.0])
def test_both_cost_the_same_at_the_break_even(c_net: float) -> None:
    """4 c_mem + c_net = c_mem + sel (4 c_mem + c_net), here with c_mem = 1."""
    sel = break_even(c_net * C_MEM_S)
    assert 1.0 + sel * (4.0 + c_net) == pytest.approx(4.0 + c_net)


def test_a_slow_network_makes_it_pay_nearly_always() -> None:
    assert break_even(0.0) == 0.75
    assert break_even(1.0) == pytest.approx(1.0, abs=1e-6)


def test_what_a_shipped_byte_costs_by_hand() -> None:
    """IPoIB: a thread's 13,264 cycles at 2.2 GHz take longer than 2 KB at 3.5 GB/s. Ethernet: 2 KB
    in two packets of 90 B of headers take 1 Gb/s longer than a thread's 7,544 cycles, which grow
    beyond a window of 1,488 B.
    """
    machine = load_machine(MACHINE)
    assert shipped_s(machine, "IPoIB") == pytest.approx(13_264 / 2.2e9 / MESSAGE_BYTES)
    assert shipped_s(machine, "IPoEth") == pytest.approx((2048 + 180) / 0.125e9 / MESSAGE_BYTES)


def test_both_plans_take_the_same_time_at_the_break_even_that_is_played() -> None:
    runs = Runs("flow")
    at = played_break_even(runs, "IPoIB")
    fixed = ("system.transport=IPoIB", f"workload.operations.join.selectivity={at:.6f}")
    ghj, bloom = (
        (runs("nam-fig7", f"system.operator={name}", *fixed).latency_ns["join"] or {})["mean"]
        for name in ("ghj", "ghj-bloom")
    )
    assert bloom == pytest.approx(ghj, rel=0.002)


def test_fewer_nodes_and_wider_tuples_have_smaller_filters_for_their_tables() -> None:
    runs = Runs("flow")
    eight, four, two = (
        played_break_even(runs, "IPoIB", f"system.nodes={nodes}") for nodes in (8, 4, 2)
    )
    wide = [f"workload.objects.{table}.record_size=64 B" for table in ("inner", "outer")]
    assert eight < four < two
    assert eight < played_break_even(runs, "IPoIB", *wide)


def test_filters_larger_than_what_they_save_never_pay() -> None:
    """Of an error of 10^-5: 3 B a tuple go to each of seven nodes, for tuples of 8 B."""
    assert played_break_even(Runs("flow"), "IPoEth", "system.filter_error=0.00001") == 0.0


def test_filters_that_cost_next_to_nothing_always_pay() -> None:
    """Between two nodes, tuples of a buffer's size; all but the least part has a partner."""
    wide = [f"workload.objects.{table}.record_size=2 KiB" for table in ("inner", "outer")]
    few = [f"workload.objects.{table}.records=10000" for table in ("inner", "outer")]
    found = played_break_even(Runs("flow"), "IPoEth", "system.nodes=2", *wide, *few)
    assert 0.9 < found < 1.0

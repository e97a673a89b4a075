"""Semi-joins: the source's formulas by hand."""

import pytest

from numatwin.topologies import load_machine
from numatwin.validate.systems.joins import C_MEM_S, MACHINE, MESSAGE_BYTES, break_even, shipped_s


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

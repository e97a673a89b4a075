"""All parts of a machine together, kernel and reference: by hand, and alike in random programs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scenarios import LOOKUP, small, small_file

from numatwin.sim import _kernel
from numatwin.sim._kernel import PartsSetup
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.machine.parts import parts_setup
from numatwin.sim.machine.reference import parts as reference
from numatwin.sim.machine.reference.core import CoreWork
from numatwin.sim.machine.threads import place_workers

NS = 1000
# Nodes 0 and 1, a core and a thread on each, a link to and fro of 8 ns a line and 1 ns a request.
TWO: dict[str, Any] = {
    "core_node": [0, 1],
    "core": [0, 1],
    "read_ps": [2.0 * NS, 2.0 * NS],
    "write_ps": [3.0 * NS, 3.0 * NS],
    "latency_ps": [100.0 * NS, 150.0 * NS, 150.0 * NS, 100.0 * NS],
    "handed_ps": [20.0 * NS, 60.0 * NS, 60.0 * NS, 20.0 * NS],
    "load": [0.0, 1.0],
    "load_ratio": [1.0, 2.0],
    "link_data_ps": [8 * NS, 8 * NS],
    "link_request_ps": [1 * NS, 1 * NS],
    "entering": [-1, 0, 1, -1],
    "predecessor": [-1, 0, 1, -1],
    "vertices": 2,
}
BOTH = pytest.mark.parametrize(
    "make", [_kernel.Parts, reference.Parts], ids=["kernel", "reference"]
)


@BOTH
def test_reads_and_messages_by_hand(make: Any) -> None:
    """Link 0 leads from node 0 to 1, link 1 back.

    time   what                                    controller 0   link 0     link 1   there
    0      node 0 reads 3 lines of its own         0 … 6 ns                           6 ns
    1 ns   node 1 reads 1 line of node 0           6 … 8 ns       1 … 9      request  9 ns
    2 ns   a core of 0 hands 1 line to one of 1                   9 … 17              62 ns
    3 ns   it hands over 10 lines                                 17 … 97             97 ns
    """
    parts = make(PartsSetup(**TWO))
    assert parts.read(0, 0, 0, 3.0) == 6 * NS
    assert parts.read(1 * NS, 1, 0, 1.0) == 9 * NS
    assert parts.hand_over(2 * NS, 0, 1, 1.0) == 62 * NS
    assert parts.hand_over(3 * NS, 0, 1, 10.0) == 97 * NS
    assert parts.hand_over(5 * NS, 1, 1, 1.0) == 25 * NS
    counts = parts.counts_at(1_000 * NS)
    assert counts["memory_lines"].tolist() == [4, 0]
    assert counts["memory_done"].tolist() == [8 * NS, 0]
    assert counts["link_lines"].tolist() == [12, 0]
    assert counts["link_done"].tolist() == [96 * NS, 12 * NS]
    parts.start_counting(1_000 * NS)
    assert not any(found.any() for found in parts.counts_at(2_000 * NS).values())


@BOTH
def test_latency_follows_the_load_of_the_last_window(make: Any) -> None:
    """40 µs of work in the first 100 µs: a load of 0.4, and 1.4 times the local latency."""
    parts = make(PartsSetup(**TWO))
    assert parts.latency_ps(0, 1, 0) == 150 * NS
    parts.read(0, 0, 0, 20_000.0)
    assert parts.latency_ps(100_000 * NS, 0, 0) == pytest.approx(140 * NS)
    assert parts.latency_ps(100_000 * NS, 1, 0) == pytest.approx(190 * NS)


@BOTH
def test_execution_is_interrupted(make: Any) -> None:
    """Work of 50 ns with 100 ns of misses before it; then again on a core that stands still for
    1 µs every 10 ns or so: at least once within 150 ns."""
    work = CoreWork(held=100.0 * NS, separate=50.0 * NS)
    parts = make(PartsSetup(**TWO))
    assert parts.execute(5, 1, work) == 5 + 150 * NS
    assert parts.counts_at(200 * NS)["busy"].tolist() == [0, 150 * NS]
    interrupted = TWO | {
        "interrupted_every_ps": 10.0 * NS,
        "interruption_ps": [1_000.0 * NS],
        "interruption_share": [1.0],
        "interruption_keys": [(1, 2), (3, 4)],
    }
    done = make(PartsSetup(**interrupted)).execute(0, 1, work)
    assert done >= 1_150 * NS
    assert done == _kernel.Parts(PartsSetup(**interrupted)).execute(0, 1, work)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50_000 * NS), st.integers(0, 1), st.integers(0, 1), st.integers(1, 2_000)
        ),
        max_size=30,
    )
)
def test_both_do_the_same(program: list[tuple[int, int, int, int]]) -> None:
    now, twins = 0, [kind(PartsSetup(**TWO)) for kind in (_kernel.Parts, reference.Parts)]
    for step, (pause, a, b, lines) in enumerate(program):
        now += pause
        call = "read" if step % 2 else "hand_over"
        ends = [getattr(parts, call)(now, a, b, float(lines)) for parts in twins]
        assert ends[0] == ends[1]
        assert twins[0].latency_ps(now, a, b) == twins[1].latency_ps(now, a, b)
        first, second = (parts.counts_at(now) for parts in twins)
        assert {name: found.tolist() for name, found in first.items()} == {
            name: found.tolist() for name, found in second.items()
        }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("write_ps", [1.0]),
        ("latency_ps", [1.0] * 3),
        ("handed_ps", [1.0]),
        ("load", [0.0]),
        ("link_request_ps", [1]),
        ("entering", [0]),
        ("predecessor", [0]),
        ("core_node", [0, 2]),
        ("interruption_keys", [(1, 2)]),
    ],
)
def test_what_does_not_fit_is_refused(field: str, value: list[float]) -> None:
    with pytest.raises(ValueError, match=field):
        _kernel.Parts(PartsSetup(**(TWO | {field: value})))


def test_a_machine_in_picoseconds(tmp_path: Any) -> None:
    """40 GB/s of memory: 1.6 ns a line; 10 GB/s of link: 7.2 ns, 0.8 ns a request."""
    machine = small(small_file(tmp_path, LOOKUP, nodes=2)).machine
    setup = parts_setup(CostModel(machine), place_workers(machine, np.array([0, 1, 1])))
    assert (setup.core_node, setup.core) == ([0, 1, 1], [0, 1, 2])
    assert setup.read_ps == pytest.approx([1.6 * NS] * 2)
    assert setup.write_ps == pytest.approx([1.46 * 1.6 * NS] * 2)
    assert (setup.link_data_ps, setup.link_request_ps) == ([7_200] * 2, [800] * 2)
    assert setup.latency_ps == pytest.approx([100 * NS, 150 * NS, 150 * NS, 100 * NS])
    parts = _kernel.Parts(setup)
    assert parts.hand_over(0, 0, 1, 100.0) == 720 * NS

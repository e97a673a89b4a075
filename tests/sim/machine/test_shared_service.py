"""Long pieces that share a machine max-min fair: kernel and reference, by hand and by laws.

Machine of the cases by hand: nodes 0 and 1 with cores 0, 1 and 2, 3; a controller reads a line in
1 ns and writes one in 2 ns; latency 100 ns from its own node, 200 ns from the other one; a line
takes a link (0: from node 0 to 1, 1: back) 4 ns, a request 1 ns.
"""

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim import _kernel
from numatwin.sim._kernel import ServiceMachine
from numatwin.sim.machine.reference import shared_service as reference
from numatwin.sim.machine.reference.service_machine import Loop, MemoryUse, PieceDemand
from numatwin.sim.machine.reference.shared_service import NEVER

NS = 1000
US = 1_000_000
MACHINE = ServiceMachine(
    read_ps=(1.0 * NS, 1.0 * NS),
    write_ps=(2.0 * NS, 2.0 * NS),
    latency_ps=(100.0 * NS, 200.0 * NS, 200.0 * NS, 100.0 * NS),
    load=(0.0, 1.0),
    load_ratio=(1.0, 1.0),
    core_node=(0, 0, 1, 1),
    core_threads=(1, 1, 1, 1),
    data_ps=(4 * NS, 4 * NS),
    request_ps=(1 * NS, 1 * NS),
    entering=(-1, 0, 1, -1),
    predecessor=(-1, 0, 1, -1),
    vertices=2,
    limits=1,
)


def one_node(line_ps: float, latency_ps: float, core_threads: tuple[int, ...]) -> ServiceMachine:
    """Its cores, and a controller whose latency does not follow its load."""
    return ServiceMachine(
        read_ps=(line_ps,),
        write_ps=(line_ps,),
        latency_ps=(latency_ps,),
        load=(0.0, 1.0),
        load_ratio=(1.0, 1.0),
        core_node=(0,) * len(core_threads),
        core_threads=core_threads,
    )


MAKERS = [_kernel.SharedService, reference.SharedService]
BOTH = pytest.mark.parametrize("make", MAKERS, ids=["kernel", "reference"])


def scan(slots: float = 200.0, home: int = 0) -> PieceDemand:
    """Reads lines of one node; a unit is a line."""
    return PieceDemand(memory=(MemoryUse(home, 1.0, slots=slots),))


def begin(
    service: Any, core: int, demand: PieceDemand, units: float, job: int = 0, now: int = 0
) -> Any:
    """Starts a piece; its name."""
    return service.start(now, core, service.demand(demand), units, job)


def played(service: Any, until: int = 10**9) -> list[tuple[int, int]]:
    """(time, job) of all pieces that end up to a time."""
    ended = []
    while (at := service.next_change()) <= until:
        while (job := service.finish(at)) is not None:
            ended.append((at, job))
    return ended


@BOTH
def test_a_scan_alone_goes_as_fast_as_its_misses_overlap(make: Any) -> None:
    """10 lines at a time, 100 ns each: a line every 10 ns."""
    service = make(MACHINE)
    begin(service, 0, scan(slots=10), 1000, 7)
    assert played(service) == [(10_000 * NS, 7)]
    service.count(20_000 * NS)
    assert (service.lines_read(0), service.controller_ps(0)) == (1000, 1000 * NS)
    assert [service.core_busy(core) for core in range(4)] == [10_000 * NS, 0, 0, 0]


@BOTH
@pytest.mark.parametrize(
    ("units", "slots", "lines", "ended"),
    [
        # Each could read 2 lines a ns. Together 1: half each until the shorter one ends.
        #   1000 ns  500 left of scan 0: 1 a ns; the 500 lines of scan 1 are read
        ((1000, 500), 200, 1.0, [(1000, 1), (1500, 0)]),
        # Scan 0 has 10 lines under way: 0.1 a ns. Scan 1 gets 0.9, and all when scan 0 ends at
        # 900 ns: then 900 - 810 = 90 lines are left.
        ((90, 900), 10, 1.0, [(900, 0), (990, 1)]),
        # What a unit is does not matter: one of scan 1 is two lines. 0.5 lines a ns each.
        ((1000, 500), 200, 2.0, [(2000, 0), (2000, 1)]),
    ],
)
def test_two_scans_share_a_controller(
    make: Any, units: tuple[int, int], slots: float, lines: float, ended: list[tuple[int, int]]
) -> None:
    service = make(MACHINE)
    begin(service, 0, scan(slots), units[0], 0)
    begin(service, 1, PieceDemand(memory=(MemoryUse(0, lines, slots=200.0),)), units[1], 1)
    assert played(service) == [(at * NS, job) for at, job in ended]


@BOTH
def test_a_scan_that_crosses_a_link(make: Any) -> None:
    """From core 2 a line of node 0 takes link 0 4 ns: 0.25 a ns; the local scan gets 0.75."""
    service = make(MACHINE)
    begin(service, 2, scan(), 100, 0)
    begin(service, 0, scan(), 300, 1)
    assert played(service) == [(400 * NS, 0), (400 * NS, 1)]
    service.count(400 * NS)
    # Lines on link 0, requests on link 1.
    assert (service.link_ps(0), service.link_ps(1)) == (400 * NS, 100 * NS)


@BOTH
@pytest.mark.parametrize(("slots", "line_ns"), [(10, 5.0), (20, 5.0), (8, 12.5), (50, 2.0)])
def test_a_stream_gets_lines_as_fast_as_measured(make: Any, slots: float, line_ns: float) -> None:
    """Streams have at least 10 lines of 100 ns under way, and get each in 5 ns at most."""
    known = {"stream_slots": (10.0, 10.0), "line_max_ps": (5.0 * NS, 0.0, 0.0, 0.0)}
    service = make(MACHINE.replaced(**known))
    begin(service, 0, scan(slots), 1000)
    begin(service, 2, scan(slots, home=1), 1000, 1)  # its node's streams were not measured
    assert played(service) == [(1000 * line_ns * NS, 0), (max(100 / slots * 1000, 2000) * NS, 1)]


@BOTH
def test_work_hides_the_time_of_a_stream_in_part(make: Any) -> None:
    """Lines of 10 ns, and 10 ns of work each: with a stall of 0.3 it takes 13 ns. Of lines that
    are no stream all is hidden. By hand for work of 5 ns: 10 (1 + 0.9 / 8 / 1.75)."""
    known = {"stream_slots": (10.0, 10.0), "line_max_ps": (0.0,) * 4, "stream_stall": (0.3, 0.0)}
    for slots, work_ns, line_ns in ((10, 10.0, 13.0), (5, 20.0, 20.0), (10, 5.0, 10.0 + 4.5 / 7.0)):
        service = make(MACHINE.replaced(**known))
        name = begin(service, 0, scan(slots)._replace(instructions_ps=work_ns * NS), 1000)
        assert service.rate(name) * NS == pytest.approx(1.0 / line_ns)


@BOTH
def test_lines_wait_before_a_link(make: Any) -> None:
    """Of M/D/1 with lines of 4 ns, where the link is busy for 0.8 of the time: 4 * 0.8 / (2 * 0.2)
    = 8 ns. With 41.6 lines under way for 208 ns each that is the load: 0.2 lines a ns. In the first
    window nothing is known yet: 0.208. Waits follow within 1 ns, a hundredth of a latency. Who
    reads at home does not wait.
    """
    service = make(MACHINE)
    far = begin(service, 2, scan(slots=41.6), 1e6)
    near = begin(service, 0, scan(slots=10), 1e6, 1)
    assert service.rate(far) * NS == pytest.approx(0.208)
    assert not played(service, 1000 * US)
    assert service.rate(far) * NS == pytest.approx(0.2, rel=0.006)
    assert service.rate(near) * NS == pytest.approx(0.1)


@BOTH
def test_written_lines_go_to_their_home(make: Any) -> None:
    """A copy on core 2: reads a line of its node, writes one of node 0: 4 ns of link 1 a line."""
    service = make(MACHINE)
    copy = PieceDemand(memory=(MemoryUse(1, 1.0, slots=200), MemoryUse(0, 0.0, 1.0)))
    begin(service, 2, copy, 100)
    assert played(service) == [(400 * NS, 0)]
    service.count(400 * NS)
    assert (service.lines_read(1), service.lines_written(0)) == (100, 100)
    assert (service.controller_ps(0), service.controller_ps(1)) == (200 * NS, 100 * NS)
    assert (service.link_ps(0), service.link_ps(1)) == (100 * NS, 400 * NS)


@BOTH
def test_a_piece_moves_to_another_node_in_the_middle(make: Any) -> None:
    """A scan of 1000 local lines, one a ns, moves at 400 ns to the other node: 600 are left, of
    4 ns each."""
    service = make(MACHINE)
    piece = begin(service, 0, scan(), 1000, 0)
    service.move(400 * NS, piece, 2)
    assert service.remaining(piece) == 600
    assert service.rate(piece) == 0.25 / NS
    assert played(service) == [(2800 * NS, 0)]
    service.count(2800 * NS)
    assert [service.core_busy(core) for core in range(4)] == [400 * NS, 0, 2400 * NS, 0]
    assert (service.lines_read(0), service.link_ps(0)) == (1000, 2400 * NS)


@BOTH
def test_a_piece_that_moves_away_leaves_room(make: Any) -> None:
    """Two scans of 1000 lines on node 0's memory. At 1000 ns one has moved to the other node, where
    the link gives it 0.25 a ns: the other one gets 0.75 and ends after 500 / 0.75 ns more."""
    service = make(MACHINE)
    first = begin(service, 0, scan(), 1000, 0)
    begin(service, 1, scan(), 750, 1)
    service.move(1000 * NS, first, 3)
    # 250 / 0.75 = 333 1/3 ns; then 500 - 83 1/3 lines are left, at 0.25 a ns.
    assert played(service) == [(1_333_334, 1), (3000 * NS, 0)]


@BOTH
def test_threads_of_a_core_share_its_pipeline_and_slots(make: Any) -> None:
    """Two tasks of instructions, 1 ns a unit: half each. Then a scan of 10 slots beside a task."""
    service = make(MACHINE.replaced(core_threads=(2, 1, 1, 1)))
    begin(service, 0, PieceDemand(instructions_ps=1 * NS), 100, 0)
    begin(service, 0, PieceDemand(instructions_ps=1 * NS), 200, 1)
    assert played(service) == [(200 * NS, 0), (300 * NS, 1)]
    begin(service, 0, PieceDemand(instructions_ps=1 * NS), 100, 2, now=1000 * NS)
    begin(service, 0, scan(slots=10), 20, 3, now=1000 * NS)
    assert played(service) == [(1100 * NS, 2), (1200 * NS, 3)]


@BOTH
def test_separate_instructions_overlap_with_nothing(make: Any) -> None:
    """A unit: 5 ns apart from 10 ns of misses that overlap with 8 ns of instructions."""
    service = make(MACHINE)
    demand = PieceDemand(8.0 * NS, 5.0 * NS, (MemoryUse(0, 1.0, slots=10.0),))
    begin(service, 0, demand, 100)
    assert played(service) == [(1500 * NS, 0)]


@BOTH
def test_latency_follows_load(make: Any) -> None:
    """A line takes the controller 0.5 ns; latency triples up to full load. A scan of 100 slots.

    In the first window a line takes 100 ns / 100 = 1 ns: load 0.5 at latency 1, so that 0.5 * 1 is
    under way. Load x with latency 1 + 2 x has as much under way where x (1 + 2 x) = 0.5: latency
    1 + 2 x = (1 + sqrt 5) / 2. So it stays: as much is under way in the next window.

    window            line takes
    0 ... 100 us      1 ns
    100 us ...        1.618 ns      40,000 or 400,000 lines are left
    """
    latency = (1 + 5**0.5) / 2
    for lines in (140_000, 500_000):
        service = make(
            MACHINE.replaced(read_ps=(0.5 * NS, 0.5 * NS), load=(0.0, 1.0), load_ratio=(1.0, 3.0))
        )
        begin(service, 0, scan(slots=100), lines)
        assert played(service) == [(100 * US + ceil((lines - 100_000) * latency * NS), 0)]
        assert service.wait_ps(0) == pytest.approx((latency - 1) * 100 * NS)


@BOTH
def test_latency_of_a_full_controller_is_that_of_full_load(make: Any) -> None:
    """Two scans of 200 slots ask for 2 lines a ns each; 1 is served: each has one in 2 ns. So the
    latency rises to 300 ns, at which they still ask for 0.67 a ns each: nothing changes."""
    service = make(MACHINE.replaced(load=(0.0, 1.0), load_ratio=(1.0, 3.0)))
    for core in (0, 1):
        begin(service, core, scan(slots=200), 2_000_000, core)
    assert played(service, 10**10) == [(4000 * US, 0), (4000 * US, 1)]
    assert service.wait_ps(0) == pytest.approx(200 * NS, rel=0.02)


@BOTH
def test_a_load_that_waits_do_not_slow_sets_the_latency_of_its_load(make: Any) -> None:
    """Instructions of 2 ns a line hide the misses: load 0.5 whatever the latency, which comes to
    that of load 0.5 (2), to within the part by which changes are left out."""
    service = make(MACHINE.replaced(load=(0.0, 1.0), load_ratio=(1.0, 3.0)))
    demand = PieceDemand(2.0 * NS, 0.0, (MemoryUse(0, 1.0, slots=200),))
    begin(service, 0, demand, 1_000_000)
    assert played(service) == []
    assert service.wait_ps(0) == pytest.approx(100 * NS, abs=4 * NS)


@BOTH
def test_a_cancelled_piece_ends_early(make: Any) -> None:
    service = make(MACHINE)
    first = begin(service, 0, scan(), 1000, 0)
    begin(service, 1, scan(), 1000, 1)
    assert service.cancel(800 * NS, first) == 600
    assert played(service) == [(1400 * NS, 1)]
    service.count(1400 * NS)
    assert service.lines_read(0) == 1400
    assert service.next_change() == NEVER


@BOTH
def test_a_core_without_a_thread_left_is_refused(make: Any) -> None:
    service = make(MACHINE)
    begin(service, 0, scan(), 10, 0)
    other = begin(service, 1, scan(), 10, 1)
    with pytest.raises(RuntimeError, match="core 0 has no thread left"):
        begin(service, 0, scan(), 10, 2)
    with pytest.raises(RuntimeError, match="core 0 has no thread left"):
        service.move(0, other, 0)
    assert played(service) == [(20 * NS, 0), (20 * NS, 1)]


def test_bad_pieces_are_refused_by_name() -> None:
    service = _kernel.SharedService(MACHINE)
    for demand, name in (
        (PieceDemand(-1.0), "instructions_ps"),
        (PieceDemand(1.0, -1.0), "separate_ps"),
        (PieceDemand(), "demand"),
        (scan(slots=0), "slots"),
        (scan(home=2), "memory"),
    ):
        with pytest.raises(ValueError, match=name):
            service.demand(demand)
    good = service.demand(scan())
    with pytest.raises(ValueError, match="units"):
        service.start(0, 0, good, -1.0, 0)
    with pytest.raises(ValueError, match="demand"):
        service.start(0, 0, good + 1, 1.0, 0)
    with pytest.raises(ValueError, match="core"):
        service.start(0, 4, good, 1.0, 0)
    with pytest.raises(IndexError, match="no piece 3 is running"):
        service.move(0, 3, 1)
    for load, ratio in (((0.0,), (1.0,)), ((0.5, 0.5), (1.0, 2.0))):
        with pytest.raises(ValueError, match="load_ratio: expected at least two rising loads"):
            _kernel.SharedService(MACHINE.replaced(load=load, load_ratio=ratio))


USES = st.lists(
    st.builds(
        MemoryUse,
        st.integers(0, 1),
        st.sampled_from((0.0, 1.0, 2.5)),
        st.sampled_from((0.0, 0.5, 3.0)),
        st.sampled_from((1.0, 4.0, 20.0, 200.0)),
    ),
    max_size=3,
).map(tuple)
DEMANDS = st.builds(
    PieceDemand,
    st.sampled_from((10.0, 300.0, 3000.0)),
    st.sampled_from((0.0, 100.0)),
    USES,
    st.lists(st.builds(Loop, st.sampled_from((0.0, 200.0)), USES), max_size=2).map(tuple),
    held=st.sampled_from(((), ((0, 0.5),), ((0, 0.25), (0, 0.75)))),
).map(lambda d: d._replace(held=tuple((lock, part * d.separate_ps) for lock, part in d.held)))
PIECES = st.tuples(DEMANDS, st.floats(0, 3e5))


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((0, 1, 40 * NS, 30 * US, 150 * US)),
            st.one_of(PIECES, st.booleans()),
            st.integers(0, 3),
        ),
        max_size=25,
    ),
    st.sampled_from(((), (10.0, 0.0), (100.0, 300.0))),
    st.booleans(),
    st.sampled_from((0.0, 1.0, 10.0, 200.0)),
    st.sampled_from((0.0, 1.0 / 3.0)),
)
def test_kernel_and_reference_agree_and_nothing_is_lost(
    steps: list[tuple[int, tuple[PieceDemand, float] | bool, int]],
    entries: tuple[float, ...],
    in_memory: bool,
    streams: float,
    stall: float,
) -> None:
    """Pieces begin, move and are cancelled at any time, on cores of one and two threads, under a
    curve of loaded latency, where home agents have many, few or unlimited entries, with and without
    a directory in memory, and streams as fast as measured, whose time work hides whole or in part:
    the same ends to the picosecond; lines read and written are those of the pieces, and nothing is
    busy for longer than time passed."""
    machine = MACHINE.replaced(
        core_threads=(2, 1, 2, 1),
        load=(0.0, 0.5, 1.0),
        load_ratio=(1.0, 1.5, 4.0),
        entries=entries,
        directory_in_memory=in_memory,
        stream_slots=(streams, 2 * streams) if streams else (),
        line_max_ps=(2.0 * NS, 0.0, 9.0 * NS, 3.0 * NS) if streams else (),
        stream_stall=(stall, 0.5) if streams else (),
    )
    both: list[Any] = [make(machine) for make in MAKERS]
    running: dict[
        int, tuple[Any, int, tuple[PieceDemand, float]]
    ] = {}  # by job: names, core, piece
    read, written, now, jobs = np.zeros(2), np.zeros(2), 0, 0

    def tell(demand: PieceDemand, units: float) -> None:
        for home, lines_read, lines_written, _ in demand.memory:
            read[home] += units * lines_read
            written[home] += units * lines_written

    def go_on(until: int) -> None:
        ended = [played(service, until) for service in both]
        assert ended[0] == ended[1]
        assert both[0].entry_wait_ps(0) == both[1].entry_wait_ps(0)
        for _, job in ended[0]:
            tell(*running.pop(job)[2])

    for after, what, core in steps:
        now += after
        go_on(now)
        full = sum(where == core for _, where, _ in running.values()) == machine.core_threads[core]
        if isinstance(what, tuple):
            if not full:
                names = [begin(service, core, *what, jobs, now=now) for service in both]
                running[jobs] = names, core, what
                jobs += 1
        elif running:
            job = next(iter(running))
            names, where, piece = running[job]
            if what and (where == core or not full):
                for service, name in zip(both, names, strict=True):
                    service.move(now, name, core)
                running[job] = names, core, piece
            elif not what:
                left = [
                    service.cancel(now, name) for service, name in zip(both, names, strict=True)
                ]
                assert left[0] == left[1]
                tell(piece[0], piece[1] - left[0])
                del running[job]
        go_on(now)
    now += 10**6 * US
    go_on(now)
    assert not running
    for service in both:
        service.count(now)
        np.testing.assert_allclose(
            [service.lines_read(k) for k in (0, 1)], read, rtol=1e-9, atol=1e-6
        )
        np.testing.assert_allclose(
            [service.lines_written(k) for k in (0, 1)], written, rtol=1e-9, atol=1e-6
        )
        assert all(service.controller_ps(k) <= now * (1 + 1e-9) for k in (0, 1))
        assert all(service.link_ps(k) <= now * (1 + 1e-9) for k in (0, 1))
        assert all(service.core_busy(core) <= 2 * now for core in range(4))


@BOTH
def test_mean_time_of_shared_scans(make: Any) -> None:
    """Scans of one length come at random and share a controller equally: M/G/1 processor sharing,
    mean time s / (1 - rho) whatever the lengths (Kleinrock, Queueing Systems II, 4.4), within the
    99.9 % interval of 12 independent runs."""
    rho, lines = 0.6, 1000
    machine = one_node(1.0 * NS, 0.0, (1000,))
    means = []
    for seed in range(12):
        random = np.random.Generator(np.random.Philox(seed))
        arrivals = np.cumsum(random.exponential(lines * NS / rho, 2500)).astype(int).tolist()
        service = make(machine)
        ends: list[tuple[int, int]] = []
        for job, now in enumerate(arrivals):
            ends += played(service, now)
            begin(service, 0, scan(), lines, job, now)
        ends += played(service, 2 * arrivals[-1])
        means.append(np.mean([end - arrivals[job] for end, job in ends if job >= 300]))
    expected = lines * NS / (1 - rho)
    half = 4.437 * np.std(means, ddof=1) / np.sqrt(len(means))  # Student's t, 11 degrees, 99.9 %
    assert half < 0.15 * expected
    assert abs(np.mean(means) - expected) <= half


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(1, 1e4), st.sampled_from((5.0, 20.0, 100.0))), max_size=8),
    st.sampled_from((0.5, 0.9)),
)
def test_a_faster_controller_slows_nobody(scans: list[tuple[float, float]], faster: float) -> None:
    """Of pieces that share one controller alone (with several, one that gains may slow others)."""
    ends = []
    for read_ps in (1.0 * NS, faster * NS):
        machine = one_node(read_ps, 100.0 * NS, (1,) * len(scans))
        service = _kernel.SharedService(machine)
        for job, (lines, slots) in enumerate(scans):
            begin(service, job, scan(slots=slots), lines, job)
        ends.append({job: end for end, job in played(service)})
    assert ends[0].keys() == ends[1].keys() == set(range(len(scans)))
    assert all(ends[1][job] <= ends[0][job] + 1 for job in ends[0])


@BOTH
def test_a_short_one_of_a_class_ends_first_and_others_go_on(make: Any) -> None:
    """Three scans of one demand share a controller; one comes later, one is cancelled.

    time       lines/ns   left of 0, 1, 2
    0          1/2        600, 1000, -
    600 ns     1/3        300, 700, 900     2 comes
    1500 ns    1/2        -, 400, 600       0 has ended
    1700 ns    1          -, 300, -         2 is cancelled, with 500 left
    2000 ns               1 ends
    """
    service = make(MACHINE.replaced(core_node=(0, 0, 0, 1)))
    begin(service, 0, scan(), 600, 0)
    begin(service, 1, scan(), 1000, 1)
    late = begin(service, 2, scan(), 900, 2, now=600 * NS)
    assert played(service, 1600 * NS) == [(1500 * NS, 0)]
    assert service.cancel(1700 * NS, late) == pytest.approx(500)
    assert played(service) == [(2000 * NS, 1)]


@BOTH
def test_traffic_by_node_and_home(make: Any) -> None:
    """Core 0 (node 0) reads 100 lines of node 1 and writes 50 there; core 2 reads 30 of its own."""
    service = make(MACHINE)
    begin(service, 0, PieceDemand(memory=(MemoryUse(1, 1.0, 0.5, 10.0),)), 100, 0)
    begin(service, 2, scan(home=1), 30, 1)
    assert len(played(service)) == 2
    service.count(10**9)
    found = [[service.lines(node, home) for home in (0, 1)] for node in (0, 1)]
    assert found == [[0, 150], [0, 30]]


@settings(deadline=None)
@given(
    st.lists(st.tuples(DEMANDS, st.floats(1, 1e5)), min_size=1, max_size=4),
    st.lists(st.integers(0, 400 * US), max_size=20),
)
def test_counting_in_between_changes_nothing(
    pieces: list[tuple[PieceDemand, float]], looks: list[int]
) -> None:
    """A sampler may call ``count`` at any time: ends and totals keep all their bits."""
    machine = MACHINE.replaced(load=(0.0, 0.5, 1.0), load_ratio=(1.0, 1.5, 4.0))
    plain, sampled = _kernel.SharedService(machine), _kernel.SharedService(machine)
    for service in (plain, sampled):
        for core, (demand, units) in enumerate(pieces):
            begin(service, core, demand, units, core)
    ends = []
    for now in sorted(looks):
        ends += played(sampled, now)
        sampled.count(now)
    ends += played(sampled)
    assert ends == played(plain)
    for service in (plain, sampled):
        service.count(10**9)
    for home in (0, 1):
        assert sampled.controller_ps(home) == plain.controller_ps(home)
        assert sampled.lines(0, home) == plain.lines(0, home)

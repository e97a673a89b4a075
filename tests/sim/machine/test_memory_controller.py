"""Memory controllers, by hand and against queueing theory; whole traces of ERIS hold the kernel to
them."""

import numpy as np

from numatwin.sim.machine.reference.memory_controller import LoadCurve, MemoryController

NS = 1000
US = 1_000_000
CURVE = LoadCurve((0.0, 0.5, 1.0), (1.0, 1.5, 4.0))


def test_pieces_wait_for_those_before_them() -> None:
    """A read takes 4 ns, a write 6 ns.

    time   piece                 served
    0      10 reads              0 … 40 ns
    10 ns  4 reads, 2 writes     40 … 40 + 16 + 12 = 68 ns
    100    1 write               100 … 106 ns
    """
    controller = MemoryController(4 * NS, 6 * NS, 80 * NS)
    assert controller.serve(0, 10) == 40 * NS
    assert controller.serve(10 * NS, 6, 2) == 68 * NS
    assert [controller.done(now * NS) for now in (10, 50, 80)] == [10 * NS, 50 * NS, 68 * NS]
    assert controller.serve(100 * NS, 1, 1) == 106 * NS
    assert [controller.done(now * NS) for now in (103, 200)] == [71 * NS, 74 * NS]
    assert (controller.lines, controller.arrived) == (17, 74 * NS)
    controller.start_counting(103 * NS)
    assert (controller.lines, controller.arrived) == (0, 0)
    assert controller.done(110 * NS) == 3 * NS


def test_a_controller_without_limit_counts_lines_only() -> None:
    controller = MemoryController(0, 0, 80 * NS)
    assert controller.serve(5, 1e9) == 5
    assert (controller.lines, controller.arrived) == (1e9, 0)


def test_latency_follows_the_load_of_the_last_window() -> None:
    """Windows of 100 µs; the latency without load is 80 ns.

    window        work            load   ratio   wait
    0 … 100 µs    50 µs           0.5    1.5     40 ns
    100 … 300 µs  150 µs          0.75   2.75    140 ns
    300 … 400 µs  200 µs          1      4       240 ns
    """
    controller = MemoryController(4 * NS, 6 * NS, 80 * NS)
    controller.serve(0, 12_500)
    assert controller.wait_ps(99 * US, CURVE) == 0  # the first window is not over
    assert controller.wait_ps(100 * US, CURVE) == 40 * NS
    controller.serve(150 * US, 37_500)
    assert controller.wait_ps(199 * US, CURVE) == 40 * NS
    assert controller.wait_ps(300 * US, CURVE) == 140 * NS  # nobody asked before
    controller.serve(301 * US, 50_000)
    assert controller.wait_ps(400 * US, CURVE) == 240 * NS


def test_mean_wait_is_that_of_one_server() -> None:
    """Poisson arrivals of one line each: M/D/1, mean time s + s rho / (2 (1 - rho))
    (Pollaczek-Khinchine), within the 99.9 % interval of 40 independent runs."""
    rho, service = 0.7, 4 * NS
    means = []
    for seed in range(40):
        random = np.random.Generator(np.random.Philox(seed))
        controller = MemoryController(service, service, 0)
        arrivals = np.cumsum(random.exponential(service / rho, 20_000)).astype(int)
        took = [controller.serve(now, 1) - now for now in arrivals.tolist()]
        means.append(np.mean(took[2_000:]))
    expected = service + service * rho / (2 * (1 - rho))
    half = 3.558 * np.std(means, ddof=1) / np.sqrt(len(means))  # Student's t, 39 degrees, 99.9 %
    assert half < 0.02 * expected
    assert abs(np.mean(means) - expected) <= half

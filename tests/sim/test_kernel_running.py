"""Running models of the kernel from Python: stop, continue, Ctrl-C, threads, failures."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from numatwin.sim._kernel import Durations, ModelError, QueueingNetwork
from numatwin.sim.kernel.streams import stream

pytestmark = pytest.mark.kernel

US = 10**6
END = 3_000_000 * US
HOUR = 3600 * 10**12  # more than any of these runs gets to


def queue(seed: int = 1, load: float = 0.9) -> QueueingNetwork:
    network = QueueingNetwork(seed)
    service = Durations.exponential(load * US)
    server = network.add_fifo(service, stream(seed, 0, "service"))
    network.add_source(server, Durations.exponential(US), stream(seed, 0, "arrivals"))
    return network


def facts(network: QueueingNetwork) -> object:
    sojourn = network.response_ps()
    return network.events, network.now_ps, sojourn.count, sojourn.mean, sojourn.quantile(0.99)


def test_it_stands_where_it_was_stopped_and_goes_on() -> None:
    one, other = queue(), queue()
    one.run(5000 * US)
    for until in (0, 1, 17 * US, 17 * US, 4000 * US, 5000 * US):
        other.run(until)
        assert other.now_ps == until
    assert facts(one) == facts(other)
    with pytest.raises(ValueError, match="until: expected a time from 5000000000 ps on"):
        one.run(10)
    one.run(5000 * US)
    assert facts(one) == facts(other)


def test_until_nothing_is_left() -> None:
    network = QueueingNetwork(1)
    first = network.add_fifo(Durations.deterministic(7), stream(1, 0, "first"), 2)
    network.add_customers(first, 5)
    network.run()
    # Two at a time: three rounds.
    assert (network.now_ps, network.pending, network.customers) == (21, 0, 0)


# A service of the longest time, again and again, leaves the clock's range.
def test_a_failure_names_seed_time_and_event() -> None:
    network = QueueingNetwork(seed=12345, replication=6)
    server = network.add_fifo(Durations.deterministic(2**55), stream(1, 0, "service"))
    network.set_route(server, [1.0], stream(1, 0, "route"))
    network.add_customers(server, 2)
    expected = (
        r"beyond 2\^62 ps .* in event service_ends of subject 0 "
        rf"\(seed 12345, replication 6, at {127 * 2**55} ps, event number 129\)"
    )
    with pytest.raises(ModelError, match=expected):
        network.run()
    with pytest.raises(ModelError, match="has failed before"):
        network.run()


def test_other_threads_go_on_and_are_kept_out() -> None:
    # With the GIL held, this thread would get one turn or two. Others may use this computer: at the
    # best of five times.
    for _ in range(5):
        network, refused = refused_meanwhile()
        assert set(refused) <= {"the model is being run by another thread"}
        if len(refused) > 5:
            break
    assert len(refused) > 5
    alone = queue()
    alone.run(END)
    assert network.events == alone.events


def refused_meanwhile() -> tuple[QueueingNetwork, list[str]]:
    """A network that another thread has run, and what this thread was told until it was done."""
    network = queue()
    failure: list[BaseException] = []

    def run() -> None:
        try:
            network.run(END)
        except BaseException as raised:  # pragma: no cover
            failure.append(raised)

    thread = threading.Thread(target=run)
    refused: list[str] = []
    thread.start()
    while thread.is_alive():
        try:
            network.reset_statistics()
        except RuntimeError as error:
            refused.append(str(error))
        time.sleep(0.001)
    thread.join()
    assert not failure
    return network, refused


# Interrupted five times or more, then on to the same end. Prints how long that took in the middle,
# in processor time, as others may use this computer.
INTERRUPTED = f"""
import os, signal, threading, time
import test_kernel_running as tests
network = tests.queue()
took = []
while len(took) < 5 or network.events <= 100_000:
    def interrupt():
        global sent
        sent = time.process_time()
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(0.06, interrupt)
    try:
        timer.start()
        network.run({HOUR})
        raise SystemExit("not interrupted")
    except KeyboardInterrupt:
        took.append(time.process_time() - sent)
    timer.join()
until = network.now_ps + tests.US
network.run(until)
alone = tests.queue()
alone.run(until)
assert tests.facts(network) == tests.facts(alone), (tests.facts(network), tests.facts(alone))
print(sorted(took)[len(took) // 2])
"""


def test_ctrl_c_stops_it_at_once_and_it_goes_on() -> None:
    here = __file__.rsplit("/", 1)[0]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=here, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda n, d, s: n.add_fifo(d, s, 0), "servers"),
        (lambda n, d, s: n.add_source(3, d, s), "station"),
        (lambda n, d, s: n.add_source(0, Durations.deterministic(0), s), "between"),
        (lambda n, d, s: n.set_route(0, [0.5, 0.6], s), "probability"),
        (lambda n, d, s: n.set_route(0, [1.1], s), "probability"),
        (lambda n, d, s: n.set_route(0, [-0.1], s), "probability"),
        (lambda n, d, s: n.sojourn_ps(2), "station"),
    ],
)
def test_networks_out_of_range_are_refused(
    make: Callable[[QueueingNetwork, Durations, object], object], message: str
) -> None:
    network = queue()
    with pytest.raises(ValueError, match=f"{message}: expected"):
        make(network, Durations.exponential(US), stream(1, 0, "any"))
    network.run(US)
    with pytest.raises(ValueError, match="network: expected to be complete before it runs"):
        network.add_customers(0, 1)

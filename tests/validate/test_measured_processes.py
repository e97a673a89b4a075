"""Steps between processes: a second process that ends or stops costs its figures alone."""

import os
import signal
import threading
import time
from typing import Any

import pytest

from numatwin.engine_native._engine import HAS_UCX
from numatwin.engine_native.engine_process import EngineProcess
from numatwin.engine_native.transports import ucx_settings
from numatwin.inputs import InputError
from numatwin.validate.measure.bench import QUICK, Bench
from numatwin.validate.measure.layout import host_layout
from numatwin.validate.systems.commits import measured_processes

LAYOUT = host_layout()
CPUS = [cpu for node in LAYOUT.starts for cpu in node.cores][:2]
# Many windows: there is time to find the second process.
WINDOWS = 2_000

pytestmark = [
    pytest.mark.skipif(len(CPUS) < 2, reason="a second process needs a processor"),
    pytest.mark.skipif(not HAS_UCX, reason="numatwin was built without UCX"),
]


def signalled(function: str, arguments: tuple[Any, ...], sent: int, after: int) -> str:
    """The error of a measurement whose second processes, from the one that comes ``after`` so many
    others on, get a signal."""
    process = EngineProcess(function, {"streams": [0] * 4} | ucx_settings("shm"), arguments)
    children: list[int] = []

    def send() -> None:
        while not process.ended:
            try:
                with open(f"/proc/{process.pid}/task/{process.pid}/children") as listed:
                    found = [int(text) for text in listed.read().split()]
            except OSError:
                return
            for child in set(found) - set(children):
                children.append(child)
                if len(children) > after:
                    os.kill(child, sent)
            time.sleep(0.001)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(InputError) as failure:
            process.result(40.0)
    finally:
        process.close()
        sender.join()
    assert len(children) > after
    return str(failure.value)


@pytest.mark.slow
def test_a_second_process_that_is_stopped() -> None:
    """Nobody waits for it for ever; nor does the session, which leaves a minute to each."""
    blocks = ([136], [1 << 18], CPUS, WINDOWS, 100_000)
    told = signalled("measure_blocks", blocks, signal.SIGSTOP, 0)
    assert told == "the second process has not answered for 5 s"
    # The first one only takes turns on the processor; the next answer messages.
    turns = (64, CPUS, WINDOWS, 100_000)
    told = signalled("measure_turns", turns, signal.SIGSTOP, 1)
    assert told == "the second process has not answered for 5 s"


@pytest.mark.slow
def test_a_second_process_that_ends() -> None:
    blocks = ([136], [1 << 18], CPUS, WINDOWS, 100_000)
    assert signalled("measure_blocks", blocks, signal.SIGKILL, 0) == "the second process ended"
    turns = (64, CPUS, WINDOWS, 100_000)
    told = signalled("measure_turns", turns, signal.SIGKILL, 1)
    assert told == "the second process has not answered for 5 s"


def test_what_cannot_be_measured_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(function: str, transport: str, arguments: object) -> list[dict[str, Any]]:
        if function == missing:
            raise InputError("the second process has not answered for 5 s")
        return []

    monkeypatch.setattr(measured_processes, "_call", fails)
    missing = "measure_blocks"
    bench = Bench(LAYOUT, QUICK)
    list(measured_processes.measure(bench))
    reason = "the second process has not answered for 5 s"
    assert bench.warnings == [f"processes: not measured: {reason}"]
    missing = "measure_turns"
    bench = Bench(LAYOUT, QUICK)
    list(measured_processes.measure(bench))
    assert bench.warnings == [
        f"processes: not measured over {transport}: {reason}" for transport in ("shm", "tcp")
    ]

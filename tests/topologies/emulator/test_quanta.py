"""The guest's processors keep in step: cases of the plugin, and a guest on too small a host."""

import contextlib
import os
import subprocess
import threading
from pathlib import Path

import pytest
from emulator_needed import needs_emulator

from numatwin.topologies import load_machine
from numatwin.topologies.emulator import guest_machine
from numatwin.topologies.emulator.counting import SOURCES, Counting, run_counted

HARNESS = Path(__file__).with_name("quanta_harness.cpp")
CASES = (
    "nobody_is_ahead",
    "waits_until_the_other_has_come",
    "idle_ones_are_not_waited_for",
    "goes_on_when_the_last_one_becomes_idle",
    "a_nap_is_no_new_quantum",
    "patience_ends",
)
LIMIT_S = 120


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("quanta") / "harness"
    flags = ["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
    command = ["g++", *flags, f"-I{SOURCES}", "-o", str(program), str(HARNESS), "-pthread"]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize("case", CASES)
def test_cases_under_thread_sanitizer(harness: Path, case: str) -> None:
    # Without address randomization: it may take addresses that the sanitizer needs.
    command = ["setarch", "-R", str(harness), case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (0, "")


# Begins when all have come: who came first would be alone for a while.
ADD_UP = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.close(os.open(sys.argv[2] + sys.argv[1], os.O_CREAT))
while not all(os.path.exists(sys.argv[2] + str(k)) for k in range(int(sys.argv[3]))):
    time.sleep(0.01)
words, until = list(range(1000)), time.monotonic() + 6
while time.monotonic() < until:
    sum(words)
"""
PROCESSORS = 3
TICKS_BUSY = 30


def busiest_threads() -> list[tuple[int, int]]:
    """(ticks of processor time, thread) of QEMU, the busiest first."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            for thread in Path(f"/proc/{child}/task").iterdir():
                with contextlib.suppress(OSError):
                    fields = (thread / "stat").read_text().rpartition(")")[2].split()
                    found.append((int(fields[11]), int(thread.name)))
    return sorted(found, reverse=True)[:PROCESSORS]


def share_unevenly(stop: threading.Event) -> None:
    """The guest's processors share one of the host's, by weights of 9, 3 and 1 (``nice``)."""
    core = min(os.sched_getaffinity(0))
    while not stop.wait(0.1):
        threads = busiest_threads()
        if len(threads) == PROCESSORS and threads[-1][0] > TICKS_BUSY:
            for at, (_, thread) in enumerate(threads):
                os.sched_setaffinity(thread, {core})
                os.setpriority(os.PRIO_PROCESS, thread, 5 * at)
            return


@needs_emulator
@pytest.mark.sweep
def test_how_much_each_processor_does_is_not_the_hosts_choice(tmp_path: Path) -> None:
    """Each adds up for the same time: without steps, one does several times what another does,
    each time; with them not, unless the host keeps one waiting for longer than the others do."""
    assert any(reads_differ_by(tmp_path / str(k)) < 2 for k in range(3))


def reads_differ_by(folder: Path) -> float:
    """The most that one of the guest's processors reads, over the least."""
    folder.mkdir()
    guest = guest_machine(load_machine("amd-8n-ht"), nodes=PROCESSORS, scale=1 / 8)
    one = f"python3 -I -S -c '{ADD_UP}' $k {folder}/came- {PROCESSORS}"
    script = f"for k in $(seq 0 {PROCESSORS - 1}); do {one} & done; wait"
    stop = threading.Event()
    sharing = threading.Thread(target=share_unevenly, args=(stop,))

    done = run_counted(guest, ["sh", "-c", script], Counting(caches=False), booted=sharing.start)
    stop.set()
    sharing.join()
    assert done.run.status == 0, done.run.errors
    reads = done.traffic.counted.pairs["reads_user"].sum(axis=1)[:PROCESSORS]
    return float(reads.max() / max(reads.min(), 1))

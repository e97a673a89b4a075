"""What the engine tells of this host, against what Python and the kernel tell."""

import os
import threading
from pathlib import Path

import pytest

engine = pytest.importorskip("numatwin.engine_native._engine", reason="built without libnuma")
NODES = Path("/sys/devices/system/node")


def test_facts_of_this_host() -> None:
    facts = engine.host_facts()
    cpus = [cpu for node in facts.nodes for cpu in node.cpus]
    assert sorted(cpus) == sorted(os.sched_getaffinity(os.getpid()))
    assert facts.page_bytes == os.sysconf("SC_PAGE_SIZE")
    assert facts.transparent_huge_pages in {"always", "madvise", "never"}
    assert 0 < facts.available_bytes <= total_bytes(Path("/proc/meminfo"))
    # A node alone has all of it: some kernels count memory to a node bit by bit.
    for node in facts.nodes:
        alone = len(facts.nodes) == 1
        told = total_bytes(Path("/proc/meminfo") if alone else NODES / f"node{node.id}" / "meminfo")
        assert node.memory_bytes == pytest.approx(told, rel=0.1)


def total_bytes(file: Path) -> int:
    words = file.read_text(encoding="ascii").split()
    return int(words[words.index("MemTotal:") + 1]) * 1024


def test_a_thread_is_pinned_and_the_others_are_not() -> None:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    seen: list[set[int]] = []

    def work() -> None:
        engine.pin_thread(cpu)
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [{cpu}]
    assert os.sched_getaffinity(0) == before


def test_a_cpu_that_is_forbidden_is_named() -> None:
    with pytest.raises(ValueError, match=r"^CPU 8191 is not one that this process may use \(\d"):
        engine.pin_thread(8191)

"""Programs of known traffic in a guest, counted: node by node, within one in a thousand."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator_needed import needs_emulator

from numatwin.topologies import load_machine
from numatwin.topologies.emulator.counting import SOURCES, Counting, processor_nodes, run_counted
from numatwin.topologies.emulator.guest_machine import GuestMachine, guest_machine
from numatwin.topologies.emulator.traffic import Counts, Traffic

PROGRAMS = Path(__file__).parents[3] / "benchmarks" / "emulator_traffic" / "programs.c"
MIB = 1 << 20
OTHERS = 2000  # accesses
INTERRUPT_INSTRUCTIONS = 4000  # of the guest's kernel, at most; they come by the host's clock

pytestmark = needs_emulator


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, compiled."""
    target = tmp_path_factory.mktemp("programs") / "programs"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-I", SOURCES, "-o", target, PROGRAMS]
    subprocess.run([*map(str, command)], check=True)
    return target


def small(name: str, nodes: int | None = None) -> GuestMachine:
    """A guest with one processor per node and little memory."""
    machine = load_machine(name)
    count = len(machine.nodes) if nodes is None else nodes
    cores = max(node.cores for node in machine.nodes)
    return guest_machine(machine, nodes=nodes, scale=1 / cores, memory_bytes=count * 96 * MIB)


def counted(guest: GuestMachine, programs: Path, *steps: str, **more: Any) -> Traffic:
    """The traffic of the programs' regions, one after another."""
    script = " && ".join(f"{programs} {step}" for step in steps)
    found = run_counted(guest, ["sh", "-c", script], time_limit_s=300.0, **more)
    assert found.run.status == 0, found.run.errors
    assert found.traffic.regions is not None
    assert found.traffic.regions.regions == len(steps)
    return found.traffic


def check(counts: Counts, name: str, cpu_node: int, home: int, expected: int) -> None:
    """Within a thousandth of what the program does, and of what else may lie there: its own stack
    and code, and the guest's other programs that run meanwhile."""
    found = counts.pairs[name][cpu_node, home]
    assert 0.999 * expected <= found <= 1.001 * expected + OTHERS, name


def test_known_programs_on_eight_nodes(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each on a processor and a node of its own, 8 MiB twice: 2 Mi accesses to 256 Ki lines. No
    file is there while the guest runs, so that a kill cannot leave one behind, nor afterwards."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[list[Path]] = []
    traffic = counted(
        small("amd-8n-ht"),
        programs,
        "read 0 1 8 2",
        "write 1 2 8 2",
        "atomic 2 3 8 2",
        "copy 3 4 8 2 5",
        "random 4 6 8 4",
        "move 5 7 8 2 0",
        "bounce 6 6 1 8 7",
        booted=lambda: seen.append(list(tmp_path.iterdir())),
    )
    assert (seen, list(tmp_path.iterdir())) == ([[]], [])
    counts = traffic.counted
    words, lines = 2 * MIB, 8 * MIB // 64 * 2
    check(counts, "reads_user", 0, 1, words)
    check(counts, "read_bytes_user", 0, 1, 8 * words)
    check(counts, "read_misses_user", 0, 1, lines)
    check(counts, "writes_user", 1, 2, words)
    check(counts, "write_misses_user", 1, 2, lines)
    # A locked increment is a read and a write.
    check(counts, "reads_user", 2, 3, words)
    check(counts, "writes_user", 2, 3, words)
    check(counts, "write_misses_user", 2, 3, lines)
    check(counts, "reads_user", 3, 4, words)
    check(counts, "writes_user", 3, 5, words)
    check(counts, "read_misses_user", 3, 4, lines)
    check(counts, "write_misses_user", 3, 5, lines)
    # Each line once a round, in an order without locality.
    check(counts, "reads_user", 4, 6, 2 * lines)
    check(counts, "read_misses_user", 4, 6, 2 * lines)
    # Pages that move in the middle: half of it on each side.
    check(counts, "reads_user", 5, 7, words // 2)
    check(counts, "reads_user", 5, 0, words // 2)
    # 16 Ki lines, written on two nodes in turn: each turn takes them from the other's cache. Those
    # of the first turn are in the cache already.
    check(counts, "write_misses_user", 7, 6, 4 * MIB // 64)
    check(counts, "write_misses_user", 6, 6, 3 * MIB // 64)
    assert counts.pairs["transfers"][7, 6] == pytest.approx(4 * MIB // 64, rel=0.02)
    assert counts.pairs["transfers"][6, 7] == pytest.approx(3 * MIB // 64, rel=0.02)
    # What was written was written back, but for what the cache still holds.
    assert counts.pairs["write_backs"][1, 2] == pytest.approx(lines, rel=0.2)
    assert counts.broken_laws(8) == []
    assert counts.unknown == 0
    _check_links(traffic)


def _check_links(traffic: Traffic) -> None:
    """What crosses links is what pairs sent, once per hop."""
    data, messages = traffic.link_bytes()
    counts, hops = traffic.counted, traffic.machine.hops
    sent = counts.pairs["memory_reads"].T + counts.pairs["transfers"].T + counts.written_back
    header = traffic.machine.links[0].data_header_bytes
    assert data.sum() == pytest.approx(float((sent * hops).sum()) * (64 + header))
    link = traffic.machine.links[0]
    asked = counts.misses + counts.pairs["upgrades"] + counts.pairs["probes"]
    answered = counts.pairs["upgrades"].T + counts.written_back.T + counts.pairs["answers"]
    assert messages.sum() == pytest.approx(
        float((asked * hops).sum()) * link.request_bytes
        + float((answered * hops).sum()) * link.response_bytes
    )
    read, written = traffic.memory_bytes()
    assert read.sum() == 64 * counts.pairs["memory_reads"].sum()
    assert written.sum() == 64 * counts.written_back.sum()


@pytest.mark.sweep
@pytest.mark.parametrize("nodes", [16, 64])
def test_each_node_of_a_large_machine(programs: Path, nodes: int) -> None:
    """Every node's processor reads the memory of the one opposite to it."""
    guest = small("sgi-uv2000-64n", nodes)
    first = processor_nodes(guest).index
    pairs = [(node, nodes - 1 - node) for node in range(nodes)]
    traffic = counted(guest, programs, *(f"read {first(a)} {b} 4 1" for a, b in pairs))
    for node, home in pairs:
        check(traffic.counted, "reads_user", node, home, 4 * MIB // 8)
        check(traffic.counted, "read_misses_user", node, home, 4 * MIB // 64)
    assert np.trace(traffic.counted.pairs["reads_user"]) < 0.05 * nodes * 4 * MIB // 8


def executed(programs: Path, *words: str) -> tuple[dict[str, int], Traffic]:
    """What a program's region executed on two nodes, and all of the traffic."""
    guest, counting = small("opteron-4n", nodes=2), Counting(interval=10_000_000)
    traffic = run_counted(guest, [str(programs), *words], counting, time_limit_s=300.0).traffic
    assert traffic.regions is not None
    return {name: int(of.sum()) for name, of in traffic.regions.executed.items()}, traffic


def test_branches_are_mispredicted_where_chance_decides(programs: Path) -> None:
    """128 Ki branches: half of them where a generator decides, none where each is taken."""

    def mispredicted(what: str, expected: float) -> int:
        found, _ = executed(programs, what, "0", "0", "1", "1")
        ticks = INTERRUPT_INSTRUCTIONS * found["interruptions"]
        assert 0.9 * expected < found["instructions"] < 1.1 * expected + ticks
        return found["mispredictions"]

    words = MIB // 8
    assert mispredicted("guess", 7.5 * words) == pytest.approx(words / 2, rel=0.05)
    assert mispredicted("steady", 8 * words) < words / 100


def test_system_calls_and_fused_instructions_of_known_programs(programs: Path) -> None:
    """2 × 1024 calls that do nothing, each as many instructions of the kernel as when one was
    tried, but for interrupts; 128 Ki words in a loop of four instructions, the last two one."""
    found = {}
    for what in ("call", "read"):
        rounds = "2" if what == "call" else "1"
        found[what], traffic = executed(programs, what, "0", "0", "1", rounds)
        tried = traffic.whole.tried_call
    assert found["call"]["calls"] == 2048
    assert 50 < tried < 2000
    assert 1.0 <= found["call"]["call_instructions"] / (2048 * tried) < 1.2
    assert found["read"]["calls"] == 0
    words = MIB // 8
    assert words <= found["read"]["fused"] < 1.1 * words


@pytest.mark.sweep
def test_what_the_kernel_accesses_is_left_out(programs: Path) -> None:
    found = run_counted(
        small("amd-8n-ht", nodes=2),
        [str(programs), *["read", "0", "1", "8", "2"]],
        Counting(user_only=True),
        time_limit_s=300.0,
    )
    whole = found.traffic.whole
    assert sum(int(of.sum()) for name, of in whole.pairs.items() if "_kernel" in name) == 0
    assert found.traffic.regions is not None
    check(found.traffic.regions, "reads_user", 0, 1, 2 << 20)
    assert "what the kernel accesses is left out" in found.traffic.notes

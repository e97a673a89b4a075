"""Guests that are the machine of a file, and what runs in them."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from emulator_needed import needs_emulator
from guests import import_of_guest, pairs_of
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.topologies import build_machine, load_machine, machine_names
from numatwin.topologies.emulator import (
    GuestFailure,
    GuestMachine,
    GuestTimeout,
    Share,
    guest_machine,
    run_in_guest,
)
from numatwin.topologies.emulator.command_line import guest_slit, machine_arguments
from numatwin.topologies.emulator.image import Image
from numatwin.topologies.importers import import_machine

DATA = Path(__file__).parents[4] / "shared" / "data"


def small_guest(nodes: int = 1) -> GuestMachine:
    return guest_machine(load_machine("opteron-4n"), nodes=nodes, scale=1 / 128)


@needs_emulator
def test_a_command_runs_on_the_machine_s_nodes(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("seen\n")
    (tmp_path / "shared").mkdir()
    command = """
        cat words; echo of the guest > words; cat words
        cat /sys/devices/system/node/node*/distance /sys/devices/system/node/node*/cpulist
        cat; echo kept > shared/new; ls /sys/class/net; echo an error >&2; sleep 1000 & exit 7"""
    read, write = os.pipe()
    os.write(write, b"from the caller\n")
    os.close(write)
    done = run_in_guest(
        small_guest(nodes=2),
        ["sh", "-c", command],
        folder=tmp_path,
        shares=[Share(tmp_path / "shared", writable=True)],
        stdin=read,
        time_limit_s=60,
    )
    os.close(read)
    lines = ["seen", "of the guest", "10 15", "15 10", "0", "1", "from the caller", "lo"]
    assert (done.output.decode().splitlines(), done.errors) == (lines, b"an error\n")
    assert (done.status, done.out_of_memory) == (7, None)
    assert (tmp_path / "words").read_text() == "seen\n"
    assert (tmp_path / "shared" / "new").read_text() == "kept\n"


@needs_emulator
def test_a_command_that_hangs_is_ended() -> None:
    with pytest.raises(GuestTimeout, match=r"did not end within 0\.5 s") as failure:
        run_in_guest(small_guest(), ["sleep", "1000"], time_limit_s=0.5)
    assert failure.value.status == 124


@needs_emulator
def test_qemu_killed_is_reported_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(os.listdir("/dev/shm"))

    def kill() -> None:
        children = Path(f"/proc/self/task/{threading.main_thread().native_id}/children")
        for child in map(int, children.read_text().split()):
            if b"qemu" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGKILL)

    with pytest.raises(GuestFailure, match="did: killed by SIGKILL") as failure:
        run_in_guest(small_guest(), ["sleep", "1000"], booted=kill, time_limit_s=60)
    assert failure.value.status == 125
    new = set(os.listdir("/dev/shm")) - before
    assert not [name for name in new if "numatwin" in name or "qemu" in name]
    assert not list(tmp_path.iterdir())


def check_round_trip(guest: GuestMachine, folder: Path) -> None:
    """What the guest's system files say is what the machine file says."""
    found = import_of_guest(guest, folder)
    nodes = [guest.node(k) for k in range(len(guest.nodes))]
    assert [len(node.cpus) for node in found.nodes] == [node.threads for node in nodes]
    assert [node.cores for node in found.nodes] == [node.cores for node in nodes]
    sizes = [node.memory_bytes for node in found.nodes]
    assert all(size <= wanted for size, wanted in zip(sizes, guest.memory_bytes, strict=True))
    # A page has 64 bytes in the kernel, which takes some room besides, and more on each node.
    kernel_bytes = (160 + 4 * len(nodes)) << 20
    assert sum(sizes) >= sum(guest.memory_bytes) * 63 / 64 - kernel_bytes
    assert found.slit is not None
    np.testing.assert_array_equal(found.slit, guest_slit(guest))
    if guest.machine.slit is not None:
        np.testing.assert_array_equal(found.slit, pairs_of(guest, guest.machine.slit))
    rows = [k for k, node in enumerate(nodes) if node.threads]
    latency = pairs_of(guest, guest.machine.latency_ns)[rows]
    bandwidth = pairs_of(guest, guest.machine.bandwidth_Bps)[rows]
    np.testing.assert_allclose(found.latency_ns[rows], latency, rtol=0, atol=0.5)
    np.testing.assert_allclose(found.bandwidth_Bps[rows], bandwidth, rtol=1e-3)


@needs_emulator
def test_the_guest_is_the_machine(tmp_path: Path) -> None:
    """Five nodes, one of them of memory alone; latencies and bandwidths of all pairs."""
    guest = guest_machine(load_machine("epyc-2s-cxl"), scale=1 / 48, memory_bytes=4 << 30)
    assert [guest.node(k).threads for k in range(5)] == [1, 1, 1, 1, 0]
    check_round_trip(guest, tmp_path)


SCALES = {"fat-tree-64n": 1 / 16, "sgi-uv2000-64n": 1 / 8, "xeon-32s-hsw": 1 / 32}


@needs_emulator
@pytest.mark.sweep
@pytest.mark.parametrize("name", [n for n in machine_names() if n != "hypercube-1024n"])
def test_every_bundled_machine_makes_the_round_trip(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    check_round_trip(
        guest_machine(machine, scale=SCALES.get(name, 1 / 16), memory_bytes=4 << 30), tmp_path
    )


@needs_emulator
@pytest.mark.sweep
@pytest.mark.parametrize(
    "path",
    [path for path in sorted((DATA / "hwloc").glob("*")) if path.is_file()],
    ids=lambda path: path.name,
)
def test_real_machines_make_the_round_trip(path: Path, tmp_path: Path) -> None:
    try:
        machine = build_machine(import_machine(path))
        whole_bytes = sum(node.memory_bytes for node in machine.nodes)
        guest = guest_machine(
            machine, scale=min(1.0, 8 / machine.threads), memory_bytes=min(4 << 30, whole_bytes)
        )
    except InputError as failure:
        pytest.skip(str(failure))
    check_round_trip(guest, tmp_path)


@needs_emulator
@pytest.mark.sweep
def test_the_benchmark_prints_times() -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "emulator_boot.py"
    done = subprocess.run([sys.executable, script, "1"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    assert [line["unit"] for line in lines] == ["s", "s"]
    assert all(line["value"] > 0 for line in lines)


def test_what_cannot_be_emulated_is_refused_in_a_line() -> None:
    large, small = load_machine("hypercube-1024n"), load_machine("opteron-4n")
    assert "1,024 nodes: QEMU holds 128 (--nodes takes the first" in told_by(guest_machine, large)
    with pytest.raises(InputError, match=r"1 MiB of memory is too little for 4 nodes.*128 MiB"):
        guest_machine(small, memory_bytes=1 << 20)
    with pytest.raises(InputError, match=r"^1 B of memory is too little"):
        guest_machine(small, memory_bytes=1)
    with pytest.raises(InputError, match="too little for 1 node: expected at least 128 MiB"):
        guest_machine(small, nodes=1, memory_bytes=64 << 20)
    with pytest.raises(InputError, match="300 GiB of memory: expected 256 GiB"):
        guest_machine(small, memory_bytes=300 << 30)
    with pytest.raises(InputError, match="scale: found '2', expected more than 0, at most 1"):
        guest_machine(small, scale=2)
    assert "number of nodes: found '5', expected 1 to 4" in told_by(guest_machine, small, nodes=5)
    whole = guest_machine(load_machine("sgi-uv2000-64n"), scale=1, memory_bytes=8 << 30)
    with pytest.raises(InputError, match="512 processors cannot be emulated: QEMU holds 255"):
        run_in_guest(whole, ["true"])


def test_memory_whose_pages_this_host_cannot_record_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 64 bytes for each page of 4 KiB: 2 GiB of 128 GiB.
    small, module = load_machine("opteron-4n"), sys.modules[guest_machine.__module__]
    monkeypatch.setattr(module, "_free_bytes", lambda: 2.0 * (1 << 30))
    assert guest_machine(small, memory_bytes=128 << 30).page_records_bytes == 2 << 30
    monkeypatch.setattr(module, "_free_bytes", lambda: 1.5 * (1 << 30))
    with pytest.raises(InputError, match=r"writes 2 GiB about its pages, and 1\.5 GiB are free"):
        guest_machine(small, memory_bytes=128 << 30)


@needs_emulator
def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("no program")
    (tmp_path / "folder").mkdir()
    for name in ("./notes", "./folder"):
        done = run_in_guest(small_guest(), [name], folder=tmp_path, time_limit_s=60)
        told = f"numatwin: error: no program to execute: '{name}'\n"
        assert (done.status, done.errors.decode()) == (126, told)


def test_memory_alone_names_the_node_that_draws_most_of_it(tmp_path: Path) -> None:
    # Nodes 2 and 3 are as far from both others; 0 draws most from 3, 1 from 2.
    (tmp_path / "near.yaml").write_text(
        "name: near\n"
        "node_types:\n"
        "  node: {cores: 1, memory: {size: 1 GiB}}\n"
        "  memory: {cores: 0, memory: {size: 1 GiB}}\n"
        "nodes: [{ids: 0-1, type: node}, {ids: 2-3, type: memory}]\n"
        "slit: [[10, 20, 30, 30], [20, 10, 30, 30], [30, 30, 10, 30], [30, 30, 30, 10]]\n"
        "pair_bandwidth:\n"
        "- [20 GB/s, 5 GB/s, 3 GB/s, 9 GB/s]\n"
        "- [5 GB/s, 20 GB/s, 9 GB/s, 3 GB/s]\n"
        "- [null, null, null, null]\n"
        "- [null, null, null, null]\n"
    )
    guest = guest_machine(load_machine(str(tmp_path / "near.yaml")), memory_bytes=1 << 30)
    words = machine_arguments(guest, Image(Path("kernel"), Path("files")))
    nodes = [word for word in words if word.startswith("node,")]
    assert [word.rpartition("initiator=")[2] for word in nodes] == ["0", "1", "1", "0"]


def test_a_guest_is_made_to_fit() -> None:
    whole = load_machine("sgi-uv2000-64n")
    guest = guest_machine(whole, memory_bytes=4 << 30)
    assert guest.processors == 64
    assert sum(guest.memory_bytes) == 4 << 30
    text = "; ".join(guest.notes)
    assert text.startswith("64 of 512 processors; 4 GiB of 8 TiB of memory; ")


def test_a_cluster_becomes_one_machine() -> None:
    cluster = load_machine("ib-fdr-8n")
    text = "; ".join(guest_machine(cluster, memory_bytes=1 << 30).notes)
    assert "; its 8 servers are nodes of one machine, and share its memory; " in text
    for one in (
        guest_machine(cluster, nodes=1, memory_bytes=1 << 30),
        guest_machine(load_machine("amd-8n-ht"), memory_bytes=1 << 30),
    ):
        assert "servers" not in "; ".join(one.notes)


def test_scaled_caches_hold_their_part_of_the_node_s() -> None:
    whole = load_machine("amd-8n-ht")
    for scale in (1 / 2, 1 / 4, 1 / 8, 1 / 16):
        guest = guest_machine(whole, scale=scale)
        for before, after in zip(whole.nodes, guest.machine.nodes, strict=True):
            assert after.cores == max(1, before.cores * scale)
            for one, other in zip(before.caches, after.caches, strict=True):
                total = before.cores / one.shared_by_cores * one.size_bytes
                left = after.cores / other.shared_by_cores * other.size_bytes
                assert left == pytest.approx(max(total * scale, 0), rel=0.01)
                assert other.shared_by_cores <= after.cores


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"needs 'qemu-system-x86_64'.*install qemu-system-x86\)"):
        run_in_guest(small_guest(), ["true"])

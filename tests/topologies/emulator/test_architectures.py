"""Guests of another architecture than this host's."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.topologies import load_machine
from numatwin.topologies.emulator import Share, guest_machine, platforms, run_in_guest
from numatwin.topologies.emulator.command_line import guest_slit, machine_arguments
from numatwin.topologies.emulator.counting import run_counted
from numatwin.topologies.emulator.image import Image, find_kernel
from numatwin.topologies.emulator.platforms import AARCH64, find_busybox, find_qemu

MIB = 1 << 20


def _missing() -> str | None:
    try:
        find_qemu(AARCH64), find_kernel(AARCH64), find_busybox(AARCH64)
    except InputError as failure:
        return str(failure)
    return None


def words_of(scale: float, memory_bytes: float) -> Sequence[str]:
    guest = guest_machine(
        load_machine("epyc-2s-cxl"), scale=scale, memory_bytes=memory_bytes, architecture="aarch64"
    )
    return machine_arguments(guest, Image(Path("kernel"), Path("files")))


def test_the_nodes_are_told_by_device_tree() -> None:
    words = words_of(scale=1 / 48, memory_bytes=1 << 30)
    assert words[words.index("-machine") + 1].startswith("virt,")
    nodes = [word for word in words if word.startswith("node,")]
    assert len(nodes) == 5
    assert not [word for word in words if "initiator" in word or "hmat" in word]
    assert [word for word in words if word.startswith("dist,src=0,dst=1,")]


def test_what_cannot_be_had_is_refused_in_a_line() -> None:
    small = load_machine("opteron-4n")
    with pytest.raises(InputError, match="'riscv64', expected x86_64 or aarch64"):
        guest_machine(small, architecture="riscv64")
    large = guest_machine(
        load_machine("sgi-uv2000-64n"), scale=1, memory_bytes=8 << 30, architecture="aarch64"
    )
    with pytest.raises(InputError, match="512 processors cannot be emulated: QEMU holds 256"):
        machine_arguments(large, Image(Path("kernel"), Path("files")))
    guest = guest_machine(small, nodes=1, scale=1 / 128, architecture="aarch64")
    assert guest.notes[-1] == "its firmware reports no latencies and bandwidths"
    with pytest.raises(InputError, match=r"traffic is not counted .*'aarch64', expected x86_64"):
        run_counted(guest, ["true"])


@pytest.mark.skipif(not AARCH64.foreign, reason="programs of this host run there")
def test_a_missing_kernel_is_told_with_what_fetches_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platforms, "cache_folder", lambda: tmp_path)
    fetches = "python -m numatwin.topologies.emulator aarch64)"
    for find in (find_kernel, find_busybox):
        told = told_by(find, AARCH64)
        assert "kernel and a busybox for aarch64 (unpacked into the cache: " + fetches in told


@pytest.mark.sweep
@pytest.mark.skipif(_missing() is not None, reason=_missing() or "")
def test_a_program_runs_on_nodes_of_another_architecture(tmp_path: Path) -> None:
    """Four nodes with processors, and one of memory alone."""
    guest = guest_machine(
        load_machine("epyc-2s-cxl"), scale=1 / 48, memory_bytes=1024 * MIB, architecture="aarch64"
    )
    busybox = find_busybox(AARCH64)
    command = f"""
        b={busybox}; $b uname -m; $b cat words; echo kept > shared/new
        $b cat /sys/devices/system/node/node*/cpulist /sys/devices/system/node/node0/distance
        exit 7"""
    (tmp_path / "words").write_text("seen\n")
    (tmp_path / "shared").mkdir()
    shares = [Share(tmp_path / "shared", writable=True)]
    done = run_in_guest(
        guest, [str(busybox), "sh", "-c", command], folder=tmp_path, shares=shares, time_limit_s=300
    )
    assert done.errors == b""
    assert done.status == 7
    processors = [str(k) if guest.node(k).threads else "" for k in range(len(guest.nodes))]
    distances = " ".join(map(str, guest_slit(guest)[0]))
    assert done.output.decode().splitlines() == ["aarch64", "seen", *processors, distances]
    assert (tmp_path / "shared" / "new").read_text() == "kept\n"

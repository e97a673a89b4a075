"""sysfs trees: of this host, saved as a folder, saved as an archive of any compression."""

import bz2
import gzip
import lzma
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from known import known
from refusals import told_by
from saved_trees import CPU, NODE, TREE, tar_bytes, write_folder

from numatwin.inputs import InputError, parse_yaml
from numatwin.topologies import MachineDescription, build_machine
from numatwin.topologies.export import machine_yaml
from numatwin.topologies.importers import import_machine
from numatwin.topologies.importers.archive import ArchiveLimits
from numatwin.topologies.importers.tree import archive_tree


def _zstd(data: bytes) -> bytes:
    zstd = pytest.importorskip("backports.zstd", reason="zstd comes with Python 3.14")
    packed: bytes = zstd.compress(data)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": gzip.compress,
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
    "tar.lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    "tar.zst": _zstd,
}


def write(folder: Path, data: bytes, name: str = "saved.tar") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refused(path: Path) -> str:
    """The one line that refuses the file; nothing is written beside it."""
    before = sorted(path.parent.rglob("*"))
    told = told_by(import_machine, path)
    assert sorted(path.parent.rglob("*")) == before
    assert told.startswith(str(path))
    return told


def imported(folder: Path, files: dict[str, str]) -> MachineDescription:
    return import_machine(write_folder(folder / "saved", files))


def test_everything_comes_through(tmp_path: Path) -> None:
    machine = build_machine(imported(tmp_path, TREE))
    assert machine.name == "saved"
    assert [node.id for node in machine.nodes] == [0, 3, 5, 9]
    assert [node.cpus for node in machine.nodes] == [(0, 4), (1, 5), (), (2,)]
    assert [node.cores for node in machine.nodes] == [1, 1, 0, 1]
    assert [node.group for node in machine.nodes] == ["package0", "package1", None, "package1"]
    assert [node.memory_bytes for node in machine.nodes] == [4 << 20, 4 << 20, 8 << 20, 0]
    assert [node.side_cache_bytes for node in machine.nodes] == [(), (), (1 << 20,), ()]
    assert [node.memory_kind for node in machine.nodes] == ["DRAM", "DRAM", "unknown", "DRAM"]
    assert machine.slit is not None
    slit = machine.slit.tolist()
    assert slit == [[10, 21, 17, 30], [22, 10, 28, 31], [17, 28, 10, 40], [30, 31, 40, 10]]
    assert machine.latency_ns[0, 2] == pytest.approx(250)
    assert machine.bandwidth_Bps[0, 2] == 17.6e9
    level = known(machine.nodes[0].cache(1))
    assert (level.size_bytes, level.shared_by_cores, level.line_bytes) == (32 << 10, 1, 64)
    assert level.ways == 8
    assert machine.nodes[0].clock_Hz == 2.5e9


def test_ways_are_kept_in_the_machine_file_and_left_out_where_unknown(tmp_path: Path) -> None:
    """Old kernels have no such file; virtual machines may tell 0."""
    described = imported(tmp_path / "told", TREE)
    text = machine_yaml(described)
    assert "ways: 8" in text
    assert parse_yaml(text, "saved.yaml").read_as(MachineDescription) == described
    files = [name for name in TREE if name.endswith("ways_of_associativity")]
    unknown = [
        imported(tmp_path / "none", {name: TREE[name] for name in TREE if name not in files}),
        imported(tmp_path / "zero", TREE | dict.fromkeys(files, "0\n")),
    ]
    for description in unknown:
        (level,) = build_machine(description).nodes[0].caches
        assert level.ways is None
        assert "ways" not in build_machine(description).plain_text


@pytest.mark.parametrize("ending", PACKERS)
def test_an_archive_says_what_its_folder_says(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, PACKERS[ending](tar_bytes(TREE)), f"saved.{ending}")
    description = import_machine(path)
    folder = imported(tmp_path / "unpacked", TREE)
    assert description.model_copy(update={"source": folder.source}) == folder


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_in_every_format_of_tar(tmp_path: Path, format: int) -> None:
    top = "deep/" * 25 if format == tarfile.USTAR_FORMAT else "déép-" * 30 + "/"
    path = write(tmp_path, tar_bytes(TREE, top=top, format=format))
    assert len(import_machine(path).nodes) == 4


def test_this_host_is_a_machine() -> None:
    if not Path("/sys/devices/system/cpu").is_dir():
        pytest.skip("this host has no sysfs")
    machine = build_machine(import_machine(None))
    assert machine.name == "this-host"
    assert os.sched_getaffinity(0) <= {cpu for node in machine.nodes for cpu in node.cpus}


def test_unknown_columns_of_the_slit_are_those_of_possible_nodes(tmp_path: Path) -> None:
    files = TREE | {f"{NODE}/possible": "0,3-5,9"}
    for node, row in ((0, "10 1 255 2 3"), (3, "4 10 255 5 6"), (5, "7 8 255 10 9")):
        files[f"{NODE}/node{node}/distance"] = row
    files[f"{NODE}/node9/distance"] = "11 12 255 13 10"
    slit = imported(tmp_path, files).slit
    assert slit == ((10, 1, 2, 3), (4, 10, 5, 6), (7, 8, 10, 9), (11, 12, 13, 10))


def test_masks_count_before_lists(tmp_path: Path) -> None:
    """The lists of a saved Opteron 6276 contradict its masks and the processor."""
    files = TREE | {f"{CPU}/cpu{cpu}/cache/index0/shared_cpu_list": f"{cpu}" for cpu in (0, 4)}
    assert build_machine(imported(tmp_path, files)).nodes[0].cache(1) is not None
    assert imported(tmp_path / "again", files).node_types == imported(tmp_path, TREE).node_types


def test_a_host_without_nodes_is_one(tmp_path: Path) -> None:
    files = {path: text for path, text in TREE.items() if not path.startswith(NODE)}
    files["proc/meminfo"] = "MemTotal:  1024 kB\n"
    machine = build_machine(imported(tmp_path, files))
    assert [(node.id, node.cpus, node.memory_bytes) for node in machine.nodes] == [
        (0, (0, 1, 2, 4, 5), 1 << 20)
    ]


@pytest.mark.parametrize(("of_node", "of_host", "kib"), [(512, 1024, 1024), (1024, 900, 1024)])
def test_a_node_alone_has_what_the_host_has(
    tmp_path: Path, of_node: int, of_host: int, kib: int
) -> None:
    """Some kernels count memory to a node bit by bit."""
    files = {path: text for path, text in TREE.items() if not path.startswith(NODE)}
    files[f"{NODE}/node0/cpulist"] = "0-5"
    files[f"{NODE}/node0/meminfo"] = f"Node 0 MemTotal: {of_node} kB\n"
    files["proc/meminfo"] = f"MemTotal: {of_host} kB\n"
    (node,) = build_machine(imported(tmp_path, files)).nodes
    assert node.memory_bytes == kib << 10


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (f"{NODE}/node0/distance", "10 21 17", "3 distances: expected 4"),
        (f"{NODE}/node0/distance", "10 21 17 3x", "no distance: found '3x'"),
        (f"{NODE}/node0/distance", "10 21 17 300", "no distance: found '300'"),
        (f"{NODE}/node0/cpumap", "zz", "expected a mask"),
        (f"{NODE}/node0/meminfo", "Node 0 MemTotal: many kB", "not a size of memory"),
        (f"{NODE}/online", "0-", "expected numbers such as '0-3,8'"),
        (f"{NODE}/online", "0-65535," * 9, "expected numbers such as '0-3,8'"),
        (
            f"{NODE}/node5/access0/initiators/read_latency",
            "fast",
            "not a whole number: found 'fast'",
        ),
        (f"{CPU}/cpu0/cache/index0/size", "32Q", "no size: found '32Q'"),
        (f"{CPU}/cpu0/cache/index0/level", "one", "no level of cache: found 'one'"),
    ],
)
def test_bad_files_are_told(tmp_path: Path, path: str, text: str, message: str) -> None:
    folder = write_folder(tmp_path / "saved", TREE | {path: text})
    told = refused(folder)
    assert path in told
    assert message in told


def test_links_are_followed_inside_the_archive_only(tmp_path: Path) -> None:
    files = dict(TREE)
    text = files.pop(f"{NODE}/node0/meminfo")
    files["sys/elsewhere"] = text
    links = {f"{NODE}/node0/meminfo": "../../../../elsewhere"}
    # Only what lies under devices/system is kept: a link that leads elsewhere finds nothing.
    path = write(tmp_path, tar_bytes(files, links=links))
    assert build_machine(import_machine(path)).nodes[0].memory_bytes != 4 << 20
    del files["sys/elsewhere"]
    files[f"{NODE}/there"] = text
    links = {f"{NODE}/node0/meminfo": "../there"}
    path = write(tmp_path, tar_bytes(files, links=links))
    assert build_machine(import_machine(path)).nodes[0].memory_bytes == 4 << 20


def test_a_folder_cannot_lead_outside_itself(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "saved", TREE)
    secret = tmp_path / "secret"
    secret.write_text("Node 0 MemTotal: 77 kB\n")
    meminfo = folder / NODE / "node0/meminfo"
    meminfo.unlink()
    meminfo.symlink_to(secret)
    assert build_machine(import_machine(folder)).nodes[0].memory_bytes != 77 << 10


def test_loops_of_links_are_told(tmp_path: Path) -> None:
    links = {f"{NODE}/node0": "../node/node0"}
    files = {path: text for path, text in TREE.items() if "node0/" not in path}
    assert "a loop of links" in refused(write(tmp_path, tar_bytes(files, links=links)))


def test_a_fifo_in_a_folder_does_not_wait(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "saved", TREE)
    (folder / NODE / "node0/meminfo").unlink()
    os.mkfifo(folder / NODE / "node0/meminfo")
    assert len(import_machine(folder).nodes) == 4


@pytest.mark.parametrize("top", ["/", "../", "a/../../"])
def test_paths_that_lead_out_are_refused(tmp_path: Path, top: str) -> None:
    told = refused(write(tmp_path, tar_bytes(TREE, top=top)))
    assert "a member's path leads out of the archive: found" in told


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_archive_is_told(tmp_path: Path, ending: str, share: float) -> None:
    plain = tar_bytes(TREE).rstrip(b"\0")
    whole = PACKERS[ending](plain + bytes(1024))
    limit = len(plain) if ending == "tar" else len(whole)
    path = write(tmp_path, whole[: int(limit * share)], f"saved.{ending}")
    told = refused(path)
    assert "cut off" in told or "no sysfs tree" in told or "damaged" in told


def test_archives_are_bounded(tmp_path: Path) -> None:
    def tree(files: dict[str, str], **limits: int) -> None:
        path = write(tmp_path, tar_bytes(files))
        with open(path, "rb") as stream:
            folder = tmp_path / str(len(files) + sum(limits.values()))
            archive_tree(stream, "x", folder, ArchiveLimits(**limits))

    tree(TREE)
    assert "more than 9 members" in told_by(tree, TREE, members_max=9)
    assert "more than 0 MiB unpacked" in told_by(tree, TREE, total_bytes_max=10_000)
    assert "too large for a sysfs tree" in told_by(tree, TREE, kept_bytes_max=100)
    with pytest.raises(InputError, match="too large for a sysfs tree"):
        tree(TREE | {"huge": "x" * 70_000}, large_bytes_max=65_536)


def test_sparse_and_oversized_headers_are_refused(tmp_path: Path) -> None:
    def archive(**headers: Any) -> Path:
        member = tarfile.TarInfo("saved/x")
        for key, value in headers.items():
            setattr(member, key, value)
        data = member.tobuf(tarfile.PAX_FORMAT) + bytes(1024)
        return write(tmp_path, data)

    assert "a sparse member" in refused(archive(type=tarfile.GNUTYPE_SPARSE))
    assert "a sparse member" in refused(archive(pax_headers={"GNU.sparse.size": "9"}))
    assert "too long" in refused(archive(type=tarfile.GNUTYPE_LONGNAME, size=1 << 20))
    assert "too large for a sysfs tree" in refused(archive(size=1 << 40))
    assert "cut off" in refused(archive(size=10_000))


def test_no_tree_is_told(tmp_path: Path) -> None:
    assert "no sysfs tree in this archive" in refused(write(tmp_path, tar_bytes({"a": "b"})))
    (tmp_path / "empty").mkdir()
    assert "no sysfs tree in this folder" in refused(tmp_path / "empty")
    assert "empty file" in refused(write(tmp_path, b""))
    twice = tar_bytes({f"{top}/{path}": text for top in "ab" for path, text in TREE.items()})
    assert "more than one sysfs tree" in refused(write(tmp_path, twice))
    assert "No such file" in refused(tmp_path / "none")


@pytest.mark.parametrize("possible", ["", "0-9", "3-4"])
def test_an_empty_file_of_distances(tmp_path: Path, possible: str) -> None:
    files = TREE | {f"{NODE}/possible": possible, f"{NODE}/node9/distance": ""}
    told = refused(write_folder(tmp_path / "saved", files))
    assert "node9/distance:1: 0 distances: expected 4, one per node" in told


def test_a_long_chain_in_a_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "saved", TREE)
    meminfo = folder / NODE / "node0/meminfo"
    meminfo.rename(meminfo.with_name("link5000"))
    for k in range(5_000):
        meminfo.with_name(f"link{k}").symlink_to(f"link{k + 1}")
    meminfo.symlink_to("link0")
    if sys.version_info >= (3, 13):  # os.path.realpath follows any chain
        import_machine(folder)
        return
    assert "a loop of links, or too long a chain of them" in refused(folder)

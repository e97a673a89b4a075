"""Small sysfs trees for tests: as a mapping of files, a folder on disk, a tar archive."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, str]

NODE = "sys/devices/system/node"
CPU = "sys/devices/system/cpu"

# Nodes 0 and 3 with a core of two threads each, node 5 with memory only (behind a cache of 1 MiB),
# node 9 with a core but no memory; a SLIT that is not symmetric; HMAT's figures for node 5.
TREE: dict[str, str] = {
    f"{NODE}/online": "0,3,5,9\n",
    f"{NODE}/possible": "0-9\n",
    **{
        f"{NODE}/node{node}/cpumap": f"00000000,{mask:08x}\n"
        for node, mask in ((0, 0x11), (3, 0x22), (5, 0), (9, 0x04))
    },
    **{
        f"{NODE}/node{node}/meminfo": f"Node {node} MemTotal: {kib} kB\nNode {node} MemFree: 1 kB\n"
        for node, kib in ((0, 4096), (3, 4096), (5, 8192), (9, 0))
    },
    f"{NODE}/node0/distance": "10 21 17 30\n",
    f"{NODE}/node3/distance": "22 10 28 31\n",
    f"{NODE}/node5/distance": "17 28 10 40\n",
    f"{NODE}/node9/distance": "30 31 40 10\n",
    f"{NODE}/node5/memory_side_cache/index1/size": "1048576\n",
    f"{NODE}/node5/memory_side_cache/index1/line_size": "256\n",
    f"{NODE}/node5/access0/initiators/node0/cpumap": "00000011\n",
    f"{NODE}/node5/access0/initiators/read_latency": "250\n",
    f"{NODE}/node5/access0/initiators/read_bandwidth": "17600\n",
    f"{NODE}/node5/access0/initiators/write_latency": "300\n",
    f"{NODE}/node5/access0/initiators/write_bandwidth": "9000\n",
    f"{CPU}/online": "0-2,4-5\n",
    **{
        f"{CPU}/cpu{cpu}/topology/{file}": f"{value}\n"
        for cpu, siblings, package in (
            (0, "11", 0),
            (1, "22", 1),
            (2, "04", 1),
            (4, "11", 0),
            (5, "22", 1),
        )
        for file, value in (
            ("thread_siblings", siblings),
            ("core_id", 0 if siblings != "04" else 1),
            ("physical_package_id", package),
        )
    },
    f"{CPU}/cpu3/topology/core_id": "7\n",  # offline
    **{
        f"{CPU}/cpu{cpu}/cache/index0/{file}": f"{value}\n"
        for cpu, mask in ((0, "11"), (4, "11"), (1, "22"), (5, "22"), (2, "04"))
        for file, value in (
            ("level", 1),
            ("type", "Data"),
            ("size", "32K"),
            ("coherency_line_size", 64),
            ("ways_of_associativity", 8),
            ("shared_cpu_map", mask),
        )
    },
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\n",
}


def write_folder(folder: Path, files: Files) -> Path:
    """The files as a folder."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def tar_bytes(
    files: Files,
    *,
    top: str = "saved/",
    links: Files | None = None,
    format: int = tarfile.PAX_FORMAT,
) -> bytes:
    """The files, and links by path and target, as a tar archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=format) as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(top + path)
            data = text.encode()
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for path, target in (links or {}).items():
            member = tarfile.TarInfo(top + path)
            member.type = tarfile.SYMTYPE
            member.linkname = target
            archive.addfile(member)
    return stream.getvalue()

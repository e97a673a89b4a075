"""The guest's kernel and first files, made once and kept in the cache."""

from __future__ import annotations

import hashlib
import lzma
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from ...inputs import InputError, write_bytes_atomically
from .host_files import cache_folder, find_busybox
from .kernel import Kernel, find_kernel, module_files
from .platforms import X86_64, Platform

INIT = Path(__file__).with_name("init.sh")
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
_APPLETS = (
    "cat chroot cp date echo head hostname ifconfig insmod ln mkdir mkfifo mount printf setsid sh "
    "sleep stty"
)
_FOLDERS = ("bin", "dev", "groups", "lower", "modules", "overlay", "proc", "root", "run", "sys")


@dataclass(frozen=True)
class Image:
    """What QEMU loads: a kernel and the archive of the guest's first files."""

    kernel: Path
    files: Path


def guest_image(platform: Platform = X86_64) -> Image:
    """The image of the kernel found on this host, made if it is not in the cache yet."""
    kernel, busybox = find_kernel(platform), find_busybox(platform)
    digest = hashlib.sha256(INIT.read_bytes() + Path(__file__).read_bytes())
    for path in (kernel.image, busybox):
        state = path.stat()
        digest.update(f"{path} {state.st_size} {state.st_mtime_ns}".encode())
    stem = f"{kernel.image.name}-{digest.hexdigest()[:12]}"
    image = Image(cache_folder() / f"{stem}.kernel", cache_folder() / f"{stem}.files")
    if not image.kernel.exists():
        write_bytes_atomically(image.kernel, unpacked_kernel(kernel.image.read_bytes()))
    if not image.files.exists():
        write_bytes_atomically(image.files, _archive(kernel, busybox))
    return image


def unpacked_kernel(image: bytes) -> bytes:
    """The ELF file in a kernel image, which starts at once; the image itself if it has none.

    The place of the compressed part is in the image's header (Linux' boot protocol 2.08 on).
    """
    if image[0x202:0x206] != b"HdrS":
        return image
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = ((image[0x1F1] or 4) + 1) * 512 + offset
    try:
        elf = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[start : start + length])
    except lzma.LZMAError:
        return image
    return elf if elf.startswith(b"\x7fELF") else image


def _archive(kernel: Kernel, busybox: Path) -> bytes:
    """The guest's first files as a cpio archive."""
    files = module_files(kernel)
    order: list[str] = []
    for module in MODULES:
        _add_module(module, files, order)
    archive = Archive()
    for folder in _FOLDERS:
        archive.add(folder, 0o040755)
    archive.add("init", 0o100755, INIT.read_bytes())
    archive.add("bin/busybox", 0o100755, busybox.read_bytes())
    for applet in _APPLETS.split():
        archive.add(f"bin/{applet}", 0o120777, b"busybox")
    archive.add("modules/order", 0o100644, "".join(f"{name}\n" for name in order).encode())
    for name in order:
        archive.add(f"modules/{name}.ko", 0o100644, _module(files[name]))
    return archive.data()


def _add_module(name: str, files: dict[str, Path], order: list[str]) -> None:
    """Appends the module after those that it needs; what is no module is part of the kernel."""
    if name in order or name not in files:
        return
    needs = re.search(rb"\0depends=([^\0]*)\0", _module(files[name]))
    for needed in filter(None, needs[1].decode().split(",") if needs else ()):
        _add_module(needed.replace("-", "_"), files, order)
    order.append(name)


def _module(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(content)
    if path.suffix != ".ko":
        raise InputError("cannot be read: expected modules that are plain or xz", str(path))
    return content


class Archive:
    """An archive of files, as the kernel unpacks it at its start (cpio, 'newc')."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, path: str, mode: int, content: bytes = b"") -> None:
        """Adds a file, folder (no content) or link (whose content is its target)."""
        name = path.encode() + b"\0"
        fields = (len(self._parts) + 1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08x" % number for number in fields) + name
        self._parts.append(head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4))

    def data(self) -> bytes:
        """The archive's bytes."""
        whole = Archive()
        whole._parts = list(self._parts)
        whole.add("TRAILER!!!", 0)
        return b"".join(whole._parts)

"""The guest's kernel and first files, made once and kept in the cache.

The guest's kernel: one of this host, or Debian's, unpacked from its package into the cache.
"""

import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...inputs import InputError, write_bytes_atomically
from .platforms import (
    X86_64,
    Platform,
    cache_folder,
    find_busybox,
    find_program,
    missing_kernel,
    unpacked_folder,
)

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


def _archive(kernel: "Kernel", busybox: Path) -> bytes:
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


@dataclass(frozen=True)
class Kernel:
    """A Linux kernel: its image and the folder of its modules."""

    image: Path
    modules: Path


def find_kernel(platform: Platform = X86_64) -> Kernel:
    """The newest kernel unpacked in the cache, else of this host; raises InputError."""
    found = max(_kernels(unpacked_folder(platform)), key=_age, default=None)
    if found is None and not platform.foreign:
        found = max(_kernels(Path("/")), key=_age, default=None)
    if found is None:
        raise missing_kernel(platform)
    return found


def _age(kernel: Kernel) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", kernel.image.name)]


def _kernels(root: Path) -> Iterator[Kernel]:
    for image in root.glob("boot/vmlinuz-*"):
        version = image.name.removeprefix("vmlinuz-")
        for library in ("lib", "usr/lib"):
            kernel = Kernel(image, root / library / "modules" / version)
            names = module_files(kernel) if kernel.modules.is_dir() else {}
            if os.access(image, os.R_OK) and (root == Path("/") or names):
                yield kernel
                break


def module_files(kernel: Kernel) -> dict[str, Path]:
    """The kernel's modules by name, dashes as underscores."""
    return {
        path.name.partition(".")[0].replace("-", "_"): path
        for path in kernel.modules.rglob("*.ko*")
    }


def fetch_kernel(platform: Platform = X86_64) -> Kernel:
    """Unpacks Debian's kernel package into the cache, without installing it; raises InputError.

    For guests whose programs are not those of this host, Debian's busybox too.
    """
    for program in ("apt-get", "apt-cache", "dpkg-deb"):
        find_program(program, "apt dpkg")
    folder = unpacked_folder(platform)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as work:
        environment = _apt_of(platform, Path(work)) if platform.foreign else None
        depends = _output(
            ["apt-cache", "depends", "--important", platform.kernel_package],
            environment=environment,
        )
        match = re.search(r"Depends: (linux-image-\d\S*)", depends)
        packages = [match[1] if match else platform.kernel_package]
        if platform.foreign:
            packages.append("busybox-static")
        _output(["apt-get", "download", "-q", *packages], work, environment)
        unpacked = Path(work) / "unpacked"
        for archive in Path(work).glob("*.deb"):
            _output(["dpkg-deb", "-x", str(archive), str(unpacked)])
        kernels = list(_kernels(unpacked))
        if not kernels:
            raise InputError("no kernel with modules in this package", packages[0])
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)
    return find_kernel(platform)


def _apt_of(platform: Platform, work: Path) -> dict[str, str]:
    """What makes apt read the packages of another architecture, and leave this host's as it is."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (work / part).mkdir(parents=True)
    (work / "state" / "status").touch()
    settings = work / "apt.conf"
    settings.write_text(
        f'APT::Architecture "{platform.debian}";\nAPT::Architectures {{ "{platform.debian}"; }};\n'
        f'Dir::State "{work}/state";\nDir::State::status "{work}/state/status";\n'
        f'Dir::Cache "{work}/cache";\nAPT::Sandbox::User "root";\n'
    )
    environment = {**os.environ, "APT_CONFIG": str(settings)}
    _output(["apt-get", "update", "-q"], environment=environment)
    return environment


def _output(
    command: list[str], cwd: str | None = None, environment: dict[str, str] | None = None
) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise InputError(f"'{' '.join(command[:2])}' failed: {lines[-1]}")
    return done.stdout

"""The guest's kernel: one of this host, or Debian's, unpacked from its package into the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...inputs import InputError
from .host_files import cache_folder, find_program

PACKAGE = "linux-image-amd64"


@dataclass(frozen=True)
class Kernel:
    """A Linux kernel: its image and the folder of its modules."""

    image: Path
    modules: Path


def find_kernel() -> Kernel:
    """The newest kernel unpacked in the cache, else of this host; raises InputError."""
    found = max(_kernels(cache_folder() / "kernel"), key=_age, default=None)
    if found is None:
        found = max(_kernels(Path("/")), key=_age, default=None)
    if found is None:
        raise InputError(
            "the emulator needs a Linux kernel with its modules (Debian: apt-get install "
            f"{PACKAGE}; or, unpacked into the cache only: python -m {__package__})"
        )
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


def fetch_kernel() -> Kernel:
    """Unpacks Debian's kernel package into the cache, without installing it; raises InputError."""
    for program in ("apt-get", "apt-cache", "dpkg-deb"):
        find_program(program, "apt dpkg")
    folder = cache_folder() / "kernel"
    depends = _output(["apt-cache", "depends", "--important", PACKAGE])
    match = re.search(r"Depends: (linux-image-\d\S*)", depends)
    package = match[1] if match else PACKAGE
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as work:
        _output(["apt-get", "download", "-q", package], cwd=work)
        (archive,) = Path(work).glob("*.deb")
        unpacked = Path(work) / "unpacked"
        _output(["dpkg-deb", "-x", str(archive), str(unpacked)])
        kernels = list(_kernels(unpacked))
        if not kernels:
            raise InputError("no kernel with modules in this package", package)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)
    return find_kernel()


def _output(command: list[str], cwd: str | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise InputError(f"'{' '.join(command[:2])}' failed: {lines[-1]}")
    return done.stdout

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
from .host_files import find_program, missing_kernel, unpacked_folder
from .platforms import X86_64, Platform


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

"""Compiles the counting plugin, and what marks a command, into the cache: once for each version."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...inputs import InputError
from .host_files import cache_folder, qemu_version

SOURCES = Path(__file__).with_name("plugin")
PLUGIN_SOURCES = ("traffic_plugin.cpp", "hierarchy.cpp")
_FLAGS = ("-std=c++20", "-O3", "-g0", "-Wall", "-Wextra", "-Werror")
_LIBRARY = ("-fPIC", "-shared", "-fvisibility=hidden")


def traffic_plugin() -> Path:
    """The plugin for the QEMU of this host; raises InputError where it cannot be compiled."""
    version = plugin_interface(qemu_version())
    flags = (*_LIBRARY, f"-DNUMATWIN_PLUGIN_VERSION={version}")
    return compiled("traffic", PLUGIN_SOURCES, flags, ".so")


def plugin_interface(qemu: tuple[int, int]) -> int:
    """The version of the plugin interface that is asked of a version of QEMU."""
    if qemu < (9, 0):
        return 1
    return 2 if qemu < (9, 1) else 3


def command_marker() -> Path:
    """The program that runs a command between its marks; raises InputError."""
    return compiled("run_counted", ("run_counted.cpp",), (), "")


def compiled(name: str, sources: Sequence[str], flags: Sequence[str], suffix: str) -> Path:
    """The file made from ``sources``, out of the cache where nothing changed; raises InputError."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    digest = hashlib.sha256(" ".join((*compiler, *_FLAGS, *flags, *sources)).encode())
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in (".cpp", ".hpp", ".h"):
            digest.update(path.name.encode() + path.read_bytes())
    target = cache_folder() / f"{name}-{digest.hexdigest()[:12]}{suffix}"
    if target.exists():
        return target
    if shutil.which(compiler[0]) is None:
        raise InputError(
            f"counting needs a C++ compiler, and '{compiler[0]}' is not here "
            "(Debian: apt-get install g++)"
        )
    with tempfile.TemporaryDirectory(prefix=".compiling-", dir=target.parent) as folder:
        made = Path(folder) / target.name
        files = [str(SOURCES / source) for source in sources]
        command = [*compiler, *_FLAGS, *flags, "-o", str(made), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            reason = (errors or done.stderr.strip().splitlines() or ["no reason given"])[0]
            raise InputError(f"the counting plugin cannot be compiled: {reason}")
        made.replace(target)
    return target

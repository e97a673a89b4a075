"""Builds the compiled modules; everything else about the package stands in setup.cfg."""

import os
import subprocess
import sys
import tempfile
from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup

KERNEL, ENGINE = "sim/kernel", "engine_native"
ENGINE_PARTS = ("", "memory/", "storage/", "routing/", "aeu/", "rsi/", "measure/")
# -ffp-contract=off: else a compiler may fuse a * b + c on one machine and not on another, and the
# same seed would give two traces.
# -Wno-psabi: nothing of these types goes to another module.
# -g0: Python's own flags ask for what a debugger wants, which is a quarter of the compiler's work.
FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-psabi"]
if os.environ.get("NUMATWIN_WERROR"):
    FLAGS.append("-Werror")


def headers(folder: str) -> list[str]:
    """All headers below ``folder``."""
    return sorted(glob(f"{folder}/**/*.hpp", recursive=True))


def is_stale(made: str, source: str) -> bool:
    """Whether an object file is older than its source, a header of its folder or this file."""
    if not os.path.exists(made):
        return True
    part = ENGINE if source.startswith(ENGINE) else KERNEL
    return os.path.getmtime(made) < max(map(os.path.getmtime, [source, __file__, *headers(part)]))


def links(header: str, *libraries: str) -> bool:
    """Whether a program that includes ``header`` links with ``libraries``."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "try.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f"#include <{header}>\nint main() {{ return 0; }}\n")
        made = os.path.join(folder, "try")
        command = [os.environ.get("CXX", "g++"), source, "-o", made, *libraries]
        try:
            return subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            return False


def engine() -> list[Pybind11Extension]:
    """The native engine, where libnuma is; it runs without UCX too."""
    if not links("numa.h", "-lnuma"):
        print("no libnuma headers: the native engine is left out", file=sys.stderr)
        return []
    ucx = links("ucp/api/ucp.h", "-lucp", "-lucs")
    return [
        Pybind11Extension(
            "numatwin.engine_native._engine",
            sorted(path for part in ENGINE_PARTS for path in glob(f"{ENGINE}/{part}*.cpp")),
            include_dirs=[ENGINE],
            depends=headers(ENGINE),
            cxx_std=20,
            extra_compile_args=FLAGS,
            define_macros=[("NUMATWIN_UCX", None)] if ucx else [],
            libraries=["numa", *(["ucp", "ucs"] if ucx else [])],
        )
    ]


ParallelCompile("NUMATWIN_BUILD_JOBS", needs_recompile=is_stale).install()

setup(
    ext_modules=[
        Pybind11Extension(
            "numatwin.sim._kernel",
            sorted(glob(f"{KERNEL}/*.cpp")),
            include_dirs=[KERNEL],
            depends=headers(KERNEL),
            cxx_std=20,
            extra_compile_args=FLAGS,
        ),
        *engine(),
    ],
)

"""Builds the compiled modules; everything else about the package stands in setup.cfg."""

import os
import subprocess
import sys
import tempfile
from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup

SIM, ENGINE = "sim", "engine_native"
# -ffp-contract=off: else a compiler may fuse a * b + c on one machine and not on another, and the
# same seed would give two traces.
# -Wno-psabi: nothing of these types goes to another module.
# -g0: Python's own flags ask for what a debugger wants, which is a quarter of the compiler's work.
# -MMD: beside each object file, what it was made of (see is_stale).
FLAGS = ["-O3", "-g0", "-MMD", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-psabi"]
if os.environ.get("NUMATWIN_WERROR"):
    FLAGS.append("-Werror")


def headers(folder: str) -> list[str]:
    """All headers below ``folder``."""
    return sorted(glob(f"{folder}/**/*.hpp", recursive=True))


def sources(folder: str) -> list[str]:
    """All of a module's sources below ``folder``, but for tests."""
    found = glob(f"{folder}/**/*.cpp", recursive=True)
    return sorted(path for path in found if not path.startswith(f"{ENGINE}/tests/"))


def is_stale(made: str, source: str) -> bool:
    """Whether an object file is older than its source, what this includes, or this file."""
    try:
        with open(f"{os.path.splitext(made)[0]}.d", encoding="utf-8") as file:
            rule = file.read().replace("\\\n", " ")
        made_at = os.path.getmtime(made)
        included = rule.partition(":")[2].split()
        return made_at < max(map(os.path.getmtime, [source, __file__, *included]))
    except OSError:  # it was never made, or a header is gone
        return True


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
            sources(ENGINE),
            include_dirs=[ENGINE, SIM],
            depends=headers(ENGINE) + headers(SIM),
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
            sources(SIM),
            include_dirs=[SIM],
            depends=headers(SIM),
            cxx_std=20,
            extra_compile_args=FLAGS,
        ),
        *engine(),
    ],
)

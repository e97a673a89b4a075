"""Builds the compiled kernel; everything else about the package stands in setup.cfg."""

import os
from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup

HEADERS = sorted(glob("sim/kernel/*.hpp"))
# -ffp-contract=off: else a compiler may fuse a * b + c on one machine and not on another, and the
# same seed would give two traces.
FLAGS = ["-O3", "-ffp-contract=off", "-Wall", "-Wextra"]
if os.environ.get("NUMATWIN_WERROR"):
    FLAGS.append("-Werror")


def is_stale(made: str, source: str) -> bool:
    """Whether an object file is older than its source, a header or this file."""
    if not os.path.exists(made):
        return True
    return os.path.getmtime(made) < max(map(os.path.getmtime, [source, __file__, *HEADERS]))


ParallelCompile("NUMATWIN_BUILD_JOBS", needs_recompile=is_stale).install()

setup(
    ext_modules=[
        Pybind11Extension(
            "numatwin.sim._kernel",
            sorted(glob("sim/kernel/*.cpp")),
            include_dirs=["sim/kernel"],
            depends=HEADERS,
            cxx_std=20,
            extra_compile_args=FLAGS,
        )
    ],
)

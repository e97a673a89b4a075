"""Builds the compiled kernel; everything else about the package stands in setup.cfg."""

from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup

ParallelCompile("NUMATWIN_BUILD_JOBS").install()

setup(
    ext_modules=[
        Pybind11Extension(
            "numatwin.sim._kernel",
            sorted(glob("sim/kernel/*.cpp")),
            include_dirs=["sim/kernel"],
            depends=sorted(glob("sim/kernel/*.hpp")),
            cxx_std=20,
            extra_compile_args=["-O3", "-Wall", "-Wextra"],
        )
    ],
)

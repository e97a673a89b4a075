"""Builds the compiled modules; everything else about the package stands in setup.cfg.

    python setup.py -q build_ext --inplace --force

compiles what is older than what it includes, and links. Objects are kept in build/kernel, also by
an editable installation; in build/kernel-strict where NUMATWIN_WERROR makes warnings errors.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup
from setuptools.command.build_ext import build_ext

SIM, ENGINE = "sim", "engine_native"
# -ffp-contract=off: else a compiler may fuse a * b + c on one machine and not on another, and the
# same seed would give two traces.
# -Wno-psabi: nothing of these types goes to another module.
# -g0: Python's own flags ask for what a debugger wants, which is a quarter of the compiler's work.
# -MMD: beside each object file, what it was made of (see is_stale).
FLAGS = ["-O3", "-g0", "-MMD", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-psabi"]
KEPT = "build/kernel"
if os.environ.get("NUMATWIN_WERROR"):
    FLAGS.append("-Werror")
    KEPT += "-strict"
# What only shows to Python what others do: at -O3 half of the work of compiling it would go into
# code that runs once a call (a model's loop over events is compiled beside the model). The other
# register files hold loops over events or over arrays.
GLUE_FLAGS = ["-Og"]
GLUE = (
    *("*/module.cpp", "*/systems/*/register.cpp"),
    *(f"{ENGINE}/*/register.cpp", "*/register_os_scheduler.cpp"),
)
# ccache, where it is installed: the same entries for every clone.
CCACHE = "/usr/lib/ccache"
if os.path.isdir(CCACHE):
    os.environ["PATH"] = f"{CCACHE}:{os.environ['PATH']}"
    os.environ.setdefault("CCACHE_BASEDIR", os.getcwd())
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")


def headers(folder: str) -> list[str]:
    """All headers below ``folder``."""
    return sorted(glob(f"{folder}/**/*.hpp", recursive=True))


def is_glue(source: str) -> bool:
    """Whether this only shows to Python what others do."""
    return any(fnmatch(source, pattern) for pattern in GLUE)


def sources(folder: str) -> list[str]:
    """All of a module's sources below ``folder``, but for tests.

    Glue comes last: of an inline function that several objects hold, the linker takes the first.
    """
    found = glob(f"{folder}/**/*.cpp", recursive=True)
    products = (path for path in found if not path.startswith(f"{ENGINE}/tests/"))
    return sorted(products, key=lambda path: (is_glue(path), path))


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


class KeepObjects(build_ext):  # type: ignore[misc]
    """Compiles only what changed; one process at a time."""

    def finalize_options(self) -> None:
        """An editable installation has a folder of its own else, which goes when it is done."""
        super().finalize_options()
        if self.editable_mode or self.inplace:
            self.build_temp = KEPT

    def build_extensions(self) -> None:
        """Waits for what another process compiles in the same folder."""
        compile_one = self.compiler._compile

        def compiled(made, source, extension, before, after, options):  # type: ignore[no-untyped-def]
            more = GLUE_FLAGS if is_glue(source) else []
            compile_one(made, source, extension, before, [*after, *more], options)

        self.compiler._compile = compiled
        os.makedirs(self.build_temp, exist_ok=True)
        with open(os.path.join(self.build_temp, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            super().build_extensions()


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
    cmdclass={"build_ext": KeepObjects},
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

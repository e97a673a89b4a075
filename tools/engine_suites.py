"""Builds the engine's GoogleTest suites under a sanitizer: thread, or address with UBSan.

By CMake in build/engine-thread and build/engine-address, which stay for the next time; by one
process while others wait.

    python tools/engine_suites.py thread
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "engine_native"
SANITIZERS = {"thread": "thread", "address": "address,undefined"}
JOBS = 2


def build(sanitizer: str) -> Path:
    """The folder with all suites. Raises RuntimeError where they do not compile."""
    folder = ROOT / "build" / f"engine-{sanitizer}"
    folder.mkdir(parents=True, exist_ok=True)
    sanitize = f"-DSANITIZE={SANITIZERS[sanitizer]}"
    configure = ["cmake", "-S", str(ENGINE), "-B", str(folder), "-G", "Ninja", sanitize]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in configure, ["cmake", "--build", str(folder), "-j", str(JOBS)]:
            done = subprocess.run(command, capture_output=True, text=True, env=with_ccache())
            if done.returncode != 0:
                raise RuntimeError((done.stdout + done.stderr)[-8000:])
    return folder


def with_ccache() -> dict[str, str]:
    """The environment of a build; where ccache is installed, with one cache for every clone, as
    in setup.py, and for what includes precompiled headers too."""
    return {
        **os.environ,
        "PATH": f"/usr/lib/ccache:{os.environ['PATH']}",
        "CCACHE_BASEDIR": str(ROOT),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime",
    }


if __name__ == "__main__":
    build(sys.argv[1])

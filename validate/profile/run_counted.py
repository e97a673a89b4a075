"""A program under callgrind, once for each set of simulated caches."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ...inputs import InputError
from .callgrind import read_callgrind
from .counts import CallGraph

# A miss curve of six points from 32 KiB to 64 MiB, and what a prefetcher foresees of the misses of
# a cache of 2 MiB: what is larger and read in order is that on machines with any last level.
RUNS = (
    ("--D1=32768,8,64", "--LL=524288,16,64"),
    ("--D1=2097152,16,64", "--LL=8388608,16,64"),
    ("--D1=33554432,16,64", "--LL=67108864,16,64"),
    ("--D1=32768,8,64", "--LL=2097152,16,64", "--simulate-hwpref=yes"),
)


def run_counted(command: Sequence[str], *, region: bool = False) -> tuple[CallGraph, ...]:
    """Counts of all runs. ``region``: only what the program marks by ``callgrind_control -i on``
    and ``off``. Raises InputError where it cannot be started, or fails."""
    for program, package in ((command[0], None), ("valgrind", "sudo apt-get install valgrind")):
        if shutil.which(program) is None:
            raise InputError("no such program", token=program, hint=package)
    with ThreadPoolExecutor(len(RUNS)) as pool:
        return tuple(pool.map(lambda options: _run(command, options, region=region), RUNS))


def _run(command: Sequence[str], options: Sequence[str], *, region: bool) -> CallGraph:
    with tempfile.TemporaryDirectory(prefix="numatwin-") as folder:
        out = Path(folder) / "callgrind.out"
        valgrind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
        valgrind += [f"--log-file={folder}/log", "--cache-sim=yes", "--branch-sim=yes"]
        valgrind += ["--collect-systime=yes", *options]
        valgrind += ["--instr-atstart=no"] if region else []
        done = subprocess.run([*valgrind, *command], check=False, stdout=subprocess.DEVNULL)
        if done.returncode or not out.exists():
            raise InputError(f"{command[0]} ended with status {done.returncode} while counted")
        graph = read_callgrind(out, out.read_text(encoding="utf-8", errors="replace"))
    prefetched = "--simulate-hwpref=yes" in options
    return replace(graph, source=" ".join(command), prefetched=prefetched)

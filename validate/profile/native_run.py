"""A program as it runs without callgrind: what the kernel did for it, which callgrind cannot count.

The program marks its region by ``callgrind_control``. A stand-in of that name reads what the kernel
has counted of the process so far, all of its threads together.
"""

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...inputs import InputError
from .counts import Totals

# Without a process id it is that of the caller.
STAND_IN = """\
#!/bin/sh
pid=$PPID
for word; do
  case $word in
    on|off|--instr=on|--instr=off) mark=${word#--instr=} ;;
    *[!0-9]*|"") ;;
    *) pid=$word ;;
  esac
done
[ -z "$mark" ] || { stat=$(cat "/proc/$pid/stat") && echo "$mark $stat" >> "${0%/*}/marks"; }
"""
TICK_NS = 1e9 / os.sysconf("SC_CLK_TCK")
# By perf's names: the field of /proc/PID/stat behind the name, and its unit (proc(5)).
FIELDS = {"minor-faults": (7, 1.0), "user_time": (11, TICK_NS), "system_time": (12, TICK_NS)}


def run_native(command: Sequence[str], *, region: bool = False) -> Totals:
    """Page faults and ns of processor time of the command, or of its ``region`` alone; none where
    it marks none. Raises InputError where it fails."""
    with tempfile.TemporaryDirectory(prefix="numatwin-") as name:
        stand_in, marks = Path(name) / "callgrind_control", Path(name) / "marks"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        env = {**os.environ, "PATH": f"{name}:{os.environ.get('PATH', os.defpath)}"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise InputError(f"{command[0]} ended with status {done.returncode}")
        marked = marks.read_text(errors="replace").splitlines() if marks.exists() else []
    counts = {
        "minor-faults": float(after.ru_minflt - before.ru_minflt),
        "user_time": (after.ru_utime - before.ru_utime) * 1e9,
        "system_time": (after.ru_stime - before.ru_stime) * 1e9,
    }
    return Totals(" ".join(command), _of_region(marked) if region else counts)


def _of_region(marked: Sequence[str]) -> dict[str, float]:
    """Sums over all pairs of 'on' and 'off'; nothing where there is none."""
    found: dict[str, float] = {}
    for began, ended in _pairs(marked):
        for name, (field, unit) in FIELDS.items():
            grown = int(ended[field]) - int(began[field])
            found[name] = found.get(name, 0.0) + grown * unit
    return found


def _pairs(marked: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Fields at the begin and the end, of one process each."""
    on: dict[str, list[str]] = {}
    for line in marked:
        mark, pid, *_ = line.split()
        fields = line.rpartition(")")[2].split()
        if mark == "on":
            on[pid] = fields
        elif pid in on:
            yield on.pop(pid), fields

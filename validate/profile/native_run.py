"""A program as it runs without callgrind: what the kernel did for it, which callgrind cannot count.

The program marks its region by ``callgrind_control``. A stand-in of that name reads what the kernel
has counted of the process so far, all of its threads together.
"""

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from ...inputs import InputError
from .counts import Totals

# Without a process id it is that of the caller.
STAND_IN = """\
#!/bin/sh
for word; do
  case $word in on|off) mark=$word ;; --instr=*) mark=${word#*=} ;; *[!0-9]*) ;;
    *) pid=$word ;; esac
done
stat=$(cat "/proc/${pid:-$PPID}/stat") && echo "$mark $stat" >> "${0%/*}/marks"
"""
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
# By perf's names: the field of /proc/PID/stat behind the command's name, and its unit (proc(5)).
FIELDS = {"minor-faults": (7, 1), "user_time": (11, TICK_NS), "system_time": (12, TICK_NS)}


def run_native(command: Sequence[str], *, region: bool = False) -> Totals:
    """Page faults and ns of processor time of the command, or of its ``region``; nothing where it
    marks none. Raises InputError where it fails."""
    with tempfile.TemporaryDirectory(prefix="numatwin-") as name:
        stand_in, marks = Path(name) / "callgrind_control", Path(name) / "marks"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        marks.touch()
        path, before = os.environ.get("PATH", os.defpath), getrusage(RUSAGE_CHILDREN)
        env = {**os.environ, "PATH": f"{name}:{path}"}
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=env)
        if done.returncode:
            raise InputError(f"{command[0]} ended with status {done.returncode}")
        now, marked = getrusage(RUSAGE_CHILDREN), marks.read_text(errors="replace")
    times = (now.ru_utime - before.ru_utime) * 1e9, (now.ru_stime - before.ru_stime) * 1e9
    whole = dict(zip(FIELDS, (now.ru_minflt - before.ru_minflt, *times), strict=True))
    return Totals(" ".join(command), _of_region(marked.splitlines()) if region else whole)


def _of_region(marked: Sequence[str]) -> Counter[str]:
    """Sums over all pairs of 'on' and 'off', each of one process."""
    found, began = Counter[str](), dict[str, list[str]]()
    for line in marked:
        (mark, pid, *_), fields = line.split(), line.rpartition(")")[2].split()
        if mark == "on":
            began[pid] = fields
        elif first := began.pop(pid, None):
            grown = {k: (int(fields[at]) - int(first[at])) * by for k, (at, by) in FIELDS.items()}
            found.update(grown)
    return found

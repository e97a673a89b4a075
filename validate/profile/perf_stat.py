"""Totals that ``perf stat -x SEPARATOR`` prints: counts of a whole program."""

import re
from pathlib import Path

from ...inputs import InputError
from .counts import Totals, count

SEPARATORS = ",;|\t:"
NOT_COUNTED = ("<not counted>", "<not supported>")
LINE = re.compile(rf"(?:\d+(?:\.\d*)?|<not \w+>)([{SEPARATORS}])[^{SEPARATORS}]*\1[\w./:=-]+\1")


def is_perf_stat(head: str) -> bool:
    """Whether a file that begins so is one."""
    return any(LINE.match(line) for line in head.splitlines() if not line.startswith("#"))


def read_perf_stat(path: Path, text: str) -> Totals:
    """The counts by event; raises InputError."""
    counts: dict[str, float] = {}
    missing = []
    for at, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = LINE.match(line)
        if found is None:
            expected = "a count, its unit and its event, as 'perf stat -x,' prints"
            raise InputError("not a line of perf stat", str(path), at, None, line, expected)
        value, _, event, *_ = line.split(found[1])
        name = event.partition(":")[0]
        if value in NOT_COUNTED:
            missing.append(name)
        else:
            counts[name] = counts.get(name, 0.0) + count(value, str(path), at)
    if "instructions" not in counts:
        raise InputError(
            "instructions were not counted",
            str(path),
            token=", ".join(missing) or None,
            expected="perf stat -x, -e instructions,cycles,cache-misses,branch-misses",
        )
    return Totals(str(path), counts)

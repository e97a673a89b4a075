"""Programs in processes of their own: what they load; what they print in whichever process, as sets
are in another order in each.
"""

import os
import subprocess
import sys


def loads_none(program: str, *modules: str) -> None:
    """The program ends well, and has loaded none of these."""
    loaded = f"sorted({set(modules)} & set(sys.modules))"
    code = f"import sys\n{program}\nsys.exit(', '.join({loaded}) or 0)"
    done = python("-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def python(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The interpreter in a process of its own."""
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, **options)  # type: ignore[call-overload, no-any-return]


def numatwin(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return python("-m", "numatwin", *words, **options)


def printed_alike(program: str, *words: str) -> str:
    """What it prints in two processes side by side, which must be the same."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, *words],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    one, two = (process.communicate()[0] for process in running)
    assert [process.returncode for process in running] == [0, 0]
    assert one == two
    return one

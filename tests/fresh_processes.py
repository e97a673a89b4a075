"""What a program prints in whichever process: sets are in another order in each."""

import os
import subprocess
import sys


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

"""``tools/alive``: a line from time to time while a silent command runs, and its status."""

import os
import subprocess
from pathlib import Path

ALIVE = Path(__file__).parents[1] / "tools" / "alive"


def test_it_says_what_pip_is_at_and_ends_as_the_command_does() -> None:
    """Whatever the host's load: the command waits until it has been told of."""
    assert said_of("Collecting numpy>=2 (from numatwin)", "numpy") == 3
    assert said_of("Building editable for numatwin (pyproject.toml): started", "compiling") == 3


def said_of(logged: str, end: str) -> int:
    """Waits for a line with this end of a command that logs what pip would; its status."""
    script = f'echo "2026-01-01 {logged}" >> "$PIP_LOG"; read line; exit 3'
    with subprocess.Popen(
        [ALIVE, "packages", "sh", "-c", f"exec < /dev/fd/{(ends := os.pipe())[0]}; {script}"],
        env={**os.environ, "ALIVE_EVERY_S": "1"},
        stdout=subprocess.PIPE,
        pass_fds=[ends[0]],
        text=True,
    ) as running:
        assert running.stdout is not None
        while not (line := running.stdout.readline()).endswith(f"{end}\n"):
            assert line.startswith("setup: packages, ")
        os.write(ends[1], b"\n")
        assert line.startswith("setup: packages, ")
        status = running.wait()
    for descriptor in ends:
        os.close(descriptor)
    return status

"""``numatwin explore`` as a command: its example serves a page, Ctrl-C ends it."""

import os
import shlex
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from command_line import CommandLine
from test_help import commands


def test_the_example_serves_its_page_until_ctrl_c() -> None:
    example = dict(commands())["explore"]
    words = [str(Path(sys.executable).parent / "numatwin"), *shlex.split(example)[1:]]
    with subprocess.Popen(
        [*words, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=60) as answer:
            page = answer.read().decode().partition("url=")[2].partition('"')[0]
        with browser.open(urllib.parse.urljoin(address, page), timeout=60) as answer:
            assert answer.status == 200
            assert b"_dash-config" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().endswith("ended\n")
        assert process.stderr is not None
        assert (process.wait(60), process.stderr.read()) == (0, "")


def test_what_cannot_be_explored_is_told(numatwin: CommandLine) -> None:
    done = numatwin("explore", "eris-fig8-amd", "--set", "system.nonsense=1", "--no-browser")
    assert done.status == 2
    assert "unknown field 'nonsense'" in done.err
    assert done.err.count("\n") == 1

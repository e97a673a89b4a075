"""Opens a page in headless Chromium, offline, and says what became of it."""

import os
import shutil
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_S = 900


def classes(attributes: dict[str, str | None]) -> list[str]:
    """The classes of an element."""
    return (attributes.get("class") or "").split()


class Opened(NamedTuple):
    """The page after its scripts ran: attributes of the root, tags, texts, console lines."""

    root: dict[str, str | None]
    elements: list[tuple[str, dict[str, str | None]]]
    text: str
    console: list[str]

    def with_class(self, name: str) -> int:
        """How many elements have that class."""
        return sum(name in classes(attributes) for _, attributes in self.elements)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if not self.elements or self.elements[-1][0] not in ("script", "style"):
            self.texts.append(data)


def browser() -> str:
    """The browser; skips the test without one, or fails it where CI requires one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = f"no browser: none of {', '.join(NAMES)} is on PATH"
        if os.environ.get("NUMATWIN_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
    "--virtual-time-budget=20000", "--dump-dom",
)  # fmt: skip


def open_page(page: Path, fragment: str = "", width_px: int = 1_400) -> Opened:
    """The page as it is once its pictures are drawn; no name is resolved, no server reached."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [
                browser(),
                *FLAGS,
                f"--window-size={width_px},1000",
                f"--user-data-dir={profile}",
                page.as_uri() + fragment,
            ],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    reader = _Reader()
    reader.feed(done.stdout)
    assert reader.elements, done.stderr
    return Opened(
        root=reader.elements[0][1],
        elements=reader.elements,
        text=" ".join(" ".join(reader.texts).split()),
        console=[line for line in done.stderr.splitlines() if "CONSOLE" in line],
    )

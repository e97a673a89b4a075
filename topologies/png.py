"""Converts SVG into PNG with a browser of this host, without further packages."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..inputs import InputError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PIXELS_PER_PIXEL = 2  # of the PNG for one of the SVG, for sharp print
TIMEOUT_S = 60

# The picture is loaded with the page, before the script runs; the browser then prints the page.
_PAGE = """\
<!DOCTYPE html>
<html><body><img id="picture" src="data:image/svg+xml;base64,{picture}"><script>
window.onload = () => {{
  const picture = document.getElementById("picture"), canvas = document.createElement("canvas");
  canvas.width = {scale} * picture.naturalWidth;
  canvas.height = {scale} * picture.naturalHeight;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  document.body.textContent = canvas.toDataURL("image/png");
}};
</script></body></html>
"""
_PNG = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


def png_from_svg(svg: str) -> bytes:
    """The picture as a PNG file; raises InputError where no browser is found, or it fails."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InputError(
            "a .png picture needs Chromium or Chrome and finds neither: install one (on Debian the "
            "package chromium), or write .svg or .html"
        )
    with tempfile.TemporaryDirectory(prefix="numatwin-", ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "page.html"
        picture = base64.b64encode(svg.encode()).decode()
        page.write_text(_PAGE.format(picture=picture, scale=PIXELS_PER_PIXEL), encoding="utf-8")
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",  # containers have a small /dev/shm
            "--no-first-run",
            f"--user-data-dir={folder}/profile",
            "--dump-dom",
            page.as_uri(),
        ]
        if os.geteuid() == 0:  # as root Chromium starts only so; the page is our own
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=TIMEOUT_S, check=False, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise InputError(f"{browser} made no picture: {failure}; write .svg instead") from None
    found = _PNG.search(done.stdout)
    if found is None:
        raise InputError(
            f"{browser} made no picture (exit status {done.returncode}); write .svg instead"
        )
    return base64.b64decode(found[1])

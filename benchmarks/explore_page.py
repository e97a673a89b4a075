"""How long the page of ``numatwin explore`` takes in a browser: from a key to the new picture.

Arrow keys on sliders in headless Chromium, by scenario: wall time until the picture is painted (for
a quiet host); processor time of the server until it has answered, and of the page's thread in the
browser, gains included. Needs Chromium, chromedriver and selenium. Arguments: other scenarios;
``--moves``: keys for each. ``--picture``: of the first scenario's page, after that many keys on its
first slider, instead.
"""

import argparse
import json
import shutil
import statistics
import threading
import time
from typing import Any

import flask
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from numatwin.reports.explore import ExploreServer
from numatwin.reports.explore.explorer import Choice, Explorer
from numatwin.sim.studies.base import Base

SCENARIOS = ("eris-fig12-scan", "eris-fig1", "eris-fig9-single-ram")
ASKED_MS, WAIT_S, PAUSE_S = 100.0, 120.0, 0.3
# A key is timed when the page gets it, a picture in the first frame after the one that has it.
WATCH = """
addEventListener("keydown", () => { window.pressed = performance.now(); }, true);
new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
  window.moves.push(performance.now() - window.pressed);
}))).observe(document.documentElement, { attributeFilter: ["data-drawn"] });
"""


class ServerTime:
    """Processor time of each request for a prediction, ``each_ms``."""

    def __init__(self) -> None:
        self.each_ms: list[float] = []
        flask.request_started.connect(self._begin)
        flask.request_finished.connect(self._end)

    def _begin(self, _: flask.Flask, **__: object) -> None:
        flask.g.began = time.thread_time()

    def _end(self, _: flask.Flask, **__: object) -> None:
        if flask.request.method == "POST" and "answer.children" in flask.request.json["output"]:
            self.each_ms.append(1e3 * (time.thread_time() - flask.g.began))


class Page:
    """A scenario's page in a headless browser that finds no host but this."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
            options.add_argument(f"--{argument}")
        options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.browser: Any = webdriver.Chrome(options, service)
        self.wait = WebDriverWait(self.browser, WAIT_S, ignored_exceptions=[Exception])
        self.browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def thread_ms(self) -> float:
        """Processor time of the page's thread so far."""
        metrics = self.browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        seconds: dict[str, float] = {one["name"]: one["value"] for one in metrics}
        return 1e3 * seconds["TaskDuration"]

    def draw(self, address: str, moves: int, file: str) -> None:
        """Writes a picture of the page's upper part after ``moves`` of its first slider."""
        self.browser.set_window_size(1_280, 1_100)
        self.open(address)
        for _ in range(moves):
            self.move(0)
        self.browser.execute_script("document.activeElement.blur()")
        self.browser.save_screenshot(file)

    def open(self, address: str) -> None:
        """Shows the page."""
        self.browser.get(address)
        self.wait.until(lambda _: self.browser.find_element(By.ID, "gains").text)
        self.wait.until(lambda _: self.sliders())
        self.browser.execute_script(WATCH)

    def sliders(self) -> list[Any]:
        """Of all fields."""
        found: list[Any] = self.browser.find_elements(By.CSS_SELECTOR, "[role=slider]")
        return found

    def move(self, k: int) -> float:
        """Moves the ``k``-th slider a step; how long the picture takes, in ms."""
        sliders = self.sliders()
        self.browser.execute_script("window.moves = []")
        sliders[k % len(sliders)].send_keys(Keys.ARROW_RIGHT)
        moves: list[float] = []
        while not moves:
            time.sleep(PAUSE_S)  # asking takes the page's time
            moves = self.browser.execute_script("return window.moves")
        return moves[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--moves", type=int, default=30)
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args()
    page, server_time = Page(), ServerTime()
    try:
        for name in options.scenarios:
            explorer = Explorer(Base(name))
            explorer.fields(Choice())
            server = ExploreServer(explorer)
            threading.Thread(target=server.serve, daemon=True).start()
            if options.picture:
                page.draw(server.link(), options.moves, options.picture)
                server.close()
                break
            page.open(server.link())
            began_ms = page.thread_ms()
            server_time.each_ms.clear()
            whole_ms = [page.move(k) for k in range(options.moves)]
            browser_ms = (page.thread_ms() - began_ms) / options.moves
            server.close()
            parts = {
                "key to picture, median": statistics.median(whole_ms),
                "key to picture, worst": max(whole_ms),
                "processor time of the server, median": statistics.median(server_time.each_ms),
                "processor time of the server, worst": max(server_time.each_ms),
                "processor time of the page, mean": browser_ms,
            }
            for part, value_ms in parts.items():
                line = {"name": f"explore {name}, {part}", "value": round(value_ms, 1)}
                asked = part.startswith("key")
                line |= {"unit": "ms", "versus": f"{ASKED_MS:g} ms" if asked else None}
                line["ratio"] = round(value_ms / ASKED_MS, 2) if asked else None
                print(json.dumps(line), flush=True)
    finally:
        page.browser.quit()


if __name__ == "__main__":
    main()

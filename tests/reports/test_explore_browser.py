"""The page of ``numatwin explore`` in a real browser: keys, a broken value, pins, a phone."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from browser_page import browser
from explore_servers import serving
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WAIT_S = 120


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    binary, driver = browser(), shutil.which("chromedriver")
    if driver is None:
        reason = "no chromedriver on PATH"
        if os.environ.get("NUMATWIN_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


class Page:
    """The page of a scenario, once it shows a first prediction."""

    def __init__(self, chromium: webdriver.Chrome, address: str) -> None:
        self.chromium = chromium
        chromium.get(address)
        self.until(lambda: self.text("gains"))

    def until(self, holds: Any) -> None:
        WebDriverWait(self.chromium, WAIT_S, ignored_exceptions=[Exception]).until(
            lambda _: holds()
        )

    def text(self, id_: str) -> str:
        found: str = self.chromium.find_element(By.ID, id_).text
        return found

    def changes(self, id_: str, act: Any) -> str:
        before = self.text(id_)
        act()
        self.until(lambda: self.text(id_) != before)
        return self.text(id_)

    def all(self, css: str) -> list[Any]:
        found: list[Any] = self.chromium.find_elements(By.CSS_SELECTOR, css)
        return found

    def errors(self) -> list[Any]:
        """What the browser's console complains of, since it was asked last."""
        untyped: Any = self.chromium
        return [x for x in untyped.get_log("browser") if x["level"] == "SEVERE"]


@pytest.fixture
def page(chromium: webdriver.Chrome) -> Iterator[Page]:
    with serving() as server:
        yield Page(chromium, server.link())


def test_fields_move_by_keyboard_and_a_broken_value_is_told(page: Page) -> None:
    assert "memory bandwidth" in page.text("gains")
    assert page.all("#picture svg")
    slider = page.all("[role=slider]")[0]
    page.changes("answer", lambda: slider.send_keys(Keys.ARROW_RIGHT))
    assert "against the scenario" in page.text("answer")
    assert "--set" in page.text("command")

    page.changes("pinned", lambda: page.chromium.find_element(By.ID, "pin").send_keys(Keys.ENTER))
    assert len(page.all("#pinned tbody tr")) == 2

    box = page.all(".field.number input[type=text]")[0]
    command = page.text("command")
    box.send_keys(Keys.CONTROL, "a")
    page.changes("failure", lambda: box.send_keys("<b>fast</b>", Keys.ENTER))
    assert "<b>fast</b>" in page.text("failure")
    assert (page.text("command"), len(page.all("#picture svg"))) == (command, 1)

    reset = page.chromium.find_element(By.ID, "reset")
    page.changes("answer", lambda: reset.send_keys(Keys.ENTER))
    assert "against" not in page.text("answer")
    assert page.text("failure") == ""
    assert page.errors() == []


def test_it_fits_a_phone_in_the_dark(page: Page) -> None:
    run: Any = page.chromium.execute_cdp_cmd
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    run("Emulation.setEmulatedMedia", {"features": [dark]})
    run("Emulation.setDeviceMetricsOverride", size)
    try:
        script: Any = page.chromium.execute_script
        page.until(lambda: script("return document.documentElement.clientWidth") == 390)
        assert script("return document.documentElement.scrollWidth") == 390
        assert script("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 24, 31)"
        # A move draws the picture anew: without its legend, and in sight of the slider moved last.
        slider = page.all("[role=slider]")[-1]
        page.changes("command", lambda: slider.send_keys(Keys.ARROW_RIGHT))
        page.until(lambda: not page.all("#picture .legend"))
        box = script("return document.querySelector('#picture svg').getBoundingClientRect()")
        assert 0 < box["top"] < box["bottom"] < slider.rect["y"] - script("return scrollY")
        assert page.errors() == []
    finally:
        run("Emulation.setEmulatedMedia", {"features": []})
        run("Emulation.clearDeviceMetricsOverride", {})


LUMINANCE = """
const luminance = (colour) => {
  const linear = (x) => x <= 0.04 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = colour.match(/\\d+/g).map((x) => linear(x / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const fill = (x) => getComputedStyle(x).fill;
const svg = document.querySelector("#picture svg"), paper = svg.querySelector("rect");
const nodes = svg.querySelector("path[fill='#800026']");
const numbers = [...svg.querySelectorAll("text[font-weight=bold]")];
const keys = [...svg.querySelectorAll(".legend text")];
return [nodes !== null, ...numbers.map((x) => contrast(fill(x), fill(nodes))),
        ...keys.map((x) => contrast(fill(x), fill(paper)))];
"""


def test_letters_on_the_machine_stand_out(page: Page) -> None:
    run: Any = page.chromium.execute_cdp_cmd
    try:
        for theme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": theme}]
            run("Emulation.setEmulatedMedia", {"features": features})
            script: Any = page.chromium.execute_script
            has_busy_nodes, *contrasts = script(LUMINANCE)
            assert has_busy_nodes
            assert len(contrasts) > 8
            assert min(contrasts) >= 4.5, theme  # WCAG 2.1, level AA
    finally:
        run("Emulation.setEmulatedMedia", {"features": []})


def test_what_has_the_focus_is_seen_and_named(page: Page) -> None:
    script: Any = page.chromium.execute_script
    for css in (".dash-dropdown", ".field.number input[type=text]", "[role=slider]", "#pin"):
        script("arguments[0].focus({ focusVisible: true })", page.all(css)[0])
        outline = "return getComputedStyle(document.activeElement).outline"
        seen = "rgb(230, 159, 0) solid 3px"
        page.until(lambda outline=outline, seen=seen: script(outline) == seen)  # it fades in
    names = script("""return [...document.querySelectorAll("[role=slider]")]
        .map((x) => x.closest("[role=group]").getAttribute("aria-label"))""")
    assert names
    assert all("." in name for name in names)


def test_another_machine_brings_its_own_fields(page: Page) -> None:
    menu = page.all("[id*='\"machine\"']")[0]
    assert "opteron" in page.text("fields")
    menu.click()

    def only_one_is_left() -> bool:
        (search,) = page.all("input.dash-dropdown-search")
        if search.get_attribute("value") != "intel-4s":  # a menu that is just opening drops keys
            search.clear()
            search.send_keys("intel-4s")
        return len(page.all(".dash-dropdown-option")) == 1

    page.until(only_one_is_left)
    page.all(".dash-dropdown-option")[0].click()
    page.until(lambda: "opteron" not in page.text("fields") and page.all("[role=slider]"))
    page.until(lambda: "--machine intel-4s-qpi" in page.text("command"))
    assert page.errors() == []

"""The report in a browser without a network: clicking, pointing and typing.

The tests are skipped if chromium or chromedriver is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from paper.document import curves as report_curves
from paper.document import report
from paper.drawing import style

Make = Callable[..., Any]

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (CHROMIUM and CHROMEDRIVER), reason="chromium or chromedriver is missing"
    ),
]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.binary_location = CHROMIUM or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "localhost,127.0.0.1")
        driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
        yield driver
        driver.quit()


SCORES = {  # scores of each method's two seeds at three evaluations
    "ngt": ([0.0, 0.4, 0.8], [0.2, 0.6, 1.0]),
    "dac-r": ([0.0, 0.1, 0.2], [0.0, 0.1, 0.2]),
    "bc": ([0.3, 0.3, 0.3], [0.5, 0.5, 0.5]),
    "bc-full": ([0.7, 0.7, 0.7], [0.7, 0.7, 0.7]),
}


@pytest.fixture
def page(make_study: Make, make_artefacts: Make, browser: webdriver.Chrome) -> Page:
    """Return a report on two envs, one with several modes and rates; one run has diverged."""
    study = make_study(
        window=1, envs=["Pendulum-v1", "Hopper-v4"], methods=list(SCORES), seeds=[0, 1]
    )
    study.settings["figures"]["grid_figure"] = {
        "methods": ["ngt"],
        "envs": ["Pendulum-v1"],
        "demos": [4],
        "seeds": [0, 1],
        "modes": ["state-action", "state-state"],
        "rates": [10, 20],
    }
    for key in report_curves.keys(study.config):
        scores = SCORES[key.method][key.seed]
        diverged = (key.method, key.env, key.demos, key.seed) == ("dac-r", "Hopper-v4", 1, 1)
        study.write(key, [s / key.demos for s in scores], diverged=diverged)
    make_artefacts(study)
    file = study.layout.root / "report.html"
    file.write_text(report.page(study.config, study.layout, file))
    return Page(browser, file)


class Page:
    """The report page in the browser, and its controls."""

    def __init__(self, browser: webdriver.Chrome, file: Path) -> None:
        self.browser, self.file = browser, file
        self.screen(1280, 900)

    def screen(self, width: int, height: int, **media: str) -> None:
        """Load the page at a size in CSS pixels, with media features (prefers_color_scheme=...)."""
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in media.items()]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        self.browser.get(self.file.as_uri())

    def script(self, text: str, *arguments: Any) -> Any:
        return self.browser.execute_script(text, *arguments)

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.script(
            "return [...document.querySelectorAll(arguments[0])].map(x => x.textContent.trim())",
            selector,
        )
        return found

    def choose(self, name: str, text: str) -> None:
        Select(self.one(f"#explorer [name={name}]")).select_by_visible_text(text)

    def options(self, name: str) -> list[str]:
        return self.texts(f"#explorer [name={name}] option")

    def click(self, selector: str) -> None:
        element = self.one(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def curves(self) -> list[str]:
        """Return the methods with a visible curve, topmost curve first."""
        found: list[str] = self.script(
            "return [...document.querySelectorAll('.curve')].map(x => x.dataset.method).reverse()"
        )
        return found

    def lines(self) -> dict[str, str]:
        """Return each method's curve as an SVG path."""
        found: dict[str, str] = self.script(
            "return Object.fromEntries([...document.querySelectorAll('.curve')].map("
            "x => [x.dataset.method, x.querySelector('.line').getAttribute('d')]))"
        )
        return found

    def last(self) -> dict[str, list[str]]:
        """Return each method's cells in the table of last values."""
        cells = self.texts(".last tbody td")
        return {cells[i]: cells[i + 1 : i + 6] for i in range(0, len(cells), 6)}

    def point(self, method: str, x: float, above: int = 3) -> dict[str, str]:
        """Point next to a curve, at fraction x of its length; return the values shown."""
        at = self.script(
            "const line = document.querySelector(`.curve[data-method='${arguments[0]}'] .line`);"
            "line.scrollIntoView({block: 'center'});"
            "const p = line.getPointAtLength(line.getTotalLength() * arguments[1]);"
            "const box = line.ownerSVGElement.getBoundingClientRect();"
            "return [box.left + p.x, box.top + p.y]",
            method,
            x,
        )
        actions = ActionChains(self.browser, duration=0)
        actions.w3c_actions.pointer_action.move_to_location(round(at[0]), round(at[1]) - above)
        actions.perform()
        return self.tip()

    def tip(self) -> dict[str, str]:
        """Return the values in the box next to the curve, or {} if the box is hidden."""
        if not self.one(".tip").is_displayed():
            return {}
        names, values = self.texts(".tip dt"), self.texts(".tip dd")
        return {"method": self.texts(".tip strong")[0], **dict(zip(names, values, strict=True))}


def test_it_runs_without_errors_and_without_a_network(page: Page) -> None:
    page.point("ngt", 0.5)
    assert page.browser.get_log("browser") == []
    entries = page.script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in entries if not name.startswith("data:")] == []
    blocked = page.script(
        "return fetch('https://example.org/').then(() => 'reached', () => 'blocked')"
    )
    assert blocked == "blocked"
    assert page.browser.get_log("browser") != [], "the page's own policy must block the request"
    loaded = page.script("return [...document.images].every(x => x.complete && x.naturalWidth)")
    assert loaded


def test_choices_change_the_curves(page: Page) -> None:
    assert page.options("env") == ["Pendulum-v1", "Hopper-v4"]
    assert page.options("demos") == ["1", "4"]
    assert page.curves() == ["ngt", "dac-r", "bc", "bc-full"]
    assert page.last()["NGT"] == ["30,000", "0.900", "0.141", "2", "0"]
    before = page.lines()
    page.choose("demos", "4")
    assert page.last()["NGT"] == ["30,000", "0.225", "0.035", "2", "0"]
    assert page.last()["BC"] == ["–", "0.100", "0.035", "2", "0"]
    assert "demonstrations: 4" in page.one(".cell").text
    assert page.lines() != before
    page.choose("demos", "1")
    assert page.lines() == before
    page.choose("env", "Hopper-v4")
    assert page.last()["DAC (R)"] == ["30,000", "0.200", "0.000", "2", "1"]
    assert len(page.texts(".cross")) == 1, "the diverged run must be marked"


def test_a_choice_narrows_the_next(page: Page) -> None:
    assert page.options("mode") == ["state-action", "state-state"]
    assert page.options("rate") == ["1 in 10", "1 in 20"]
    assert Select(page.one("[name=rate]")).first_selected_option.text == "1 in 20"
    page.choose("rate", "1 in 10")
    assert page.options("demos") == ["4"], "only existing combinations may be offered"
    assert page.curves() == ["ngt", "bc-full"], "BC(1) has its own rate, so it must always be shown"
    assert page.point("bc-full", 0.9)["transitions kept"] == "all"
    page.choose("mode", "state-state")
    assert page.options("demos") == ["4"]
    assert page.curves() == ["ngt"]
    page.choose("env", "Hopper-v4")
    page.choose("demos", "1")
    assert (page.options("mode"), page.options("rate")) == (["state-action"], ["1 in 20"])
    assert page.curves() == ["ngt", "dac-r", "bc", "bc-full"]


def test_methods_are_switched_on_and_off(page: Page) -> None:
    page.click("input[value=ngt]")
    assert page.curves() == ["dac-r", "bc", "bc-full"] and "NGT" not in page.last()
    page.choose("demos", "4")
    assert page.curves() == ["dac-r", "bc", "bc-full"], (
        "the method must stay off after another choice"
    )
    page.click("[name=none]")
    assert page.curves() == [] and page.last() == {}
    page.click("input[value=bc]")
    assert page.curves() == ["bc"]
    page.click("[name=all]")
    assert page.curves() == ["ngt", "dac-r", "bc", "bc-full"]


def test_bands_and_units(page: Page) -> None:
    assert len(page.texts(".band")) == 4
    page.click("[name=band]")
    assert page.texts(".band") == []
    assert "normalised return" in page.texts(".chart .title")
    page.click("[name=returns]")
    assert "return" in page.texts(".chart .title")
    assert page.last()["NGT"][1:3] == ["250", "70.7"], "mean -200 + 0.9 * 500, std sqrt(0.02) * 500"


def test_pointing_at_a_curve_reads_its_values(page: Page) -> None:
    assert page.tip() == {}
    assert page.point("ngt", 0.999) == {
        "method": "NGT",
        "step": "30,000",
        "mean": "0.900",
        "std": "0.141",
        "seeds": "2",
    }
    assert page.point("ngt", 0.5)["step"] == "20,000"
    assert page.point("bc", 0.5) == {
        "method": "BC",
        "step": "none: final score",
        "mean": "0.400",
        "std": "0.141",
        "seeds": "2",
    }
    page.choose("env", "Hopper-v4")
    assert page.point("dac-r", 0.999)["diverged"] == "1"
    ActionChains(page.browser).move_to_element(page.one("h1")).perform()
    assert page.tip() == {}


def test_the_keyboard_reads_them_too(page: Page) -> None:
    chart = page.one(".chart svg")
    page.script("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_RIGHT)
    assert (page.tip()["method"], page.tip()["step"]) == ("NGT", "30,000")
    chart.send_keys(Keys.ARROW_LEFT)
    assert (page.tip()["step"], page.tip()["mean"]) == ("20,000", "0.500")
    chart.send_keys(Keys.ARROW_DOWN)
    assert page.tip()["method"] == "BC"
    chart.send_keys(Keys.ARROW_DOWN)
    assert page.tip()["method"] == "DAC (R)"
    chart.send_keys(Keys.ARROW_DOWN)
    assert page.tip()["method"] == "DAC (R)", "this is already the lowest curve"
    chart.send_keys(Keys.ESCAPE)
    assert page.tip() == {}


def test_tables_sort_by_value(page: Page) -> None:
    table = "#claims_table-table"

    def scores() -> list[str]:
        return page.texts(f"{table} tbody td:nth-child(2)")

    original = ["−2.50", "−10.12", "–", "10.00"]
    assert scores() == original
    page.click(f"{table} th:nth-child(2) button")
    assert scores() == ["−10.12", "−2.50", "10.00", "–"], "numbers must sort by value, blanks last"
    assert page.one(f"{table} th:nth-child(2)").get_attribute("aria-sort") == "ascending"
    page.one(f"{table} th:nth-child(2) button").send_keys(Keys.ENTER)
    assert scores() == ["10.00", "−2.50", "−10.12", "–"]
    page.click(f"{table} th:nth-child(1) button")
    assert page.texts(f"{table} tbody td:nth-child(1)") == ["a & c", "b <i>", "c", "d"]
    assert page.one(f"{table} th:nth-child(2)").get_attribute("aria-sort") is None
    for _ in range(2):
        page.click(f"{table} th:nth-child(1) button")
    assert scores() == original, "the third click must restore the order"


def test_tables_are_filtered_by_words(page: Page) -> None:
    article = "article[aria-labelledby=claims_table]"
    rows = f"{article} tbody tr:not([hidden]) td:first-child"
    field = page.one(f"{article} [type=search]")
    field.send_keys("Reproduced")
    assert page.texts(rows) == ["b <i>", "a & c", "d"]
    assert page.texts(f"{article} output") == ["3 of 4 rows"]
    field.send_keys(" not")
    assert page.texts(rows) == ["b <i>"]
    field.clear()
    field.send_keys("x")
    field.send_keys(Keys.BACKSPACE)
    assert len(page.texts(rows)) == 4 and page.texts(f"{article} output") == [""]


def test_what_is_shown_is_downloaded(page: Page) -> None:
    page.script(
        "HTMLAnchorElement.prototype.click = function () { window.saved = this.download; };"
        "URL.createObjectURL = (blob) => { window.blob = blob; return '#'; }"
    )
    page.choose("demos", "4")
    page.click("[name=csv]")
    name = page.script("return window.saved")
    lines = page.script("return window.blob.text()").splitlines()
    assert name == "curves-Pendulum-v1.csv"
    assert lines[0] == "env,mode,rate,demos,method,step,mean,std,seeds"
    row = lines[3].split(",")
    assert row[:6] == ["Pendulum-v1", "state-action", "20", "4", "ngt", "30000"]
    np.testing.assert_allclose([float(x) for x in row[6:]], [0.225, 0.0354, 2], atol=1e-4)
    rates = {fields[4]: fields[2] for fields in (line.split(",") for line in lines[1:])}
    assert rates["bc-full"] == "1", "this method has its own rate"


def test_a_narrow_and_a_dark_screen(page: Page) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    stroke = "return getComputedStyle(document.querySelector('.curve .line')).stroke"
    assert page.script(background) == "rgb(255, 255, 255)"
    light = page.script(stroke)
    page.screen(360, 740, prefers_color_scheme="dark")
    wide = page.script("return document.documentElement.scrollWidth")
    assert wide <= 360, "only a table may scroll sideways"
    assert not page.one("nav ol").is_displayed(), "the table of contents must be folded at first"
    page.click("nav summary")
    assert page.one("nav ol").is_displayed()
    red, green, blue = (int(style.DARK[i : i + 2], 16) for i in (1, 3, 5))
    assert page.script(background) == f"rgb({red}, {green}, {blue})"
    assert page.script(stroke) != light
    assert page.browser.get_log("browser") == []

"""The report for readers with a keyboard, a screen reader or low vision, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from paper.document import report

Make = Callable[..., Any]

pytestmark = pytest.mark.long

# Each script returns the elements that break a rule, as short texts.
RULES = {
    "pictures have words": """
        return all('img, svg[role=img]').filter(
            x => !(x.getAttribute('alt') || x.getAttribute('aria-label')))""",
    "other drawings are hidden": "return all('svg:not([role=img]):not([aria-hidden=true])')",
    "one first heading": "return all('h1').slice(1)",
    "headings skip no level": """
        return all('h1, h2, h3, h4, h5, h6').filter(
            (x, i, every) => x.tagName[1] - (i ? every[i - 1].tagName[1] : 0) > 1)""",
    "all content is in a landmark": """
        return [...document.body.children].filter(
            x => !x.matches('nav, main, script, a.skip'))""",
    "controls have names": """
        return all('input, select, button').filter(x => !(
            x.labels?.length || x.getAttribute('aria-label') || x.textContent.trim()))""",
    "links have names": """
        return all('a').filter(x => !(x.getAttribute('aria-label') || x.textContent.trim()))""",
    "the focus follows the page": "return all('[tabindex]').filter(x => x.tabIndex > 0)",
    "headings of tables have a scope": "return all('th').filter(x => !x.scope)",
    "tables have headings and a caption": """
        return all('table').filter(
            x => !x.querySelector('th') || !x.caption?.textContent.trim())""",
    "what scrolls can be reached": """
        return all('*').filter(x => /auto|scroll/.test(getComputedStyle(x).overflowX)
            && x.scrollWidth > x.clientWidth && x.tabIndex < 0)""",
    "names are unique": """
        const ids = all('[id]').map(x => x.id);
        return all('[id]').filter(x => ids.filter(id => id === x.id).length > 1)""",
    "text stands out": """
        const rgb = text => text.match(/[\\d.]+/g).map(Number);
        const light = c => c.slice(0, 3).map(v => v / 255).map(
            v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
        ).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const behind = x => {
            for (; x; x = x.parentElement) {
                const color = rgb(getComputedStyle(x).backgroundColor);
                if ((color[3] ?? 1) === 1) return color;
            }
            return [255, 255, 255];
        };
        const own = x => [...x.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        return all('body *').filter(x => {
            if (!own(x) || x.matches('script, option') || !x.checkVisibility()) return false;
            const style = getComputedStyle(x);
            const front = rgb(x.closest('svg') ? style.fill : style.color);
            const [a, b] = [light(front), light(behind(x))].sort((a, b) => a - b);
            return (b + 0.05) / (a + 0.05) < 4.5;
        })""",
}
COMMON = """
    const all = selector => [...document.querySelectorAll(selector)];
    const broken = () => { %s };
    return broken().slice(0, 5).map(x => x.outerHTML.slice(0, 150));
"""


@pytest.fixture
def show(make_study: Make, make_artefacts: Make, browser: webdriver.Chrome) -> Callable[..., None]:
    """Return show(width, scheme), which opens a report in a light or dark browser."""
    study = make_study(methods=["ngt", "dac-r", "red", "bc", "bc-full"], seeds=[0, 1])
    for key in study.table():
        study.write(key, [0.2, 0.5, 0.9])
    make_artefacts(study)
    file = Path(study.layout.root / "report.html")
    file.write_text(report.page(study.config, study.layout, file), encoding="utf-8")

    def at(width: int, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(file.as_uri())

    return at


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_is_broken(
    show: Callable[..., None], browser: webdriver.Chrome, width: int, scheme: str
) -> None:
    show(width, scheme)
    found = {rule: browser.execute_script(COMMON % script) for rule, script in RULES.items()}
    assert {rule: elements for rule, elements in found.items() if elements} == {}
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    landmarks = "return ['nav', 'main', 'h1'].map(x => document.querySelectorAll(x).length)"
    assert browser.execute_script(landmarks) == [1, 1, 1]


def test_the_keyboard_visits_the_page_from_top_to_bottom(
    show: Callable[..., None], browser: webdriver.Chrome
) -> None:
    show(1280, "light")
    browser.execute_script(
        "window.seen = []; document.addEventListener('focusin', e => window.seen.push(e.target))"
    )
    ActionChains(browser, duration=0).send_keys(*[Keys.TAB] * 120).perform()
    first = browser.execute_script("return window.seen[0].className")
    assert first == "skip", "the first stop is the link to the content"
    backwards = browser.execute_script(
        "return window.seen.slice(1).filter((x, i) => !(window.seen[i]"
        ".compareDocumentPosition(x) & 4)).map(x => x.outerHTML.slice(0, 150))"
    )
    assert backwards == []
    outlines = browser.execute_script(
        "const one = window.seen.at(-1); return getComputedStyle(one).outlineStyle"
    )
    assert outlines == "solid", "the stop with the focus has an outline"


def test_with_many_curves_only_the_reference_and_the_focused_one_have_bands(
    show: Callable[..., None], browser: webdriver.Chrome
) -> None:
    show(1280, "light")
    bands = (
        "return [...document.querySelectorAll('.curve')].filter(x => x.querySelector('.band') &&"
        " getComputedStyle(x.querySelector('.band')).opacity > 0).map(x => x.dataset.method)"
    )
    assert browser.execute_script(bands) == ["ngt"]
    browser.execute_script("document.querySelector('.chart svg').focus()")
    ActionChains(browser, duration=0).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    focused = browser.execute_script("return document.querySelector('.curve.on').dataset.method")
    assert set(browser.execute_script(bands)) == {"ngt", focused}

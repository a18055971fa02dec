"""The docs site: links, generated pages, failing builds, and the site in a browser offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import ngt
from ngt import cli
from paper.handbook import website

ROOT = Path(__file__).resolve().parents[3]

# mkdocs's arguments in `make docs`.
(MAKE_DOCS,) = re.findall(r"-m mkdocs (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.M)

# A small site with the strictness of the real one.
SMALL = """
INHERIT: {root}/mkdocs.yml
docs_dir: pages
hooks: [hook.py]
nav: [index.md]
plugins: []
theme: {{custom_dir: {root}/paper/handbook/theme}}
"""

# A tag that makes a browser load something from another host. A plain link (<a href>) does not.
REMOTE = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|link)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//"
)


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("README.md", "[a](docs/b.md#c)", "[a](b.md#c)"),
        ("README.md", "[a](CONTRIBUTING.md)", "[a](contributing.md)"),
        ("data/README.md", "![a](curves.png)", "![a](curves.png)"),
        ("docs/b.md", "[a](../data/README.md#c)", "[a](experts.md#c)"),
        ("docs/b.md", "[a](../ngt/cli.py)", "a (`ngt/cli.py`)"),
        ("docs/b.md", "[`ngt/cli.py`](../ngt/cli.py)", "`ngt/cli.py`"),
        ("docs/b.md", "[a](https://b.org/c)", "[a](https://b.org/c)"),
        ("docs/b.md", "[a](#c)", "[a](#c)"),
    ],
)
def test_a_link_leads_to_a_page_or_names_a_file(source: str, link: str, expected: str) -> None:
    known = {"README.md", "CONTRIBUTING.md", "data/README.md", "data/curves.png", "docs/b.md"}
    assert website.relink(link, source, known) == expected


def test_a_link_that_leads_nowhere_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    website.relink("[a](gone.md)", "docs/b.md", {"docs/b.md"})
    assert "docs/b.md: the link to gone.md leads nowhere" in caplog.text


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- ([a-z-]+\.md)$", text, re.M)
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} | {"reference.md", "api.md"}
    pages |= {name for name in website.ELSEWHERE if name.endswith(".md")}
    assert sorted(listed) == sorted(pages)


def test_the_reference_has_every_command_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    page = website.reference()
    for name in cli.COMMANDS:
        assert f"\n## ngt {name}\n\n```text\nusage: ngt {name} " in page
    assert "\n  --restart " in page
    assert "\n## python -m paper\n" in page
    assert max(map(len, page.splitlines())) > 80, "the width must not follow the terminal's"


def test_the_api_page_has_every_name() -> None:
    page = website.api()
    for name in ngt.__all__:
        assert name == "__version__" or re.search(
            rf"^## ngt\.{name}\n\n::: ngt\.\S+{name}$", page, re.M
        )


def build(folder: Path, config: Path) -> subprocess.CompletedProcess[str]:
    """Build a site into `folder`, as `make docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *MAKE_DOCS.split(), "-f", config, "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pages", "warnings"),
    [
        ({"index.md": "# A\n\n[a](#a)"}, []),
        (
            {"index.md": "# A\n\n[a](gone.md) [b](#gone)", "lone.md": "# B"},
            ["'gone.md'", "no such anchor", "lone.md"],
        ),
    ],
    ids=["good", "bad"],
)
def test_a_build_fails_on_a_broken_link_or_an_unlisted_page(
    tmp_path: Path, pages: dict[str, str], warnings: list[str]
) -> None:
    (tmp_path / "pages").mkdir()
    for name, text in pages.items():
        (tmp_path / "pages" / name).write_text(text)
    (tmp_path / "hook.py").write_text("from paper.handbook.website import on_startup\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(SMALL.format(root=ROOT))
    done = build(tmp_path / "site", config)
    assert done.returncode == bool(warnings), done.stderr
    assert all(warning in done.stderr for warning in warnings), done.stderr
    assert done.stderr.count("WARNING") == len(warnings), done.stderr
    if not warnings:
        assert done.stdout + done.stderr == ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built as `make docs` builds it, without any message."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder, ROOT / "mkdocs.yml")
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stderr
    return folder


@pytest.mark.long
def test_the_site_has_the_whole_api_and_loads_nothing_remote(site: Path) -> None:
    api = (site / "api.html").read_text(encoding="utf-8")
    for name in (*ngt.__all__, "predict", "record", "evaluations", "policy"):
        assert re.search(rf"\bngt\.{name}\b|id=\"ngt\.api\.\w+\.\w+\.{name}\"", api), name
    for text in ("Raises", "UserError", "(n, act)", "(T + n, obs)"):
        assert text in re.sub(r"<[^>]+>", "", api), text
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert REMOTE.findall(page.read_text(encoding="utf-8")) == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", style.read_text("utf-8"))


@pytest.mark.long
def test_every_page_opens_and_search_works_without_a_network(site: Path, browser: Any) -> None:
    for page in sorted(site.rglob("*.html")):
        browser.get(page.as_uri())
        assert browser.find_element(By.TAG_NAME, "h1").text
        problems = [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
        assert page.name == "404.html" or problems == [], (page.name, problems)
    browser.get((site / "index.html").as_uri())
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    browser.execute_script("document.getElementById('__search').click()")
    WebDriverWait(browser, 10).until(lambda _: box.is_displayed() and box.is_enabled())
    box.send_keys("load_policy")
    found = "a.md-search-result__link"
    WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.CSS_SELECTOR, found))
    links = [a.get_attribute("href") for a in browser.find_elements(By.CSS_SELECTOR, found)]
    assert any("api.html" in link for link in links), links
    assert all(link.startswith("file:") for link in links)

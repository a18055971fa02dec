"""The report page: its content, its requirements and its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ngt.errors import UserError
from ngt.runs.keys import Layout
from ngt.runs.shipping.gather import publish
from ngt.settings.load import load
from paper import command
from paper.document import report
from paper.drawing import style
from paper.register import FIGURES, TABLES

Make = Callable[..., Any]


class Page(HTMLParser):
    """The elements, links and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str, name: str) -> list[str]:
        return [attrs[name] for found, attrs in self.elements if found == tag and name in attrs]


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that stands for the repository's videos of runs."""
    monkeypatch.setattr(report, "AGENTS", tmp_path / "agents")
    report.AGENTS.mkdir()
    return report.AGENTS


@pytest.fixture
def study(make_study: Make, fill: Make, make_artefacts: Make, agents: Path) -> Any:
    made = make_study(methods=["ngt", "bc"], demos=[1, 4], seeds=[0, 1])
    fill(made)
    make_artefacts(made)
    return made


def write(study: Any, *, allow_partial: bool = False) -> str:
    out = study.layout.root / "report.html"
    return report.page(study.config, study.layout, out, allow_partial=allow_partial)


def test_every_artefact_of_the_scale_in_order(study: Any) -> None:
    page = Page(write(study))
    names = [a.name for part in (FIGURES, TABLES) for a in part.values() if a.at(study.config)]
    names = [*report.FIRST, *(name for name in names if name not in report.FIRST)]
    assert "main_figure" in names and "dmc_figure" not in names and "speed_table" not in names
    assert [i for i in page.all("h3", "id") if not i.startswith("runs-")] == names
    links = [link[1:] for link in page.all("a", "href") if link.startswith("#")]
    anchors = set(page.all("h2", "id") + page.all("h3", "id") + page.all("main", "id"))
    assert set(links) == anchors, "links and anchors must match"
    for name in names:
        assert (FIGURES | TABLES)[name].title in page.text


def test_pictures_have_words_for_those_who_do_not_see_them(study: Any) -> None:
    page = Page(write(study))
    images = [attrs for tag, attrs in page.elements if tag == "img"]
    figures = [a for a in FIGURES.values() if a.at(study.config)]
    figures.sort(key=lambda a: a.name not in report.FIRST)
    assert len(images) == len(figures)
    for image, figure in zip(images, figures, strict=True):
        assert image["src"].startswith("data:image/png;base64,")
        assert image["alt"].startswith(figure.title)
        assert (image["width"], image["height"]) == ("400", "100")
    alt = images[[f.name for f in figures].index("main_figure")]["alt"]
    assert alt.endswith("Learning curves of NGT, BC on Pendulum-v1; demonstrations: 1, 4.")


def test_tables_are_whole_and_escaped(study: Any) -> None:
    text = write(study)
    assert "b &lt;i&gt;" in text and "<i>" not in text
    page = Page(text)
    assert page.text.count("Caption of claims_table") == 1
    assert "a & c" in page.text and "−10.12" in page.text and "A note." in page.text
    assert "-10.123456" in page.all("td", "data-value"), "the exact number is needed for sorting"
    marks = [a["class"] for t, a in page.elements if t == "td" and "verdict" in a.get("class", "")]
    assert marks[:4] == ["verdict bad", "verdict good", "verdict good", "verdict none"]


def test_verdicts_are_counted_at_a_glance(study: Any) -> None:
    text = Page(write(study)).text
    assert "The paper's claims 2 reproduced, 1 not reproduced, 1 not run at this scale" in text


def test_it_opens_with_what_was_found(study: Any) -> None:
    page = Page(write(study))
    assert page.all("h2", "id")[:2] == ["found", "curves"]
    assert "8 of 8 runs of scale quick are drawn. The main figure has 8: " in page.text
    assert "To draw the main figure again: make figure" in page.text


def test_what_is_not_published_is_a_gap(study: Any) -> None:
    other = {"methods": ["red"], "envs": ["Hopper-v4"], "demos": [1], "seeds": [0], "beside": []}
    study.settings["figures"]["ablation_init"] = other
    publish(study.layout, study.config, allow_partial=True)
    study.settings["records"] = "published"
    page = Page(write(study))
    assert "none of its runs is published; make it with snakemake" in page.text
    assert "main_figure.png is missing" not in page.text


def test_links_are_relative_to_the_page(study: Any, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere" / "report.html"
    text = report.page(study.config, study.layout, out)
    links = [link for link in Page(text).all("a", "href") if not link.startswith("#")]
    assert {"../results/main_table.csv", "../results/main_figure.pdf"} <= set(links)
    assert [link for link in links if not (out.parent / link).resolve().exists()] == []


def test_the_page_needs_nothing_else(study: Any) -> None:
    text = write(study)
    page = Page(text)
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", text) and "@import" not in text
    assert all(link.startswith("data:") for link in page.all("link", "href"))
    assert page.all("script", "src") == []
    (policy,) = (a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;"), (
        "browsers must block everything else"
    )


def test_the_same_inputs_give_the_same_bytes(study: Any) -> None:
    assert write(study) == write(study)


def test_no_label_ends_the_script_that_holds_it(study: Any) -> None:
    study.settings["methods"]["ngt"]["label"] = "</script><b>NGT"
    text = write(study)
    assert "</script><b>" not in text
    data = re.search(r'id="curves-data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["methods"][0]["label"] == "</script><b>NGT"


def test_a_missing_file_is_an_error_or_a_gap(study: Any) -> None:
    (study.layout.root / "theory_figure.png").unlink()
    (study.layout.root / "main_table.json").unlink()
    command = "snakemake --cores all results/theory_figure.pdf"
    with pytest.raises(UserError, match=rf"theory_figure\.png is missing; .*`{command}`"):
        write(study)
    page = Page(write(study, allow_partial=True))
    assert "figures and tables that are not made yet: 2." in page.text
    assert "main_table.json is missing; make it with snakemake --cores all results/main_t" in (
        page.text
    )
    assert "Caption of main_table" not in page.text and "Caption of claims_table" in page.text


def test_the_command_that_makes_a_file_names_the_scale(study: Any) -> None:
    config = load({"scale": "paper"})
    assert report.target(config, TABLES["main_table"]).endswith(
        "results/main_table.csv --config scale=paper"
    )


def test_the_commands_of_a_study_name_its_file_and_folder(study: Any) -> None:
    config = load({"scale": "test", "study": "mine"})
    made = "snakemake --cores all --configfile YOUR.yaml --config scale=test -- results/mine/"
    assert report.target(config, TABLES["main_table"]) == f"{made}main_table.csv"
    assert report.redraw(config) == f"{made}main_figure.pdf"
    assert report.title(config) == "Study mine: the runs of scale test"


@pytest.mark.parametrize("text", ["{", "[]", '{"caption": "x"}'])
def test_a_file_that_is_no_table_is_named(study: Any, text: str) -> None:
    (study.layout.root / "main_table.json").write_text(text)
    with pytest.raises(UserError, match=r"main_table\.json: not a table .* make it again with"):
        write(study)


def test_a_missing_run_is_an_error_or_is_said(study: Any) -> None:
    gone = study.key("ngt", seed=1)
    (study.layout.run(gone) / "run.json").unlink()
    with pytest.raises(UserError, match=f"run {gone}: part"):
        write(study)
    text = Page(write(study, allow_partial=True)).text
    assert "runs that are not complete: 1." in text and "Runs 8: 7 finished, 1 part" in text
    assert str(gone) in text


def test_pictures_shrink_where_the_page_would_be_too_large(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (90, 1350, 3), dtype=np.uint8)
    about = PngInfo()
    about.add_text("Title", style.made_of(study.config.scale))
    Image.fromarray(noise).save(study.layout.root / "main_figure.png", pnginfo=about)
    whole = len(write(study).encode())
    assert 100_000 < whole < report.LIMIT == 4_500_000
    monkeypatch.setattr(report, "LIMIT", whole // 2)
    text = write(study)
    assert len(text.encode()) <= whole // 2
    (figure,) = (a for t, a in Page(text).elements if t == "img" and "Learning" in a["alt"])
    assert figure["style"] == "width: 945px" and int(figure["width"]) < 1350


def test_videos_of_runs_are_in_the_page_and_start_when_opened(study: Any) -> None:
    assert "videos" not in Page(write(study)).all("h2", "id")
    folder = study.layout.home / "videos"
    folder.mkdir(parents=True)
    Image.new("P", (40, 20)).save(folder / "ngt and expert.gif")
    page = Page(write(study))
    assert "videos" in page.all("h2", "id") and "#videos" in page.all("a", "href")
    (video,) = (a for tag, a in page.elements if tag == "img" and "gif" in a["src"])
    assert video["src"].startswith("data:image/gif;base64,")
    assert video["alt"] == "Video: ngt and expert"
    (details,) = (a for tag, a in page.elements if tag == "details" and a.get("class") == "video")
    assert "open" not in details


def test_videos_of_the_repository_s_runs_are_in_the_page_of_their_env(
    study: Any, agents: Path
) -> None:
    (env,) = report.envs(study.config)
    for name in (f"ngt-{env}", "ngt-Other-v1"):
        Image.new("P", (40, 20)).save(agents / f"{name}.gif")
    alts = [
        a["alt"] for tag, a in Page(write(study)).elements if tag == "img" and "gif" in a["src"]
    ]
    assert alts == [f"Video: ngt-{env}"]


def test_words_are_apart_from_the_tags_around_them(study: Any) -> None:
    assert re.findall(r"</(?:a|cite|code|em|strong)>\w+|\w+<(?:a|cite|code)\b", write(study)) == []


def test_published_records_give_the_same_curves(study: Any) -> None:
    made = write(study)
    publish(study.layout, study.config)
    study.settings["records"] = "published"
    (study.layout.root / "quick" / "runs").rename(study.layout.root / "gone")
    again = write(study)
    curves = re.compile(r'id="curves-data">(.*?)</script>', re.DOTALL)
    assert curves.findall(again) == curves.findall(made) != []
    assert "published with the suite" in again and "Runs 8: 8 finished" in Page(again).text


def test_the_command(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    scales = tmp_path / "scales"
    scales.mkdir()
    (scales / "base.yaml").write_text(yaml.safe_dump(study.settings))
    (scales / "quick.yaml").write_text("scale: quick\n")
    monkeypatch.setattr("ngt.settings.options.load", partial(load, directory=scales))
    command.main(["report", "--scale", "quick", "--out", "out/page.html"])
    size = Path("out/page.html").stat().st_size
    assert capsys.readouterr().out == f"out/page.html: {size / 1000:.0f} kB\n"
    layout = Layout("quick", Path("results"))
    assert Path("out/page.html").read_text() == report.page(
        study.config, layout, Path("out/page.html")
    )
    Path("folder.html").mkdir()
    for arguments, words in (
        (["--out", "folder.html"], "folder.html: can't be written"),
        (["--results", "nowhere"], "nowhere/method_diagram.png is missing"),
        (["--ouch"], "--ouch"),
    ):
        with pytest.raises(SystemExit) as stop:
            command.main(["report", *arguments])
        err = capsys.readouterr().err
        assert stop.value.code == 2 and err.count("\n") == 1
        assert err.startswith("report: error: ") and words in err


def test_what_was_made_of_another_scale_is_not_shown(study: Any) -> None:
    made = {"config": study.config, "layout": study.layout, "out": study.layout.root / "r.html"}
    table = study.layout.root / "main_table.json"
    table.write_text(table.read_text().replace('"scale": "', '"scale": "x'))
    with pytest.raises(UserError, match=r"main_table\.json: not of scale .*make it again with"):
        report.items(**made, allow_partial=True)
    table.write_text(table.read_text().replace('"scale": "x', '"scale": "'))
    picture = study.layout.root / "main_figure.png"
    for scale in ("", f"{study.config.scale}2"):
        about = PngInfo()
        about.add_text("Title", style.made_of(scale))
        Image.new("RGB", (4, 4)).save(picture, pnginfo=about)
        with pytest.raises(UserError, match=r"main_figure\.png: not of scale"):
            report.items(**made, allow_partial=True)

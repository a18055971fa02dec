"""docs/studies.md, followed step by step: a study without NGT, from the shipped records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ngt.errors import UserError
from ngt.runs.keys import Layout
from ngt.settings.load import load, read_yaml
from ngt.settings.resolve import config_hash
from paper import command
from paper.drawing.table import from_json
from paper.register import FIGURES, TABLES
from tests.pages import ROOT, blocks, read

(YAML,) = blocks(read("studies.md"), "yaml")
RECORDS = ROOT / "results/published/quick.parquet"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the page's config file in an empty folder, with few repetitions."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(YAML.replace("{reference:", "{reps: 20, reference:"))
    return file


@pytest.mark.slow
def test_a_study_without_ngt_has_its_whole_report(mine: Path) -> None:
    config = load(read_yaml(mine))
    artefacts = FIGURES | TABLES
    made = [name for name, a in artefacts.items() if a.runs == ("main_figure",) and not a.experts]
    made.remove("reward_figure")  # also shows a file of the checkout
    own = ["--config", "mine.yaml", "--records", str(RECORDS)]
    for name in (*made, "claims_table"):
        png = [f"--png=results/penalties/{name}.png"] if name in FIGURES else []
        command.main([name, *own, *png])
    command.main(["report", *own, "--allow-partial"])
    home = Path("results/penalties")
    assert {p.name for p in Path("results").iterdir()} == {"penalties"}
    page = (home / "report.html").read_text()
    assert "penalties" in page and "P(DAC, R &gt; method)" in page
    gaps = re.findall(r"results/penalties/(\w+)\.\w+ is missing", page)
    assert not {*made, "claims_table"} & set(gaps)
    assert set(gaps) < {name for name, a in artefacts.items() if a.at(config)}
    (pair,) = from_json((home / "pairs_table.json").read_text()).rows
    assert (pair["a"], pair["b"]) == ("DAC, R", "W-DAC")
    rows = from_json((home / "aggregate_table.json").read_text()).rows
    (other,) = (r for r in rows if (r["demos"], r["method"]) == ("all", "W-DAC"))
    assert [pair[n] for n in ("better", "low", "high")] == [
        other[n] for n in ("better", "better_low", "better_high")
    ]
    assert {row["better"] for row in rows if row["method"] == "DAC, R"} == {None}


def test_a_study_is_only_a_folder(mine: Path) -> None:
    config = load(read_yaml(mine))
    plain = load({k: v for k, v in read_yaml(mine).items() if k != "study"})
    assert config_hash(config) == config_hash(plain)
    study, usual = Layout.of(config), Layout.of(plain)
    assert (study.home, usual.home) == (Path("results/penalties"), Path("results"))
    assert study.runs == Path("results/penalties/quick/runs")
    assert study.published == Path("results/penalties/published/quick.parquet")


def test_others_stands_for_the_figures_that_are_not_named(mine: Path) -> None:
    every = load({}).figures
    assert set(load(read_yaml(mine)).figures) == {"main_figure"} < set(every)
    own = {"seeds_figure": {}, "own": {"methods": ["bc"], "envs": ["Pendulum-v1"]}}
    kept = load({"figures": {"others": None, **own}})
    assert list(kept.figures) == ["seeds_figure", "own"]
    assert kept.figures["seeds_figure"] == every["seeds_figure"]
    assert config_hash(kept) == config_hash(load({"figures": dict.fromkeys(every) | own}))
    with pytest.raises(UserError, match=r"figures\.others: must be null"):
        load({"figures": {"others": {}}})


@pytest.mark.parametrize(
    "name", ["quick", "Paper", "published", "a/b", "..", "x y", "main_figure.pdf", "Report.HTML"]
)
def test_a_study_needs_a_folder_of_its_own(name: str) -> None:
    with pytest.raises(UserError, match="study: "):
        load({"study": name})


@pytest.mark.parametrize(
    ("reference", "said"), [("nogo", "did you mean|known"), ("bc", "is not among")]
)
def test_the_reference_is_a_method_of_the_main_figure(
    mine: Path, capsys: pytest.CaptureFixture[str], reference: str, said: str
) -> None:
    mine.write_text(mine.read_text().replace("dac-r}", f"{reference}}}"))
    with pytest.raises(SystemExit):
        command.main(["main_table", "--config", "mine.yaml", "--records", str(RECORDS)])
    (line,) = capsys.readouterr().err.splitlines()
    assert "statistics.reference" in line and re.search(said, line)

"""The LaTeX report: its text, missing figures and tables, and its PDF if LaTeX is installed."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import read_keys
from ngt.settings import resolve
from ngt.settings.load import load
from paper import command
from paper.document import latex, macros
from paper.document import typeset as paper
from paper.document.extra_tables import PARTS, SETTINGS, extra_tables, settings_tables
from paper.document.report import Item
from paper.drawing import style
from paper.drawing.table import Column, Table, save
from paper.register import FIGURES, TABLES
from paper.tables import settings

needs_latex = pytest.mark.skipif(bool(latex.lacking()), reason="LaTeX is not installed")
# Dependencies without a publication of their own.
NO_PAPER = {"arch", "filelock", "jinja2", "pillow", "pyarrow", "pyyaml", "safetensors", "tqdm"}
NO_PAPER |= {"snakemake-executor-plugin-slurm"}
BODY = paper.MAIN.read_text().partition(r"\begin{document}")[2]


@pytest.fixture
def study(
    make_study: Callable[..., Any], fill: Callable[..., None], make_artefacts: Callable[..., None]
) -> Any:
    """Return a small study with all runs, and a file for each figure and each table."""
    made = make_study(methods=["ngt", "dac-r"], demos=[1])
    fill(made)
    make_artefacts(made)
    for name, keys in macros.COLUMNS.items():
        row = {key: "reproduced" if key == "verdict" else None for key in keys}
        made_table = Table(f"Caption of {name}, 5 %", {k: Column(k) for k in keys}, [row])
        save(made_table, made.layout.root / f"{name}.csv", made.config.scale)
    keys = [key for part in PARTS.values() for key in part]
    rows = [dict.fromkeys(keys, name) for name in ("ngt", "ngt-m8")]
    columns = {key: Column(key, group=key in ("method", "like")) for key in keys}
    save(Table("Settings", columns, rows), made.layout.root / f"{SETTINGS}.csv", made.config.scale)
    for i, figure in enumerate(a for a in FIGURES.values() if a.at(made.config)):
        out = made.layout.root / f"{figure.name}.pdf"
        style.save(style.new_figure(2 + 2 * i, 2), out, scale=made.config.scale)
    return made


def test_no_number_is_typed_in_the_text() -> None:
    math = r"\$[^$]*\$|\\begin{(equation|align)}.*?\\end{\1}"
    lengths = r"\[[^\]]*\]"
    text = re.sub(f"{math}|{lengths}", "", BODY, flags=re.DOTALL)
    assert len(text) > 5_000
    assert re.findall(r".{0,20}\d.{0,20}", text) == []
    in_math = "".join(m[0] for m in re.finditer(math, BODY, flags=re.DOTALL))
    numbers = re.sub(r"\\t?frac\{1\}\{[2m]\}|\^2|k\+1", "", in_math)
    assert re.findall(r"\d", numbers) == [], "only one half, 1/m, squares and indices are allowed"


def test_the_text_knows_every_artefact_and_every_macro(study: Any, tmp_path: Path) -> None:
    shown = re.findall(r"\\artefact(?:figure|table){(\w+)}", BODY)
    assert sorted(shown) == sorted([*FIGURES, *TABLES])
    paper.gather(study.config, study.layout, tmp_path, allow_partial=False)
    numbers = (tmp_path / "macros.tex").read_text()
    defined = set(re.findall(r"\\newcommand\*{\\(\w+)}", numbers))
    used = set(re.findall(r"\\([A-Z][A-Za-z]+)\b", BODY)) - {"Bigl", "Bigr", "Phi"}
    assert used == defined, "the text must use exactly the macros that exist"
    said = set(re.findall(r"\\of{says}{(\w+)}", BODY))
    assert said <= set(re.findall(r"says@(\w+)", numbers))
    extra = set(re.findall(r"\\extratable{(\w+)}", BODY))
    assert extra == {path.stem for path in tmp_path.glob("*.tex")} - {"main", "macros", *TABLES}


def test_what_is_missing_is_named(study: Any, tmp_path: Path) -> None:
    (study.layout.root / "main_figure.pdf").unlink()
    with pytest.raises(UserError, match=r"main_figure\.pdf is missing; make it with `snakemake"):
        paper.gather(study.config, study.layout, tmp_path, allow_partial=False)
    (study.layout.root / "grid_figure.pdf").touch()
    paper.gather(study.config, study.layout, tmp_path, allow_partial=True)
    assert not (tmp_path / "main_figure.pdf").exists()
    assert not (tmp_path / "grid_figure.pdf").exists(), (
        "the scale lacks this figure, although a file exists"
    )
    numbers = (tmp_path / "macros.tex").read_text().replace(r"\allowbreak{}", "")
    assert r"main\_figure.pdf is missing" in numbers


def entries() -> dict[str, set[str]]:
    """Return what each entry of the bibliography covers, by the entry's key."""
    found = re.findall(r"@\w+\{(\w+),(.*?)\n\n", paper.REFERENCES.read_text() + "\n", re.DOTALL)
    covers = {key: re.search(r"covers = \{(.*?)\}", text) for key, text in found}
    return {key: set(re.split(r",\s*", m[1])) if m else set() for key, m in covers.items()}


def cited() -> set[str]:
    """Return the keys that the text cites."""
    return {
        key for keys in re.findall(r"\\citep(?:\[.*?\])*{(.*?)}", BODY) for key in keys.split(",")
    }


def test_every_method_and_tool_has_a_reference() -> None:
    known = entries()
    assert cited() == set(known)
    covered = set().union(*known.values())
    config = load({"scale": "paper"})
    models = {
        resolve.model_params(config, name, "")[0].partition(":")[0] for name in config.methods
    }
    assert models - {"ngt.reward"} <= covered
    data = tomllib.loads((paper.MAIN.parents[2] / "pyproject.toml").read_text())
    needed = {re.match(r"[\w-]+", text)[0] for text in data["project"]["dependencies"]}
    assert {
        "torch",
        "mujoco",
        "gymnasium",
        "dm-control",
        "snakemake",
        "rliable",
    } <= needed & covered
    assert needed - covered == NO_PAPER


def test_the_paper_s_figures_are_matched_with_ours() -> None:
    listed = re.findall(r"\\origin{(\w+)}", BODY)
    known = {**FIGURES, **TABLES}
    assert set(listed) == {name for name, artefact in known.items() if artefact.source}
    assert len(listed) == len(set(listed))


def test_without_latex_the_command_is_one_line(
    study: Any,
    as_scale: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    as_scale(study)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        command.main(["paper"])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("paper: error: pdflatex is not installed; on Debian: apt-get")


@needs_latex
@pytest.mark.slow
def test_the_file_is_made_and_the_same_each_time(
    study: Any, as_scale: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    as_scale(study)
    made = []
    for name in ("a.pdf", "b.pdf"):
        command.main(["paper", "--results", str(study.layout.root), "--out", str(tmp_path / name)])
        assert capsys.readouterr().out == f"{tmp_path / name}\n"
        made.append((tmp_path / name).read_bytes())
    assert made[0][:5] == b"%PDF-" and made[0] == made[1]


@needs_latex
@pytest.mark.slow
def test_nothing_sticks_out_and_no_reference_is_lost(study: Any, tmp_path: Path) -> None:
    (study.layout.root / "method_diagram.pdf").unlink()
    (study.layout.root / "claims_table.json").unlink()
    paper.gather(study.config, study.layout, tmp_path, allow_partial=True)
    latex.build(tmp_path, tmp_path / "kept.log")
    log = (tmp_path / "main.log").read_text(errors="replace")
    assert re.findall(r"Overfull.*|.*undefined.*|Missing character.*", log) == []


def fill_folder(folder: Path, seed: int, scale: str) -> None:
    """Put a document into a folder, with figures and tables of random sizes and captions."""
    config, rng = load({"scale": scale}), random.Random(seed)
    sentence = "A note says which seeds, bands and intervals a panel shows. "
    found = []
    for figure in (artefact for artefact in FIGURES.values() if artefact.at(config)):
        drawing = style.new_figure(style.TEXT_WIDTH, rng.uniform(1.8, 6.0))
        style.save(drawing, folder / f"{figure.name}.pdf")
        found.append(Item(figure, (), caption=sentence * rng.randint(2, 12)))
    for name in TABLES:
        keys = [*macros.COLUMNS.get(name, {"demos": 0, "method": 0, "mean": 0})]
        columns = {key: Column(key, width=0.88 / len(keys)) for key in keys}
        words = {key: sentence * rng.randint(0, 2) + key for key in keys}
        rows = [words] * rng.choice([4, 20, 60])
        made = Table(sentence, columns, rows, [sentence * rng.randint(1, 6)])
        found.append(Item(TABLES[name], (), table=made))
        parts = settings_tables(settings.table(config)) if name == SETTINGS else {name: made}
        for part, shown in parts.items():
            (folder / f"{part}.tex").write_text(shown.tex())
    runs = read_keys(
        Layout(scale, folder), config, run_table(config), "figures", allow_partial=True
    )
    for name, extra in extra_tables(config, runs).items():
        (folder / f"{name}.tex").write_text(extra.tex())
    (folder / "macros.tex").write_text(macros.macros(config, runs, found))
    for file in (paper.MAIN, paper.REFERENCES):
        (folder / file.name).write_bytes(file.read_bytes())


def filled(folder: Path) -> list[float]:
    """Return the share of the text's height that each page fills, from the top."""
    height = 9.7 * 72.27 * 65536  # in scaled points, as are the heights in main.aux
    top = (297 / 25.4 * 72.27 * 65536 + height) / 2
    lowest: dict[str, int] = {}
    text = (folder / "main.aux").read_text(errors="replace")
    for page, at in re.findall(r"\\lowest\{(\d+)\}\{(\d+)\}", text):
        lowest[page] = min(lowest.get(page, int(at)), int(at))
    return [(top - at) / height for at in lowest.values()]


@needs_latex
@pytest.mark.long
@pytest.mark.parametrize(("seed", "scale"), [(0, "quick"), (1, "quick"), (2, "lite")])
def test_pages_are_full_and_nothing_sticks_out(seed: int, scale: str, tmp_path: Path) -> None:
    fill_folder(tmp_path, seed, scale)
    latex.build(tmp_path, tmp_path / "kept.log")
    log = (tmp_path / "main.log").read_text(errors="replace")
    over = re.findall(r"Overfull \\[hv]box \((\d+\.\d+)pt", log)
    assert [size for size in over if float(size) > 5] == []
    assert re.findall(r".*undefined.*|.*Float too large.*|Missing character.*", log) == []
    *most, last = filled(tmp_path)
    assert len(most) >= 10 and min(most) >= 0.5 and last > 0
    bibliography = (tmp_path / "main.bbl").read_text()
    assert cited() == set(re.findall(r"\\bibitem\[.*?\]\{(\w+)\}", bibliography, re.DOTALL))

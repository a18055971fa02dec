"""The register of figures and tables, compared with docs/artefacts.md and the config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ngt.errors import UserError
from ngt.settings.config import Config, FigureConfig
from ngt.settings.load import load
from paper.figures.curves import CURVE_FIGURES
from paper.register import ARTEFACTS, CURVES, FIGURES, PAPER, REPORT, TABLES, Artefact, plan_of
from paper.source import cite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "artefacts.md"
SCALES = ("test", "quick", "lite", "paper")


def rows() -> dict[str, str]:
    """Return the source of each artefact, as docs/artefacts.md lists it."""
    lines = (re.split(r"\s*\|\s*", line) for line in PAGE.read_text().splitlines())
    found = {}
    for _, names, source, *_ in (line for line in lines if len(line) == 6 and "`" in line[1]):
        each = re.findall(r"`(\w+)", names)
        sources = source.split(", ") if ", " in source else [source] * len(each)
        found |= dict(zip(each, sources, strict=True))
    return found


def test_the_page_has_every_artefact_with_its_source() -> None:
    assert rows() == {name: cite(a.source) or "–" for name, a in ARTEFACTS.items()}


def test_every_figure_of_curves_is_described_once() -> None:
    assert set(CURVES) == set(CURVE_FIGURES)
    assert all(name == figure.name for name, figure in CURVE_FIGURES.items())


def test_every_entry_of_the_config_is_shown() -> None:
    shown = {run for a in ARTEFACTS.values() if not a.everything for run in a.runs}
    entries = {scale: set(load({"scale": scale}).figures) for scale in SCALES}
    assert shown == set().union(*entries.values())
    assert shown - entries["paper"] == {"humanoid_figure"}, "lite alone has it"


def test_files_are_named_after_their_artefacts() -> None:
    assert (REPORT.file, PAPER.file) == ("report.html", "paper.pdf")
    files = [artefact.file for artefact in (*FIGURES.values(), *TABLES.values())]
    assert files == [f"{n}.pdf" for n in FIGURES] + [f"{n}.csv" for n in TABLES]


def test_one_value_where_one_is_shown() -> None:
    plan = FigureConfig(methods=("ngt",), envs=("Hopper-v4",), rates=(10, 20))
    config = Config(figures={"x": plan})
    assert plan_of(config, "x", one=["modes"]) is plan
    with pytest.raises(UserError, match=r"figures\.x\.rates: found \[10, 20\]; this figure needs"):
        plan_of(config, "x", one=["rates"])


@pytest.mark.parametrize(
    ("entry", "changes", "artefacts", "message"),
    [
        ("main_figure", {"rates": [10, 20]}, ("main_figure", "pairs_table"), r"main_figure\.rates"),
        ("main_figure", {"modes": ["state-action", "state-state"]}, ("claims_table",), "modes"),
        ("grid_figure", {"methods": ["ngt", "dac-r"]}, ("grid_figure",), r"grid_figure\.methods"),
        ("grid_figure", {"methods": ["bc-full"]}, ("grid_figure",), "has the fixed rate 1"),
        ("speed_table", {"demos": [1, 4]}, ("speed_table", "speed_figure"), r"speed_table\.demos"),
        ("ablation_embedding", {"methods": ["dac-r"]}, ("ablation_embedding",), "dac-r has no"),
    ],
)
def test_entries_that_an_artefact_cannot_show(
    entry: str, changes: dict[str, object], artefacts: tuple[str, ...], message: str
) -> None:
    config = load({"scale": "lite", "figures": {entry: changes}})
    for name, artefact in ARTEFACTS.items():
        if name in artefacts:
            with pytest.raises(UserError, match=message):
                artefact.check(config)
        elif entry not in artefact.runs:
            artefact.check(load({"scale": "lite"}))


def test_an_entry_that_no_artefact_shows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"methods": ["bc"], "envs": ["Pendulum-v1"], "demos": [1], "seeds": [0]}
    config = load({"scale": "test", "figures": {"main_figur": entry}})
    for artefact in ARTEFACTS.values():
        with pytest.raises(
            UserError, match=r"figures\.main_figur: no artefact shows it; did you me"
        ):
            artefact.check(config)
    own = Artefact("my_table", "Mine", "mine:make", kind="table", runs=("main_figur",))
    monkeypatch.setitem(ARTEFACTS, own.name, own)
    own.check(config)

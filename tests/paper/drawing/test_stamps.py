"""The stamp of an artefact's inputs in each of the artefact's files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from paper.drawing import stamps, style
from paper.drawing import table as tables
from paper.drawing.stamps import carries, parts, stamp
from paper.drawing.table import Column, Table
from paper.register import FIGURES, REPORT

MAIN = FIGURES["main_figure"]


def test_a_stamp_follows_settings_and_records(make_study: Callable[..., Any]) -> None:
    study = make_study()
    for key in study.table():
        study.write(key, [0.5])

    def now(config: Any = study.config) -> str:
        return stamp(config, study.layout, MAIN)

    first = now()
    assert first == now() and now(replace(study.config, window=4)) != first
    record = study.layout.run(study.table()[0]) / "run.json"
    former = record.read_text()
    record.write_text(former.replace("100.0", "101.0"))
    assert now() != first
    record.unlink()
    assert now() != first, "a partial figure must have another stamp"
    record.write_text(former)
    assert now() == first, "the former record must give the former stamp"
    assert stamp(study.config, study.layout, FIGURES["theory_figure"]) != first


def test_a_stamp_follows_the_code_that_draws(
    make_study: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = make_study()
    first = stamp(study.config, study.layout, MAIN)
    monkeypatch.setattr(stamps, "code_hash", lambda: "changed")
    assert stamp(study.config, study.layout, MAIN) != first
    monkeypatch.undo()

    def of(style: str, package: str = "paper/figures") -> str:
        (tmp_path / package).mkdir(exist_ok=True, parents=True)
        (tmp_path / package / "lines.py").write_text("WIDTH = 1")
        (tmp_path / "paper/a.mplstyle").write_text(style)
        stamps.code_hash.cache_clear()
        return stamps.code_hash(tmp_path)

    first = of("a")
    assert of("a") == first != of("b")
    (tmp_path / "paper/figures/__pycache__").mkdir()
    (tmp_path / "paper/figures/__pycache__/lines.cpython-312.pyc").touch()
    assert of("a") == of("a", "tests") == first, "compiled files and tests are not inputs"
    assert of("a", "ngt/runs") != first, "this package reads the runs"


def test_a_report_depends_on_the_files_that_it_shows(make_study: Callable[..., Any]) -> None:
    study = make_study()
    first = stamp(study.config, study.layout, REPORT, "png")
    shown = parts(study.config, study.layout, "png")
    assert study.layout.root / "main_figure.png" in shown
    shown[0].parent.mkdir(parents=True, exist_ok=True)
    shown[0].write_bytes(b"x")
    assert stamp(study.config, study.layout, REPORT, "png") != first


def test_files_carry_it(tmp_path: Path) -> None:
    text = "drawn from 0123456789abcdef"
    pdf, png = tmp_path / "a.pdf", tmp_path / "a.png"
    style.save(Figure(), pdf, png, "test", text)
    tables.save(Table("t", {"a": Column("A")}, [{"a": 1}]), tmp_path / "a.csv", "test", text)
    for file in (pdf, png, tmp_path / "a.json"):
        assert carries(file, text), file
        assert not carries(file, text.replace("f", "0"))
    assert not carries(tmp_path / "none", text)

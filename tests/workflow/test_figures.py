"""The rule that draws figures: Snakemake's own report has them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.workflow.checkouts import checkout, snakemake


@pytest.mark.long
def test_snakemakes_own_report_has_the_figures(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "suite")
    args = ("--config", "scale=test", "--", "results/theory_figure.pdf")
    drawn = snakemake(folder, *args)
    assert drawn.returncode == 0, drawn.stdout
    done = snakemake(folder, "--report", "report.zip", *args)
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(folder / "report.zip") as report:
        assert any(name.endswith("/theory_figure.png") for name in report.namelist())

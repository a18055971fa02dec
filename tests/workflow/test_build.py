"""Every artefact (figure, table or report) of scale `test`, made by one command in a checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ngt.experience.reference import unscored
from ngt.settings.load import load
from paper.document import latex
from paper.drawing.table import from_json
from paper.register import FIGURES, GPU, TABLES
from tests.workflow.checkouts import (
    EXPERT,
    FIGURE,
    ROOT,
    checkout,
    dry_run,
    jobs,
    snakemake,
    unstamped,
)

# The build takes minutes. `make test` has smaller workflows: tests/workflow/test_triggers.py.
# --dist loadfile runs this file in one process, so that its tests share the build.
pytestmark = pytest.mark.long

READINGS = {"report": 1} | ({} if latex.lacking() else {"paper": 1})
TRAINED = {"train": 42, "pack": 42, "run": 97}  # all jobs at scale `test`
# Scale `test` imitates a recorded file, so it has no figure of experts.
SMALL = load({"scale": "test"})
SHOWN = [name for name, figure in FIGURES.items() if not figure.experts and figure.at(SMALL)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new checkout in which one command has made every artefact of scale `test`."""
    folder = checkout(tmp_path_factory.mktemp("workflow") / "suite")
    done = snakemake(folder, "--config", "scale=test")
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {
        "settings": 1,
        **dict.fromkeys(EXPERT, 1),
        **TRAINED,
        "figure": len(SHOWN),
        "table": len(TABLES),
        **READINGS,
        "all": 1,
    }
    return folder


def test_everything_from_nothing(built: Path) -> None:
    for name in SHOWN:
        pdf = (built / f"results/{name}.pdf").read_bytes()
        assert pdf.startswith(b"%PDF") and len(pdf) > 5_000, name
        png = (built / f"results/{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG") and len(png) > 5_000, name
    for name in TABLES:
        table = from_json((built / f"results/{name}.json").read_text())
        assert table.rows and table.caption, name
        assert (built / f"results/{name}.csv").read_text().count("\n") > len(table.rows), name
        assert r"\toprule" in (built / f"results/{name}.tex").read_text(), name
    page = (built / "results/report.html").read_text()
    assert [name for name in (*SHOWN, *TABLES) if f'<h3 id="{name}">' not in page] == []


def test_scores_are_of_the_file_and_missing_where_the_expert_is_poor(built: Path) -> None:
    rows = from_json((built / "results/main_table.json").read_text()).rows
    assert all(row["mean"] is not None for row in rows)
    run = json.loads(
        (
            built / "results/test/runs/walker-walk/ngt/state-action-demos1-rate20/seed0/run.json"
        ).read_text()
    )
    assert unscored(run["reference"]), "an expert with 400 steps must be no better than random"
    assert "none on walker-walk: " in (built / "results/report.html").read_text()


def test_a_runs_folder_is_a_closed_set(built: Path) -> None:
    run = built / "results/test/runs/Pendulum-v1/ngt/state-action-demos2-rate20/seed1"
    receipts = {p.name for p in run.iterdir() if p.name.startswith("done.")}
    assert len(receipts) == 1
    assert {p.name for p in run.iterdir()} - receipts == {
        "config.json",
        "eval.csv",
        "train.csv",
        "policy.safetensors",
        "run.json",
    }


def dry_run_with(folder: Path, differences: str) -> dict[str, int]:
    """Return the jobs of a dry run at scale `test` with these differences in a config file."""
    file = folder / "mine.yaml"
    file.write_text(differences)
    return dry_run(folder, FIGURE, "--configfile", file.name, "--config", "scale=test")


def test_changed_setting_retrains_what_uses_it(built: Path) -> None:
    planned = dry_run_with(built, "methods: {ngt: {params: {lr: 0.002}}}")
    assert planned == {"settings": 1, "train": 2, "pack": 2, "run": 8, "figure": 1}, (
        "only NGT and RED* must retrain"
    )


def test_new_measurements_of_a_gpu_are_judged_again(built: Path) -> None:
    copy = built / Path(GPU).relative_to(ROOT)
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(GPU, copy)
    planned = dry_run(built, "--config", "scale=test", "--", "results/claims_table.csv")
    copy.unlink()
    assert planned == {"table": 1}


def test_published_records_train_nothing(built: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "ngt", "publish", "--scale", "test"], cwd=built, check=True
    )
    published = ("--config", "scale=test", "records=published")
    planned = dry_run(built, "--forceall", *published)
    assert planned == {
        "settings": 1,
        "figure": len(SHOWN),
        "table": len(TABLES),
        **READINGS,
        "all": 1,
    }
    before = (built / FIGURE).read_bytes()
    done = snakemake(built, "--force", FIGURE, *published)
    assert done.returncode == 0, done.stdout
    after = (built / FIGURE).read_bytes()
    assert unstamped(after) == unstamped(before), "the same numbers must give the same picture"
    assert after != before, "the figure's stamp, a hash of its inputs, must differ"

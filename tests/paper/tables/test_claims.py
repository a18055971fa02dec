"""The table of claims: rows, notes and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from paper import command
from paper.command import Options
from paper.drawing.table import Cell, Table
from paper.register import GPU, TABLES
from paper.tables.claims import collect, read_gpu, table

Make = Callable[..., Any]

OPTIONS = Options(TABLES["claims_table"], Path("t.csv"))


def row(made: Any, text: str) -> dict[str, Any]:
    (found,) = (row for row in made.rows if row["claim"] == text)
    return dict(found)


def test_a_claim_of_the_paper_s_runs_has_its_verdict(
    make_evidence: Make, paper_config: Any
) -> None:
    from paper.claims.verdicts import Cells

    keys = Cells("main_figure", ("ngt", "bc")).keys(paper_config)
    scores = {key: 0.95 if key.method == "ngt" else 0.2 for key in keys}
    made = table(make_evidence(scores))
    assert row(made, "NGT outperforms BC") == {
        "claim": "NGT outperforms BC",
        "where": "Experiments, Fig. 2 (main)",
        "source": "“outperforms the baselines”",
        "ours": "0.95 − 0.20 = 0.75 [0.75, 0.75] "
        "[not judged: Hopper-v4: 0.95 − 0.20 = 0.75 [0.75, 0.75]]",
        "runs": 120,
        "seeds": "4",
        "verdict": "reproduced",
        "tendency": "agrees",
        "rule": "difference of the IQMs > 0; Hopper-v4 is shown but not judged",
        "artefact": "main_figure",
    }
    assert row(made, "NGT reaches the expert on every env")["verdict"] == "reproduced"
    other = row(made, "NGT outperforms PWIL")
    assert (other["verdict"], other["ours"]) == ("not run at this scale", None)
    assert other["tendency"] == "silent"
    assert made.notes[:2] == [
        "Verdicts on imitation: 3 reproduced, 33 not run at this scale.",
        "Verdicts on machines (speed, memory): 9 not run at this scale.",
    ]
    # Of the 19 checks, 15 are of NGT on a task, 3 of NGT on an env, and one of a difference. Each
    # has 4 seeds.
    text = " ".join(made.notes)
    assert "45 rules are judged at once, with 19 checks" in text
    assert "With 4 seeds" in text and "one-sided 95% chi-square bound" in text
    assert "Env steps" not in " ".join(made.notes), "the steps are the paper's, so no note is due"
    assert "PARTIAL" not in " ".join(made.notes)
    assert made.tex().isascii()


def of_runs(made: Table) -> list[dict[str, Cell]]:
    """Return the rows that are judged by runs, unlike those judged by the shipped GPU file."""
    found = [row for row in made.rows if row["artefact"]]
    assert len(found) == len(made.rows) - 3
    return found


def test_a_scale_s_own_runs(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1, 4])
    fill(study)
    study.write(study.key("bc", 4, 0), [0.1], diverged=True)
    made = table(collect(study.config, study.layout, OPTIONS))
    assert {r["verdict"] for r in of_runs(made)} == {"not run at this scale"}
    shown = row(made, "NGT outperforms BC")
    assert shown["runs"] == 12 and shown["ours"].endswith("(Pendulum-v1)")
    text = " ".join(made.notes)
    for part in (
        "judged at scale quick",
        "mean of a run's last 3 evaluations",
        "(20 repetitions)",
        "expert 0.9, strong 0.75, learns 0.5",
        "chi-square",
        "Env steps of a run: 60,000; the paper: 10,000,000",
        "1 run diverged",
        "45 rules are judged at once. None of them has a verdict from its checks.",
    ):
        assert part in f"{made.caption} {text}"


def test_command(
    make_study: Make, fill: Make, as_scale: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1])
    gone = study.key("bc", 1, 2)
    fill(study, skip=[gone])
    as_scale(study)
    with pytest.raises(SystemExit) as stop:
        command.main(["claims_table"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"claims_table: error: run {gone}: missing") and err.count("\n") == 1
    command.main(["claims_table", "--allow-partial"])
    out = capsys.readouterr().out
    assert "PARTIAL: runs missing: 1." in out and out.endswith("results/claims_table.csv\n")
    rows = json.loads(Path("results/claims_table.json").read_text())["rows"]
    assert next(r for r in rows if r["claim"] == "NGT outperforms BC")["ours"] is None


def test_no_run_at_all(make_study: Make) -> None:
    study = make_study()
    options = Options(TABLES["claims_table"], Path("t.csv"), allow_partial=True)
    made = table(collect(study.config, study.layout, options))
    assert {r["ours"] for r in of_runs(made)} == {None}


def test_what_ships_of_a_gpu_is_read(make_evidence: Make) -> None:
    made = table(make_evidence({}, gpu=read_gpu(Path(GPU))))
    assert "None of them has a verdict from its checks" in " ".join(made.notes)
    for text in (
        "CUDA graphs make training up to three times as fast",
        "Training fits an RTX 4090 for every method",
        "Training on Humanoid takes 5 hours",
    ):
        found = row(made, text)
        assert found["verdict"] != "reproduced" and "NVIDIA" in found["ours"]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"device": "a", "rates": [{}], "training": []}',
        "nonsense",
        '{"device": "a", "rates": 3, "training": []}',
        '{"device": "a", "rates": [3]}',
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gpu.json"
    assert read_gpu(path) is None
    path.write_text(text)
    with pytest.raises(UserError, match=r"gpu.json: not what `make gpu-check` writes"):
        read_gpu(path)


def test_a_claim_that_rests_on_an_env_without_scores_says_so(poor_study: Make) -> None:
    study = poor_study(demos=[1])
    made = table(collect(study.config, study.layout, OPTIONS))
    found = row(made, "NGT outperforms BC")
    assert found["verdict"] == "not run at this scale"
    assert "0.90 − 0.50" in found["ours"] and found["ours"].endswith("[no scores on Hopper-v4]")
    assert any(note.startswith("No scores on Hopper-v4: the expert's") for note in made.notes)

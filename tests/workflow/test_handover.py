"""A job uses the settings that were planned, whatever the config file contains when it starts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ngt.errors import UserError
from tests.workflow.checkouts import RUN, SMALL, run_small, small, snakemake
from workflow.handover import VARIABLE, hand_on, receive
from workflow.plan import read

CLUSTER = {"partition": "it's", "max_hours": 3, "gpu": {"model": "h100"}}
PACK = "env=Pendulum-v1,method=ngt,mode=state-action,rate=20,members=1.1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: a new checkout with the config base.yaml."""
    made = small(tmp_path / "suite")
    monkeypatch.chdir(made)
    monkeypatch.setenv(VARIABLE, "")
    return made


def test_a_job_has_the_plans_settings_and_cluster(folder: Path) -> None:
    plan = read({**SMALL, "cluster": CLUSTER})
    hand_on(plan)
    Path(plan.settings_file).parent.mkdir(parents=True)
    Path(plan.settings_file).write_text(plan.settings_text)
    job = receive()
    assert (job.config, job.site, job.main) == (plan.config, plan.site, False)
    assert (job.settings_file, job.settings_text) == (plan.settings_file, plan.settings_text)
    assert job.settings().outdated == []


def test_what_can_go_wrong_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_on(read(SMALL))
    with pytest.raises(UserError, match=r"settings/.*json: can't be read") as error:
        receive()
    assert "\n" not in str(error.value)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UserError, match=rf"^{VARIABLE}: not set in the job's environment"):
        receive()


@pytest.mark.slow
def test_an_edit_of_the_config_file_does_not_affect_a_job(folder: Path) -> None:
    """Plan 120 steps, edit the file, and start the job as a cluster does, in its own process."""
    done = run_small(folder, "base", "--until", "settings")
    assert done.returncode == 0, done.stdout
    hand_on(read(SMALL))
    edited = {**SMALL, "train": {**SMALL["train"], "steps": 200}}
    (folder / "base.yaml").write_text(json.dumps(edited))
    args = ("--target-jobs", f"train:{PACK}", "--allowed-rules", "train", "--mode", "remote")
    own = ("--configfiles", "base.yaml", "--force", "--nolock", "--retries", "0")
    done = snakemake(folder, *args, *own, **{VARIABLE: os.environ[VARIABLE]})
    assert done.returncode == 0, done.stdout
    record = json.loads((folder / RUN.format(1) / "run.json").read_text())
    assert record["step"] == 120

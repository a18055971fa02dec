"""Training from Python, which makes the same runs as the commands."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import ngt
from ngt.errors import UserError
from ngt.files import read_json
from ngt.runs.writer import RunWriter

FILE = Path(__file__).resolve().parents[2] / "data" / "Pendulum-v1.npz"
SMALL: dict[str, Any] = {
    "train": {"eval_every": 20, "log_every": 20, "eval_episodes": 1},
    "sac": {"lr_actor": 1e-5},  # written in JSON as 1e-05, which YAML readers take for text
}


def test_imitating(tmp_path: Path, capsys: Any) -> None:
    common: dict[str, Any] = {"scale": "test", "settings": SMALL, "results": tmp_path}
    run = ngt.imitate("Pendulum-v1", FILE, steps=40, seed=0, episodes=1, **common)
    key = "Pendulum-v1/ngt/state-action-demos1-rate20/seed0"
    assert run.folder == tmp_path / "test/runs" / key
    assert run.record["status"] == "finished" and run.record["key"]["run"] == key
    config = read_json(run.folder / "config.json")
    assert config["train"]["steps"] == 40 and config["sac"]["lr_actor"] == 1e-5
    assert run.evaluations["step"].unique().tolist()[-1] == 40
    assert run.policy.predict([1.0, 0.0, 0.0]).shape == (1,)
    capsys.readouterr()
    again = ngt.imitate("Pendulum-v1", FILE, steps=np.int64(40), seed=0, episodes=1, **common)
    said = capsys.readouterr().out
    assert again == run and "finished already" in said and "(in Python, move this folder" in said

    settings = {**SMALL, "train": {**SMALL["train"], "steps": 40}}
    rows = ngt.load_runs("test", settings=settings, results=tmp_path)
    assert set(rows["method"]) == {"ngt"} and rows["step"].max() == 40

    demos = ngt.load_demos(FILE)
    other = ngt.imitate("Pendulum-v1", demos, "bc-full", steps=20, **common)
    assert other.folder.parent.name == "state-action-demos4-rate1", (
        "the run must use the method's own rate and all demonstrations"
    )
    (file,) = (tmp_path / "test/demos").iterdir()
    assert ngt.load_demos(file).checksum == demos.checksum
    with pytest.raises(UserError, match="they are of Pendulum-v1, not of Hopper-v4"):
        ngt.imitate("Hopper-v4", demos, **common)
    shorter = ngt.imitate("Pendulum-v1", FILE, steps=20, seed=0, episodes=1, **common)
    assert shorter == run and run.evaluations["step"].max() == 20
    ngt.imitate("Pendulum-v1", FILE, steps=40, seed=0, episodes=1, **common)
    assert "came back" in capsys.readouterr().out and run.evaluations["step"].max() == 40


def test_steps_override_every_section_of_the_config(tmp_path: Path) -> None:
    common: dict[str, Any] = {"scale": "test", "settings": SMALL, "results": tmp_path}
    run = ngt.imitate("Pendulum-v1", FILE, "speed-ngt", steps=40, episodes=1, **common)
    assert run.record["step"] == 40, "the scale sets the steps of this method to 400"
    own = {**SMALL, "envs": {"Pendulum-v1": {"expert": {"train": {"steps": 60}}}}}
    made = ngt.expert("Pendulum-v1", steps=20, **{**common, "settings": own})
    assert made.record["step"] == 20
    with pytest.raises(UserError, match="method: 'nope' is not known"):
        ngt.imitate("Pendulum-v1", FILE, "nope", steps=40, **common)
    with pytest.raises(UserError, match="rate 201, but an episode of Pendulum-v1 has at most 200"):
        ngt.imitate("Pendulum-v1", FILE, rate=201, **common)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 40.5}, "steps: expected an integer, found a number 40.5"),
        ({"settings": [1]}, "settings: expected a mapping, found a list [1]"),
        ({"settings": {"train": {"steps": np.int64(4)}}}, "train.steps: expected an integer"),
        ({"settings": {"train": MappingProxyType({"steps": 4})}}, "settings: Object of type mapp"),
        ({"demos": None}, "demos: expected a path or the id of an env, found nothing"),
        ({"demos": 3}, "demos: expected a path or the id of an env, found an integer 3"),
        ({"steps": True}, "steps: expected an integer, found a truth value True"),
        ({"seed": True}, "seed: expected an integer, found a truth value True"),
        ({"seed": -1}, "seed: must be at least 0, found -1"),
        ({"episodes": 2.0}, "episodes: expected an integer, found a number 2.0"),
        ({"episodes": True}, "episodes: expected an integer, found a truth value True"),
        ({"episodes": 0}, "episodes: must be at least 1, found 0"),
        ({"rate": 0}, "rate: must be at least 1, found 0"),
        ({"env": None}, "env: expected the id of an env, found nothing"),
        ({"results": None}, "results: expected a path, found nothing"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        ngt.imitate(**{"env": "Pendulum-v1", "demos": FILE, "results": tmp_path, **arguments})
    if not {"demos", "seed", "episodes", "rate"} & arguments.keys():
        with pytest.raises(UserError, match=re.escape(message)):
            ngt.expert(**{"env": "Pendulum-v1", "results": tmp_path, **arguments})
    if "results" in arguments:
        with pytest.raises(UserError, match=re.escape(message)):
            ngt.load_runs(**arguments)


def test_an_expert_is_trained(tmp_path: Path) -> None:
    run = ngt.expert("Pendulum-v1", steps=40, scale="test", settings=SMALL, results=tmp_path)
    assert run.folder == tmp_path / "test/experts/Pendulum-v1"
    assert run.record["status"] == "finished"


def test_stopped_training_can_not_be_swallowed_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop a run at its first evaluation, as Ctrl-C does, inside code that catches exceptions."""
    common: dict[str, Any] = {"scale": "test", "settings": SMALL, "results": tmp_path}
    how: dict[str, Any] = {"steps": 60, "episodes": 1, **common}
    evaluation = RunWriter.evaluation

    def stopped(self: RunWriter, step: int, *rest: Any) -> None:
        evaluation(self, step, *rest)
        if step == 20:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RunWriter, "evaluation", stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        try:
            ngt.imitate("Pendulum-v1", FILE, **how)
        except Exception:
            pytest.fail("an except clause for errors swallowed it")
    found = re.fullmatch(
        r"stopped at step (\d+); the same call resumes from there", str(caught.value)
    )
    assert found and 20 <= int(found[1]) < 60

    with pytest.raises(UserError) as refused:
        ngt.imitate("Pendulum-v1", FILE, **{**how, "steps": 80})
    folder = tmp_path / "test/runs/Pendulum-v1/ngt/state-action-demos1-rate20/seed0/checkpoint"
    assert str(refused.value).startswith(f"checkpoint {folder}: config.train.steps was 60 and is ")
    assert str(refused.value).endswith(
        "change it back, or start over with --restart (in Python, remove this folder)"
    )
    monkeypatch.undo()
    assert ngt.imitate("Pendulum-v1", FILE, **how).record["step"] == 60

    assert not folder.exists()

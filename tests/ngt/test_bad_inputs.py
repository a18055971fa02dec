"""User errors: one line on stderr that names the field and the fix, and exit code 2."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.cli import main
from ngt.experience import demos, envs
from ngt.settings.config import SacConfig

KEY = "Pendulum-v1/ngt/state-action-demos1-rate20/seed0"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with good and bad demonstrations, policies and config files."""
    place = tmp_path_factory.mktemp("files")

    def still(obs: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, obs.shape[1], 1)

    good = demos.record("Pendulum-v1", still, 2, 0, source="toy", terminate_when_unhealthy=True)
    demos.save(place / "good.npz", good)
    whole = (place / "good.npz").read_bytes()
    (place / "truncated.npz").write_bytes(whole[: len(whole) // 2])
    (place / "text.npz").write_text("obs,action\n")
    with np.load(place / "good.npz") as archive:
        arrays = dict(archive)

    def variant(name: str, meta: dict[str, Any] | None = None, **changes: Any) -> None:
        facts = {**json.loads(str(arrays["meta"])), **(meta or {})}
        np.savez(place / name, **{**arrays, **changes, "meta": np.array(json.dumps(facts))})

    variant("dims.npz", obs=np.zeros((402, 4), np.float32))
    variant("env.npz", {"env": "Reacher-v5"})
    variant("nan.npz", reward=np.full(400, np.nan, np.float32))
    variant("bound.npz", action=np.full((400, 1), 2.0, np.float32))
    variant("version.npz", {"version": 9})
    (place / "results/test/demos").mkdir(parents=True)
    demos.save(place / "results/test/demos/Pendulum-v1.npz", good)  # from another expert
    reacher = Policy(Actor(10, 2, SacConfig(hidden=(4,)), [0]), None).snapshot(0)
    policy.save(place / "reacher", reacher, "Reacher-v5", SacConfig(hidden=(4,)))
    (place / "truncated").write_bytes((place / "reacher").read_bytes()[:100])
    save_file({"x": torch.zeros(1)}, place / "foreign")
    broken = {name: torch.full_like(tensor, torch.nan) for name, tensor in reacher.items()}
    policy.save(place / "diverged", broken, "Reacher-v5", SacConfig(hidden=(4,)))
    for name, text in {
        "text_lr.yaml": "sac:\n  lr_actor: 3e-4\n",
        "misspelt.yaml": "train:\n  step: 100\n",
        "broken.yaml": "sac: {gamma: [0.9\ntrain: }\n",
        "list.yaml": "- sac\n",
        "empty.yaml": "# nothing\n",
        "twice.yaml": "pack: 3\nmethods: {}\nmethods: {}\n",
    }.items():
        (place / name).write_text(text)
    (place / "folder").mkdir()
    return place


def train(key: str = KEY, *more: str) -> list[str]:
    return ["train", key, "--scale", "test", *more]


def shown(setting: str) -> list[str]:
    return ["config", "--scale", "test", "--set", setting]


# Scale `test` imitates a file of demonstrations. Without the file it needs the env's expert.
OWN_EXPERT = ("--set", "envs.Pendulum-v1.demos=''")

# name: (arguments, texts that the error must contain); {place} is the folder of files
CASES: dict[str, tuple[list[str], list[str]]] = {
    # environments
    "unknown env": (
        ["expert", "HalfCheeta-v4"],
        ["env 'HalfCheeta-v4' is unknown: use one of HalfCheetah-v4"],
    ),
    "refused env": (
        ["expert", "Pusher-v4"],
        ["env 'Pusher-v4' is refused", "lighter than air", "use Pusher-v5"],
    ),
    "discrete env": (
        ["record", "CartPole-v1"],
        ["env 'CartPole-v1' is unknown: use one of ", "ngt.experience.envs.register"],
    ),
    "unknown env in a key": (
        train(KEY.replace("Pendulum-v1", "Pendulum-v0")),
        ["env 'Pendulum-v0' is unknown: use one of Pendulum-v1"],
    ),
    "unknown env in a shown key": (
        ["config", KEY.replace("Pendulum-v1", "Pendulum-v0")],
        ["env 'Pendulum-v0' is unknown: use one of Pendulum-v1"],
    ),
    "unknown env of a method": (
        shown("methods.ngt.envs.Humanoid-v5.params.m=3"),
        ["methods.ngt.envs: env 'Humanoid-v5' is unknown: use one of Humanoid-v4"],
    ),
    # settings
    "unknown method": (
        train(KEY.replace("/ngt/", "/ntg/")),
        ["method: 'ntg' is not known", "did you mean ngt"],
    ),
    "several values for one setting": (
        shown("methods.ngt.params.m=8,64"),
        ["--set methods.ngt.params.m: takes one value, found 8,64", "a variant of the method"],
    ),
    "misspelt key": (shown("sac.gama=0.9"), ["sac.gama: unknown key; did you mean gamma"]),
    "misspelt key in a file": (
        ["config", "--config", "{place}/misspelt.yaml"],
        ["train.step: unknown key; did you mean steps"],
    ),
    "number that YAML reads as text": (
        ["config", "--config", "{place}/text_lr.yaml"],
        ["sac.lr_actor: expected a number, found text '3e-4'", "write 3.0e-4"],
    ),
    "negative rate": (shown("sac.lr_actor=-0.001"), ["sac.lr_actor: must be at least 0"]),
    "long seed": (
        shown("figures.main_figure.seeds=[1234567890123456789]"),
        ["figures.main_figure.seeds: 1234567890123456789 is too large; use at most 18 digits"],
    ),
    "not a number": (shown("sac.tau=.nan"), ["sac.tau: must be finite, found nan"]),
    "wrong type": (
        shown("train.steps=many"),
        ["train.steps: expected an integer, found text 'many'"],
    ),
    "float for an integer": (
        shown("train.steps=2.0e+4"),
        ["train.steps: expected an integer, found a number 20000.0; write 20000"],
    ),
    "value for a section": (shown("train=5"), ["train: expected a mapping, found an integer 5"]),
    "--set without =": (
        shown("train.steps"),
        ["--set: expected KEY=VALUE, found 'train.steps'; e.g. train.steps=20000"],
    ),
    "--set with broken YAML": (
        shown("sac.hidden=[8"),
        ["--set sac.hidden: '[8' is not a YAML value"],
    ),
    "unknown scale": (
        ["config", "--scale", "papr"],
        ["scale: 'papr' is not known; did you mean paper"],
    ),
    "broken YAML": (
        ["config", "--config", "{place}/broken.yaml"],
        ["config file {place}/broken.yaml: not valid YAML: ", '/broken.yaml", line 2'],
    ),
    "duplicate key": (
        ["config", "--config", "{place}/twice.yaml"],
        ["twice.yaml: not valid YAML: key 'methods' appears twice in the mapping at line 1"],
    ),
    "net without layers": (shown("sac.hidden=[]"), ["sac.hidden: empty; name at least one"]),
    "kernels without widths": (
        shown("methods.mmd-dac.params.sigmas=[]"),
        ["methods.mmd-dac.params.sigmas: empty; name at least one"],
    ),
    "figure without methods": (
        shown("figures.f.envs=[Ant-v4]"),
        ["figures.f: no scale has it, so it must name `methods` and `envs`; known: ablation_"],
    ),
    "duplicate seed": (
        shown("figures.main_figure.seeds=[0, 1, 0]"),
        ["figures.main_figure.seeds: 0 is listed twice; list it once"],
    ),
    "more demonstrations than the expert records": (
        [*shown("figures.main_figure.demos=[4]"), *OWN_EXPERT],
        ["figures.main_figure.demos: 4 requested", "3 episodes; raise expert.episodes"],
    ),
    "method name that cannot name a folder": (
        shown("methods.a/b.like=ngt"),
        ["methods.a/b: 'a/b' cannot name a folder"],
    ),
    "list as a config": (
        ["config", "--config", "{place}/list.yaml"],
        ["config file {place}/list.yaml: expected a mapping, found a list ['sac']"],
    ),
    "empty config": (
        ["config", "--config", "{place}/empty.yaml"],
        ["config file {place}/empty.yaml: expected a mapping, found nothing"],
    ),
    "missing config": (
        ["config", "--config", "{place}/none.yaml"],
        ["config file {place}/none.yaml: can't be read: No such file or directory"],
    ),
    "folder as a config": (
        ["config", "--config", "{place}/folder"],
        ["config file {place}/folder: can't be read: Is a directory"],
    ),
    "model that can't be imported": (
        shown("methods.ngt.model=nowhere.at.all:Model"),
        ["methods.ngt", "'nowhere.at.all:Model' can't be loaded", "write package.module:Class"],
    ),
    "model whose class is missing": (
        shown("methods.ngt.model=json:Model"),
        ["'json:Model' can't be loaded (json has no 'Model'); write package.module:Class"],
    ),
    "results in a file": (
        ["runs", "--results", "{place}/broken.yaml/inner"],
        ["argument --results: {place}/broken.yaml is a file; name a folder"],
    ),
    "class that is not a model": (
        shown("methods.ngt.model=json:JSONDecoder"),
        ["'json:JSONDecoder' is not a subclass of ngt.reward.RewardModel"],
    ),
    "unknown model parameter": (
        shown("methods.ngt.params.pairng=huber"),
        ["methods.ngt.params.pairng: unknown key; did you mean pairing"],
    ),
    "unknown choice": (
        shown("methods.ngt.params.pairing=hubr"),
        ["methods.ngt.params.pairing: expected one of huber, mse_softmax, hl_gauss, l1, found"],
    ),
    "cycle of variants": (
        shown("methods.a.like=a"),
        ["methods.a.like: a cycle, a like a; give one of them a model"],
    ),
    # run keys
    "bad run key": (
        train("Pendulum-v1/ngt/seed0"),
        ["run 'Pendulum-v1/ngt/seed0': not a run key; write env/method/mode-demosK-rateN/seedS"],
    ),
    "bad mode in a key": (
        train(KEY.replace("state-action", "action-state")),
        ["not a run key", "mode one of state-action, state-state, state-only"],
    ),
    "no demonstrations in a key": (
        train(KEY.replace("demos1", "demos0")),
        ["demos and rate must be at least 1"],
    ),
    "rate that a method fixes": (
        train(KEY.replace("/ngt/", "/bc-full/"), "--demos", "{place}/good.npz"),
        ["method bc-full has rate 1; write rate1"],
    ),
    # demonstrations
    "demonstrations of another expert": (
        train(KEY, "--results", "{place}/results", *OWN_EXPERT),
        [
            "field 'source': found toy, expected ",
            ": these settings need another expert; run `ngt expert Pendulum-v1` and `ngt ",
        ],
    ),
    "missing demonstrations named in the settings": (
        train(KEY, "--set", "envs.Pendulum-v1.demos={place}/none.npz"),
        ["envs.Pendulum-v1.demos: {place}/none.npz can't be read: No such file or directory"],
    ),
    "missing demonstrations": (
        train(KEY, "--demos", "{place}/none.npz"),
        ["demonstrations {place}/none.npz: no such file; `ngt record` writes it"],
    ),
    "no demonstrations recorded yet": (
        train(KEY, "--results", "{place}/fresh", *OWN_EXPERT),
        ["{place}/fresh/test/demos/Pendulum-v1.npz: no such file; `ngt record` writes it"],
    ),
    "truncated demonstrations": (
        train(KEY, "--demos", "{place}/truncated.npz"),
        ["demonstrations {place}/truncated.npz: truncated, or not a NumPy archive"],
    ),
    "text file as demonstrations": (
        train(KEY, "--demos", "{place}/text.npz"),
        ["demonstrations {place}/text.npz: truncated, or not a NumPy archive"],
    ),
    "policy file as demonstrations": (
        train(KEY, "--demos", "{place}/reacher"),
        ["demonstrations {place}/reacher: truncated, or not a NumPy archive"],
    ),
    "wrong dimensions": (
        train(KEY, "--demos", "{place}/dims.npz"),
        ["dims.npz: field 'obs': found shape (402, 4), expected (402, 3) on Pendulum-v1"],
    ),
    "demonstrations of another env": (
        train(KEY, "--demos", "{place}/env.npz"),
        ["env.npz: field 'env': found Reacher-v5, expected Pendulum-v1; use a file recorded on"],
    ),
    "NaN in demonstrations": (
        train(KEY, "--demos", "{place}/nan.npz"),
        ["nan.npz: field 'reward': episode 0, row 0: found nan, expected finite numbers"],
    ),
    "actions that are not rescaled": (
        train(KEY, "--demos", "{place}/bound.npz"),
        ["bound.npz: field 'action': episode 0, row 0: found 2, expected values in [-1, 1]"],
    ),
    "demonstrations of another version": (
        train(KEY, "--demos", "{place}/version.npz"),
        ["version.npz: field 'version': found 9, expected 1"],
    ),
    "rate above the time limit": (
        train(KEY.replace("rate20", "rate201")),
        ["rate201/seed0: rate 201, but an episode of Pendulum-v1 has at most 200 steps; lower"],
    ),
    "more demonstrations than recorded": (
        train(KEY.replace("demos1", "demos11"), "--demos", "{place}/good.npz"),
        ["good.npz: field 'demos': requested 11, found 2 episodes; request 1 to 2, or record"],
    ),
    # policies
    "missing policy": (
        ["evaluate", "{place}/none"],
        ["policy {place}/none/policy.safetensors: no such file; `ngt train RUN` or"],
    ),
    "no expert yet": (
        ["record", "Pendulum-v1", "--results", "{place}/fresh"],
        ["fresh/quick/experts/Pendulum-v1/policy.safetensors: no such file; `ngt train RUN` or"],
    ),
    "folder without a policy": (
        ["evaluate", "{place}/folder"],
        ["policy {place}/folder/policy.safetensors: no such file; `ngt train RUN` or"],
    ),
    "truncated policy": (
        ["evaluate", "{place}/truncated"],
        ["policy {place}/truncated: truncated, or not a safetensors file"],
    ),
    "foreign policy": (
        ["evaluate", "{place}/foreign"],
        ["policy {place}/foreign: field 'format': expected 1; not a policy of this suite"],
    ),
    "policy that diverged": (
        ["evaluate", "{place}/diverged"],
        ["policy {place}/diverged: tensor 'actor.net.layers.0.bias' is not finite; the run div"],
    ),
    "policy of another env": (
        ["record", "Pendulum-v1", "--scale", "test", "--policy", "{place}/reacher"],
        ["--policy: trained on Reacher-v5, not on Pendulum-v1; give a policy trained on Pendulum"],
    ),
    "demonstrations and policy of different envs": (
        ["evaluate", "{place}/reacher", "--episodes", "1", "--demos", "{place}/good.npz"],
        ["good.npz: field 'env': found Pendulum-v1, expected Reacher-v5"],
    ),
    # options
    "unknown scale of an evaluation": (
        ["evaluate", "{place}/reacher", "--scale", "nonsense"],
        ["scale: 'nonsense' is not known; known: "],
    ),
    "no CUDA": (
        train(KEY, "--device", "cuda"),
        ["--device: 'cuda' needs CUDA, but torch sees no device; use cpu"],
    ),
    "negative workers": (
        train(KEY, "--env-workers", "-1"),
        ["--env-workers: must be at least 0, found -1"],
    ),
    "no episodes": (
        ["evaluate", "{place}/reacher", "--episodes", "0"],
        ["--episodes: must be at least 1, found 0"],
    ),
    "no episodes to record": (
        ["record", "Reacher-v5", "--policy", "{place}/reacher", "--episodes", "0"],
        ["--episodes: must be at least 1, found 0"],
    ),
    "unknown figure": (
        ["runs", "--figure", "main_figur"],
        ["--figure: 'main_figur' is not known; did you mean main_figure"],
    ),
    "unknown status": (
        ["runs", "--status", "done"],
        ["--status: 'done' is not known; ", "finished"],
    ),
    "watch interval of zero": (
        ["watch", "--every", "0"],
        ["--every: must be at least 1, found 0"],
    ),
    "watching an unknown figure": (
        ["watch", "--figure", "main_figur"],
        ["--figure: 'main_figur' is not known; did you mean main_figure"],
    ),
    "event files among the runs": (
        ["watch", "--scale", "test", "--tensorboard", "results/test/runs"],
        ["--tensorboard: results/test/runs is among the results", "such as results/tensorboard"],
    ),
    "file as the results folder": (
        train(KEY, "--results", "{place}/good.npz"),
        ["argument --results: {place}/good.npz is a file; name a folder"],
    ),
    "missing argument": (["train"], ["required: RUN; see `ngt train --help`"]),
    "no command": ([], ["required: command; see `ngt --help`"]),
    "unknown command": (["trian"], ["invalid choice: 'trian'", "train", "see `ngt --help`"]),
    "unknown option": (["runs", "--figures", "x"], ["--figures x; see `ngt"]),
    "option of a wrong type": (
        ["evaluate", "p", "--seed", "one"],
        ["argument --seed: invalid int value: 'one'; see `ngt evaluate --help`"],
    ),
}


def error_line(err: str) -> str:
    """Return the error, which must be one line, after at most one line that says what begins."""
    *begun, line = err.splitlines(keepends=True)
    assert len(begun) <= 1 and "error" not in "".join(begun), "the error must be one line"
    return line


@pytest.mark.parametrize("name", CASES)
def test_one_line_with_the_field_and_the_fix(
    name: str,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    arguments, parts = CASES[name]
    with pytest.raises(SystemExit) as stopped:
        main([argument.format(place=place) for argument in arguments])
    out, err = capsys.readouterr()
    assert stopped.value.code == 2
    assert out == ""
    assert err.endswith("\n") and error_line(err).startswith("ngt: error: ")
    missing = [part for part in parts if part.format(place=place) not in err]
    assert missing == [], err
    assert not list(tmp_path.iterdir()), "nothing must be started"


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 20
    assert len({tuple(arguments) for arguments, _ in CASES.values()}) == len(CASES)


def test_a_discrete_env_is_refused_when_it_is_registered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    task = envs.Task("cart", "CartPole-v1", 4, 1, -1.0, 1.0, 500)
    monkeypatch.setitem(envs.TASKS, "cart", task)
    with pytest.raises(SystemExit) as stopped:
        main(["expert", "cart", "--scale", "test", "--results", str(tmp_path)])
    assert stopped.value.code == 2
    assert error_line(capsys.readouterr().err) == (
        "ngt: error: env 'cart': action space Discrete(2) is not continuous: "
        "use an env with one float Box of actions\n"
    )


def test_a_mistake_after_good_runs_trains_nothing(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that all keys are checked before the first run begins."""
    with pytest.raises(SystemExit):
        wrong = KEY.replace("/ngt/", "/ntg/")
        options = ["--demos", str(place / "good.npz"), "--results", str(tmp_path / "results")]
        main(["train", KEY, wrong, "--scale", "test", *options])
    assert "method: 'ntg' is not known" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_file_on_which_nobody_may_write(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "out"))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(SystemExit) as stopped:
        main([*train(), "--demos", str(place / "good.npz"), "--results", str(tmp_path / "out")])
    assert stopped.value.code == 2
    said = error_line(capsys.readouterr().err)
    assert said == f"ngt: error: {tmp_path / 'out'}: Permission denied\n"
    shutil.rmtree(tmp_path)

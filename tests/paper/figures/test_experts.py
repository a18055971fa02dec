"""The figure of the experts' learning curves."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.files import write_json
from ngt.runs.folder import expert_key
from ngt.runs.keys import Layout
from ngt.settings.config import Config, EnvConfig, FigureConfig
from ngt.settings.resolve import config_hash, resolve_expert
from paper import command
from paper.figures.experts import draw, read, which_policy
from paper.register import FIGURES

CONFIG = Config(
    scale="quick", figures={"main_figure": FigureConfig(envs=("Pendulum-v1", "Hopper-v4"))}
)


def write_expert(layout: Layout, env: str, rows: list[tuple[int, int, float]]) -> None:
    folder = layout.expert(env)
    folder.mkdir(parents=True)
    lines = ["step,episode,return,length", *(f"{s},{e},{r},200" for s, e, r in rows)]
    (folder / "eval.csv").write_text("\n".join(lines) + "\n")
    (folder / "train.csv").write_text("step,auc\n")
    source = config_hash(resolve_expert(CONFIG, env))
    kept = {"step": 2000, "return": 30.0}
    key = expert_key(env, CONFIG.expert.seed)
    record = {"key": key, "config_hash": source, "status": "finished", "step": 2000, "kept": kept}
    write_json(folder / "run.json", record)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout("quick", tmp_path)
    for env in ("Pendulum-v1", "Hopper-v4"):
        write_expert(layout, env, [(1000, 0, 1.0), (1000, 1, 4.0), (2000, 0, 20), (2000, 1, 40)])
    return layout


def test_panels_show_mean_range_kept_and_published(layout: Layout) -> None:
    figure = draw(read(CONFIG, layout), CONFIG)
    pendulum, hopper = figure.axes[:2]
    assert [axes.get_title() for axes in (pendulum, hopper)] == ["Pendulum-v1", "Hopper-v4"]
    mean, kept = pendulum.lines
    np.testing.assert_array_equal(mean.get_ydata(), [2.5, 30.0])
    assert list(kept.get_ydata()) == [30.0]
    band = pendulum.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 1.0 and band[:, 1].max() == 40.0
    assert hopper.lines[2].get_ydata()[0] == pytest.approx(3510, abs=2)


def test_the_note_says_which_policy_is_kept() -> None:
    envs = ["Pendulum-v1", "Hopper-v4"]
    some = replace(CONFIG, envs={"Hopper-v4": EnvConfig(expert={"train": {"keep": "best"}})})
    best = replace(CONFIG, expert=replace(CONFIG.expert, train={"keep": "best"}))
    assert which_policy(CONFIG, envs) == "The last policy is kept."
    assert which_policy(best, envs).startswith("The policy with the best evaluation is kept, so")
    assert "is kept on Hopper-v4, where its return" in which_policy(some, envs)


@pytest.mark.parametrize("count", [1, 4, 7])
def test_no_empty_panels(layout: Layout, count: int) -> None:
    experts = read(CONFIG, layout)[:1] * count
    figure = draw(experts, CONFIG)
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == count and all(axes.get_title() for axes in shown)


def test_missing_expert_is_named(layout: Layout) -> None:
    (layout.expert("Hopper-v4") / "run.json").unlink()
    with pytest.raises(UserError, match=r"expert Hopper-v4: .*run\.json is missing"):
        read(CONFIG, layout)


def test_an_expert_without_an_evaluation_is_named(layout: Layout) -> None:
    shutil.rmtree(layout.expert("Hopper-v4"))
    write_expert(layout, "Hopper-v4", [])
    with pytest.raises(
        UserError, match="expert Hopper-v4: diverged at step 2000, before its first"
    ):
        read(CONFIG, layout)


def test_there_is_none_where_demonstrations_are_ones_own(layout: Layout) -> None:
    (layout.root / "mine.npz").write_bytes(b"mine")
    own = EnvConfig(demos=str(layout.root / "mine.npz"))
    one = replace(CONFIG, envs={"Pendulum-v1": own})
    assert [expert.env for expert in read(one, layout)] == ["Hopper-v4"]
    assert FIGURES["expert_figure"].at(one)
    both = replace(CONFIG, envs={"Pendulum-v1": own, "Hopper-v4": own})
    assert not FIGURES["expert_figure"].at(both)
    with pytest.raises(UserError, match="no env has demonstrations by an expert"):
        draw(read(both, layout), both)


def test_command(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["expert_figure", "--results", str(layout.root), "--scale", "tiny"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("expert_figure: error: scale: 'tiny'")

"""The page on the shipped experts, which must match the command's output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ngt.experience import shipped
from ngt.experience.envs import TASKS
from ngt.runs.keys import Layout
from paper import command, pages
from paper.figures import experts as expert_figure
from paper.handbook import experts
from paper.register import FIGURES

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "data" / "README.md"
REMEDY = "run: python -m paper.handbook.experts"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data folder without experts that holds only its page, README.md."""
    monkeypatch.setattr(shipped, "DATA", tmp_path)
    begin, end = pages.markers(experts.NAME)
    (tmp_path / "README.md").write_text(f"head\n{begin}old\n{end}tail\n")
    return tmp_path


def put(data: Path, env: str, returns: list[float], **changes: Any) -> None:
    """Write an expert with these returns; copy everything else from another expert."""
    shutil.copytree(ROOT / "data" / "HalfCheetah-v4", data / env)
    file = data / env / shipped.EXPERT
    expert = json.loads(file.read_text())
    changes = {"env": env, "returns": returns, "episodes": len(returns), **changes}
    file.write_text(json.dumps({**expert, **changes}))


def test_the_page_is_what_the_command_writes() -> None:
    _, part, _ = pages.between(PAGE.read_text(), str(PAGE), experts.NAME)
    assert part == experts.page(), REMEDY


def test_the_picture_is_what_the_command_draws(tmp_path: Path) -> None:
    experts.draw(tmp_path / "curves.png")
    with (
        Image.open(tmp_path / "curves.png") as new,
        Image.open(PAGE.with_name("curves.png")) as old,
    ):
        assert new.size == old.size, REMEDY
        difference = np.asarray(new.convert("L"), float) - np.asarray(old.convert("L"), float)
    assert np.abs(difference).mean() < 0.5, (
        f"the pictures differ by more than half a grey level of 255; {REMEDY}"
    )


def test_a_row_by_hand(data: Path) -> None:
    put(data, "Pusher-v5", [-40.0, -44.0, -36.0, -48.0], random=-150.0, wall_seconds=5400.0)
    shown = experts.row(TASKS["Pusher-v5"], True)
    assert shown == {
        "env": "Pusher-v5",
        "mean": -42.0,
        "std": pytest.approx(80**0.5 / 3**0.5),
        "worst": -48.0,
        "best": -36.0,
        "random": -150.0,
        "published": -31.0,
        "share": "91%",
        "aim": -40.0,
        "met": "**no**",
        "demos": 4,
        "steps": "700 000",
        "updates": "175 000",
        "hours": 1.5,
        "video": "[gif](../docs/experts/Pusher-v5.gif)",
    }
    put(data, "walker-walk", [800.0, 800.0], episodes=1)
    shown = experts.row(TASKS["walker-walk"], False)
    assert (shown["met"], shown["published"], shown["share"]) == ("yes", None, None)
    assert (shown["demos"], shown["video"]) == (1, None)
    put(data, "Reacher-v5", [1.0, 2.0])
    assert experts.row(TASKS["Reacher-v5"], False)["met"] is None, (
        "an env without an aim must have no answer"
    )


def test_a_share_counts_from_the_random_policy() -> None:
    assert experts.share(-31.0, -150.0, -31.0) == 1.0 and experts.share(-150, -150, -31) == 0.0
    assert experts.share(7100.0, 0.0, 14200.0) == 0.5


def test_aims() -> None:
    assert {task.id: task.aim for task in TASKS.values() if task.aim is not None} == {
        "Ant-v4": 4000,
        "HalfCheetah-v4": 7000,
        "Hopper-v4": 2800,
        "Humanoid-v4": 5000,
        "Walker2d-v4": 3500,
        "Pusher-v5": -40,
        "cheetah-run": 600,
        "walker-walk": 800,
        "finger-spin": 800,
    }


def test_command(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that shipped experts appear in the registry's order and missing experts are named."""
    put(data, "walker-walk", [900.0, 700.0])
    put(data, "HalfCheetah-v4", [6999.0, 6999.5])
    page = data / "README.md"
    for _ in range(2):
        experts.main(["--into", str(page)])
    text = page.read_text()
    assert text.startswith("head\n") and text.endswith("tail\n") and "old" not in text
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == ["| HalfCheetah-v4", "| walker-walk"]
    assert "| 7000 | **no** |" in text and "| 800 | yes |" in text
    assert (
        "without a shipped expert: Ant-v4, Hopper-v4, Humanoid-v4, Pusher-v5, Walker2d-v4, " in text
    )
    with Image.open(data / "curves.png") as image:
        assert image.width > 1000, "there must be two panels"
    assert str(page) in capsys.readouterr().out
    (data / "walker-walk" / shipped.CURVE).write_text("step\n")
    with pytest.raises(SystemExit) as stop:
        experts.main(["--into", str(page)])
    assert stop.value.code == 2 and "curve.csv: checksum" in capsys.readouterr().err
    assert page.read_text() == text


def test_the_experts_figure_takes_what_ships(data: Path, tmp_path: Path) -> None:
    put(data, "Pendulum-v1", [-100.0] * 4)
    args = command.build_parser().parse_args(["expert_figure", "--set", "demos=shipped"])
    config, _ = command.settings(args, FIGURES["expert_figure"])
    (expert,) = expert_figure.read(config, Layout("quick", tmp_path / "none"))
    assert expert.env == "Pendulum-v1" and expert.record["returns"] == [-100.0] * 4
    assert len(expert_figure.draw([expert], config).axes) == 1

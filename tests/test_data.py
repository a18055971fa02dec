"""Shipped experts and records: the files load and agree with each other and with the docs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ngt.agent import policy
from ngt.commands.views.video import comment_of
from ngt.experience import demos, shipped
from ngt.experience.reference import reference_of
from ngt.experience.rollout import rollout
from ngt.experience.vector import VectorEnv
from ngt.files import read_json
from ngt.runs.folder import read_shipped
from ngt.runs.keys import Layout, run_table
from ngt.runs.shipping.ship import LARGEST, SAME_ACTION, distance
from ngt.runs.table import read_runs
from ngt.seeding import derive
from ngt.settings.load import load, read_yaml
from ngt.settings.resolve import expert_ships, method_label
from ngt.views import clip
from paper.drawing.table import show
from paper.handbook import experts
from paper.numbers import coverage
from paper.numbers.scores import final_scores
from paper.tables.scores import rows

ROOT = Path(__file__).resolve().parents[1]
ENVS = sorted(p.name for p in shipped.DATA.iterdir() if p.is_dir())


@pytest.fixture(params=ENVS)
def env(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_files_and_sizes(env: str) -> None:
    """Check that the four files match their checksums and are small enough for a clone."""
    files = {p.name: p.stat().st_size for p in (shipped.DATA / env).iterdir()}
    assert files.keys() == {shipped.POLICY, shipped.DEMOS, shipped.CURVE, shipped.EXPERT}
    assert shipped.read(env)["files"].keys() == files.keys() - {shipped.EXPERT}
    assert files[shipped.DEMOS] <= LARGEST
    assert sum(files.values()) <= 1.25 * LARGEST


def test_the_record_is_of_these_episodes(env: str) -> None:
    recorded, expert = demos.load(shipped.DATA / env / shipped.DEMOS, env), shipped.read(env)
    count = expert["episodes"]
    assert len(recorded.length) == count and len(expert["returns"]) == 16
    assert expert["returns"][:count] == recorded.returns.tolist()
    assert expert["lengths"][:count] == recorded.length.tolist()
    assert expert["random"] == recorded.random
    assert expert["status"] == "finished" and expert["config_hash"] == recorded.source
    assert expert["config"]["env"] == expert["key"]["env"] == env


def test_the_best_evaluation_ships_and_other_episodes_are_recorded(env: str) -> None:
    expert, rows = read_shipped(env)
    assert expert["config"]["train"]["keep"] == "best"
    assert expert["kept"]["return"] == pytest.approx(rows["return"].max())
    assert rows.loc[rows["return"].idxmax(), "step"] == expert["kept"]["step"]
    seed = expert["key"]["seed"]
    evaluated = {
        derive(seed, "eval", env, 0, index, episode)
        for index in range(len(rows))
        for episode in range(int(rows["episodes"].max()))
    }
    recorded = demos.load(shipped.DATA / env / shipped.DEMOS, env).seeds.tolist()
    assert len(evaluated) == rows["episodes"].sum() and len(set(recorded)) == len(recorded)
    assert not evaluated & set(recorded)
    assert recorded == [derive(seed, "record", env, i) for i in range(len(recorded))]


def test_the_policy_is_the_one_recorded(env: str) -> None:
    recorded = demos.load(shipped.DATA / env / shipped.DEMOS, env)
    actor, trained_on = policy.load(shipped.DATA / env / shipped.POLICY)
    assert trained_on == env and distance(recorded, actor) < SAME_ACTION
    vec = VectorEnv(env, 1)
    again = rollout(vec, actor, [int(recorded.seeds[0])], runs=1)
    vec.close()
    # Other processors round differently, and an episode amplifies this.
    assert again.returns[0, 0] == pytest.approx(recorded.returns[0], rel=0.1)


def test_the_page_says_how_good_it_is(env: str) -> None:
    returns = np.array(shipped.read(env)["returns"])
    (line,) = re.findall(rf"^\| {env} \|.+$", (shipped.DATA / "README.md").read_text(), re.M)
    cells = line.replace("−", "-").strip("| ").split(" | ")
    values = (returns.mean(), returns.std(ddof=1), returns.min(), returns.max())
    assert cells[1:5] == [f"{value:.0f}" for value in values]


def test_a_video_is_of_the_policy_that_ships(env: str) -> None:
    file = experts.VIDEOS / f"{env}.gif"
    remedy = f"run: ngt video {env} --out docs/experts/{env}.gif"
    assert file.exists(), remedy
    assert file.stat().st_size <= clip.LARGEST
    with Image.open(file) as image:
        assert image.info["comment"].decode() == comment_of(shipped.DATA / env / shipped.POLICY), (
            remedy
        )


def test_its_settings_are_those_of_scale_lite(env: str) -> None:
    """Check the expert's settings: if they differed, `make experts` would train it again."""
    assert expert_ships(load({"scale": "lite"}), env)


@pytest.mark.slow
def test_a_fresh_clone_imitates_by_one_command(tmp_path: Path) -> None:
    """Run the page's first command, which needs only shipped files and less than two minutes."""
    page = (shipped.DATA / "README.md").read_text()
    command = page.split("```")[1].replace("\\\n", " ").split()
    assert command[0] == "ngt"
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "ngt", *command[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 120
    run = read_json(tmp_path / "results/lite/runs" / command[2] / "run.json")
    recorded = demos.load(shipped.DATA / "HalfCheetah-v4" / shipped.DEMOS)
    assert run["status"] == "finished" and run["step"] == 1000
    assert run["reference"] == reference_of(recorded)


def minutes(runs: dict[str, dict]) -> float:
    """Return the minutes that the runs in a manifest took. The time of a pack counts once."""
    return float(sum(run["wall_seconds"] / run["pack"] for run in runs.values()) / 60)


def test_the_pages_say_what_the_runs_of_scale_quick_took() -> None:
    runs = read_json(ROOT / "results/published/quick.json")["runs"]
    of_main = {str(key) for key in run_table(load({}), ["main_figure"])}
    of_experts = {name for name in runs if name.endswith("/expert")}
    main = {name: run for name, run in runs.items() if name in of_main}
    others = {name: run for name, run in runs.items() if name not in of_main | of_experts}
    slow = {
        method: {name: run for name, run in others.items() if f"/{method}/" in name}
        for method in ("ngt-kaiming", "ngt-no-sn")
    }
    kaiming, without = (minutes(pack) for pack in slow.values())
    ngt = {name: run for name, run in main.items() if "/ngt/" in name}
    assert {run["pack"] for pack in (ngt, *slow.values()) for run in pack.values()} == {6}
    page = " ".join((ROOT / "docs/performance.md").read_text().split())
    for text in (
        f"the whole scale took {minutes(runs) / 60:.1f} core-hours: {minutes(main):.0f} "
        f"core-minutes for the {len(main)} runs of `main_figure`, "
        f"{minutes(runs) - minutes(main) - minutes(others):.0f} for the expert, and "
        f"{minutes(others):.0f} for the {len(others)} other runs.",
        f"`ngt-kaiming` and `ngt-no-sn`, took {kaiming:.0f} and {without:.0f} of these minutes, "
        f"while a pack of six runs of NGT took {minutes(ngt):.0f}.",
        f"the sum is {(minutes(runs) - kaiming - without) / 60:.1f} core-hours.",
    ):
        assert text in page
    assert f"| 1 to {minutes(runs) / 60:.0f} core-hours |" in (ROOT / "README.md").read_text()


def test_the_page_says_how_long_the_packs_of_scale_lite_took() -> None:
    runs = read_json(ROOT / "results/published/lite.json")["runs"]
    ngt, dac, plus, pwil = (
        minutes({name: run for name, run in runs.items() if f"HalfCheetah-v4/{pack}" in name})
        for pack in (
            "ngt/state-action-demos4-",
            "dac-r/state-action-demos4-",
            "dac-rplus/",
            "pwil/",
        )
    )
    text = " ".join((ROOT / "docs/learning.md").read_text().split())
    assert f"The three runs of NGT trained as one pack, in {ngt:.0f} minutes" in text
    assert f"DAC's pack with R took {dac:.0f} minutes" in text
    assert f"its six runs with R+ took {plus:.0f} minutes" in text
    assert f"PWIL's six runs took {pwil:.0f} minutes" in text


@pytest.mark.parametrize("name", ["quick", "halfcheetah"])
def test_the_records_that_ship_are_whole(name: str) -> None:
    """Check that the records are complete and agree with their settings and docs/learning.md."""
    settings = {"scale": "quick"} if name == "quick" else read_yaml(ROOT / f"docs/{name}.yaml")
    config = load({**settings, "records": "published"})
    layout = Layout(config.scale, records=ROOT / f"results/published/{name}.parquet")
    text = (ROOT / "docs" / "learning.md").read_text()
    for figure in config.figures:
        runs, absent = read_runs(layout, config, figure)
        assert absent == [] and set(runs["status"]) == {"finished"}
    if name == "quick":
        lines: dict[str, str] = {}
        for row in rows(read_runs(layout, config, "main_figure")[0], config, []):
            mean, low, high = (show(row[name]) for name in ("mean", "low", "high"))
            line = lines.setdefault(str(row["method"]), f"| {row['method']} |")
            each = ", ".join(map(show, row["scores"]))
            lines[str(row["method"])] = f"{line} {mean} [{low}, {high}] ({each}) |"
        assert [line for line in lines.values() if f"\n{line}\n" not in text] == []
        assert coverage.caution([3], "mean") in " ".join(text.split())
        manifest = read_json(layout.published.with_suffix(".json"))
        runs = {k: r for k, r in manifest["runs"].items() if not k.endswith("/expert")}
        of_main = {str(key) for key in run_table(config, ["main_figure"])}
        updates = {r["updates"] for k, r in runs.items() if k in of_main and "/bc" not in k}
        assert [f"{n} updates" in text for n in updates] == [True]
        assert f"after {max(updates)} updates" in (ROOT / "docs" / "ngt-release.md").read_text()
    else:
        scores = final_scores(read_runs(layout, config, "main_figure")[0], config.window)
        for method, seed, score in zip(scores.method, scores.seed, scores.score, strict=True):
            label = method_label(config, method)
            assert f"\n| {label} | {seed} | {score:.2f} |" in text

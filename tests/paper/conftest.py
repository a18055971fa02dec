"""Run folders made without training, in the formats of `ngt.runs.writer`, and a browser."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ngt.experience.envs import get_task
from ngt.experience.reference import unscored
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.status import Status
from ngt.runs.table import Runs, read_runs
from ngt.runs.writer import EVAL_FIELDS
from ngt.settings.config import Config, Mode
from ngt.settings.load import CONFIG_DIR, load, read_yaml
from ngt.settings.resolve import config_hash, method_rate, resolve
from ngt.settings.schema import parse
from paper.drawing import style
from paper.drawing.table import Column, Table, save
from paper.figures.curves import CURVE_FIGURES
from paper.register import FIGURES, TABLES
from paper.theory import study as theory

RANDOM, EXPERT = -200.0, 300.0
POOR = {"random": 49.5, "expert": 49.0, "demos": "1" * 64}

METHODS = """
ngt: {label: NGT, model: "ngt.reward:Constant"}
dac-r: {label: DAC (R), like: ngt}
red: {label: RED*, like: ngt}
bc: {label: BC, model: "baselines.bc:Bc"}
bc-full: {label: BC(1), like: bc, rate: 1}
"""


@lru_cache(maxsize=8)
def parsed(settings: str) -> Config:
    """Return the config of settings in JSON. Tests ask for the same config once for each run."""
    config: Config = parse(Config, json.loads(settings))
    return config


@dataclass(frozen=True)
class Study:
    """A config and the folder of its runs."""

    settings: dict[str, Any]
    layout: Layout

    @property
    def config(self) -> Config:
        return parsed(json.dumps(self.settings))

    def key(
        self,
        method: str,
        demos: int = 1,
        seed: int = 0,
        env: str = "Pendulum-v1",
        mode: Mode = "state-action",
        rate: int = 20,
    ) -> RunKey:
        rate = method_rate(self.config, method) or rate
        return RunKey(env, method, mode, rate, demos, seed)

    def table(self) -> list[RunKey]:
        return run_table(self.config)

    def write(
        self,
        key: RunKey,
        scores: Sequence[float],
        /,
        *,
        diverged: bool = False,
        auc: Sequence[float] = (),
        **changes: Any,
    ) -> Path:
        """Write a complete run from normalised scores, one for each evaluation of two episodes."""
        folder, every = self.layout.run(key), self.config.train.eval_every
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "eval.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(EVAL_FIELDS)
            for i, score in enumerate(scores, 1):
                mean = RANDOM + score * (EXPERT - RANDOM)
                writer.writerow([i * every, 0, repr(mean - 10.0), 200])
                writer.writerow([i * every, 1, repr(mean + 10.0), 200])
        logged = [f"{i * every},{value!r}" for i, value in enumerate(auc, 1)]
        (folder / "train.csv").write_text("\n".join(["step,auc", *logged, ""]))
        end = {"status": "finished", "step": len(scores) * every}
        if diverged:
            end = {"status": "diverged", "step": end["step"] + 1, "tensor": "agent.actor"}
        record = {
            "key": {"run": str(key), **asdict(key)},
            "config_hash": config_hash(resolve_key(self.config, key)),
            **end,
            "reference": {"random": RANDOM, "expert": EXPERT, "demos": "0" * 64},
            "steps_per_second": 100.0,
            "source_hash": "0" * 16,
            **changes,
        }
        (folder / "run.json").write_text(json.dumps(record))
        return folder


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    """Return make_study(methods=..., demos=..., ...), which makes a study without runs."""

    def make(window: int = 3, steps: int = 60_000, **figure: Any) -> Study:
        plan = {
            "methods": ["ngt", "dac-r", "bc"],
            "envs": ["Pendulum-v1"],
            "demos": [1, 4],
            "seeds": [0, 1, 2],
            **figure,
        }
        settings = {
            "scale": "quick",
            "window": window,
            "statistics": {"reps": 20},
            "train": {"steps": steps, "eval_every": steps // 6},
            "methods": yaml.safe_load(METHODS),
            "figures": {"main_figure": plan},
        }
        return Study(settings, Layout("quick", tmp_path / "results"))

    return make


@pytest.fixture
def poor_study(make_study: Callable[..., Study]) -> Callable[..., Study]:
    """Return poor_study(envs=..., name=...), which makes a study where Hopper-v4 has no scores.

    NGT has better returns than BC on all envs. On Hopper-v4, the expert returns 49 and the random
    policy 49.5. Normalised by these, NGT would be worse.
    """

    def make(
        envs: Sequence[str] = ("Pendulum-v1", "Hopper-v4"), name: str = "main_figure", **more: Any
    ) -> Study:
        study = make_study(window=1, methods=["ngt", "bc"], envs=list(envs), seeds=[0, 1], **more)
        study.settings["figures"] = {name: study.settings["figures"]["main_figure"]}
        for key in study.table():
            score, poor = 0.9 if key.method == "ngt" else 0.5, 50.0 if key.method == "ngt" else 49.6
            if key.env == "Hopper-v4":
                score = (poor - RANDOM) / (EXPERT - RANDOM)
                study.write(key, [score] * 6, reference=POOR)
            else:
                study.write(key, [score] * 6)
        return study

    return make


@pytest.fixture
def paper_study(tmp_path: Path) -> Callable[..., Study]:
    """Return paper_study(figure, ...), which makes a study of one of the paper's figures."""

    def make(figure: str, window: int = 3, **changes: Any) -> Study:
        base, lite = (read_yaml(CONFIG_DIR / f"{name}.yaml") for name in ("base", "lite"))
        plan = {**(base["figures"].get(figure) or lite["figures"][figure]), **changes}
        settings = {
            "scale": "paper",
            "window": window,
            "train": {"steps": 60_000, "eval_every": 10_000},
            "methods": base["methods"],
            "figures": {figure: plan},
        }
        return Study(settings, Layout("paper", tmp_path / "results"))

    return make


@pytest.fixture
def fill() -> Callable[..., None]:
    """Return fill(study, skip=...), which writes six evaluations for every run."""

    def write_all(study: Study, skip: Sequence[RunKey] = ()) -> None:
        for i, key in enumerate(study.table()):
            if key not in skip:
                level = 0.1 + 0.8 * ((i * 7) % 11) / 11
                scores = [level * min(1.0, j / 4) for j in range(6)]
                study.write(key, scores, auc=[1.0 - level * j / 6 for j in range(6)])

    return write_all


@dataclass(frozen=True)
class Drawn:
    """A figure and its texts, with line breaks and no-break spaces as plain spaces."""

    figure: Figure

    @property
    def notes(self) -> str:
        """Return the text below the panels."""
        return _joined(self.figure.texts)

    @property
    def legend(self) -> list[str]:
        return [text.get_text() for text in self.figure.legends[0].get_texts()]

    def above(self, panel: int) -> str:
        """Return the text above a panel, below its title."""
        return _joined(self.figure.axes[panel].texts)

    def strong(self, panel: int) -> list[Line2D]:
        """Return a panel's curves in the order of the legend."""
        curves = [x for x in self.figure.axes[panel].lines if 400 < x.get_zorder() < 600]
        return sorted(curves, key=lambda line: -line.get_zorder())


def _joined(texts: Sequence[Text]) -> str:
    return " ".join(t.get_text() for t in texts).replace("\n", " ").replace("\u00a0", " ")


@pytest.fixture
def drawn() -> Callable[..., Drawn]:
    """Return drawn(study, name), which draws the study's runs as the named figure."""

    def draw(study: Study, name: str, *, allow_partial: bool = False) -> Drawn:
        runs, absent = read_runs(study.layout, study.config, name, allow_partial=allow_partial)
        return Drawn(CURVE_FIGURES[name].draw(runs, study.config, absent))

    return draw


@pytest.fixture
def tidy() -> Callable[[Figure], None]:
    """Return tidy(figure), which checks that a figure has no overlaps, overflows or tiny panels."""

    def check(figure: Figure) -> None:
        with style.context():
            figure.draw_without_rendering()
        width, height = figure.bbox.width, figure.bbox.height
        boxes = [axes.get_tightbbox() for axes in figure.axes]
        boxes += [figure.legends[0].get_window_extent()]
        boxes += [text.get_window_extent() for text in figure.texts]
        for box in boxes:
            assert box.x0 >= -1 and box.y0 >= -1
            assert box.x1 <= width + 1 and box.y1 <= height + 1
        for a, b in itertools.combinations(boxes, 2):
            across = min(a.x1, b.x1) - max(a.x0, b.x0)
            along = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert across <= 1 or along <= 1  # pixels
        assert all(axes.get_position().height * height > 60 for axes in figure.axes)

    return check


@pytest.fixture
def make_artefacts() -> Callable[[Study], None]:
    """Return make_artefacts(study), which makes a file for each figure and table of the study."""

    def make(study: Study) -> None:
        root = study.layout.root
        root.mkdir(parents=True, exist_ok=True)
        for i, figure in enumerate(a for a in FIGURES.values() if a.at(study.config)):
            image = Image.new("RGB", (400, 100), "white")
            image.paste((40 * (i % 6), 0, 0), (0, 0, 200, 100))
            about = PngInfo()
            about.add_text("Title", style.made_of(study.config.scale))
            image.save(root / f"{figure.name}.png", pnginfo=about)
            (root / f"{figure.name}.pdf").write_text("%PDF")
        columns = {
            "name": Column("name"),
            "score": Column("score"),
            "verdict": Column("Verdict"),
        }
        rows: list[dict[str, Any]] = [
            {"name": "b <i>", "score": -2.5, "verdict": "not reproduced"},
            {"name": "a & c", "score": -10.123456, "verdict": "reproduced"},
            {"name": "d", "score": None, "verdict": "reproduced"},
            {"name": "c", "score": 10.0, "verdict": "not run at this scale"},
        ]
        for table in (a for a in TABLES.values() if a.at(study.config)):
            made = Table(f"Caption of {table.name}", columns, rows, ("A note.",))
            save(made, root / f"{table.name}.csv", study.config.scale)

    return make


@pytest.fixture(scope="session")
def theory_numbers() -> theory.Study:
    """Return the theory study with made-up training results; computing the rest takes a second."""

    def training(scale: float) -> theory.Training:
        rising = np.linspace(1.0, 2.0, len(theory.STEPS))
        return theory.Training(
            dual=2.0 * scale * rising,
            objective=scale * rising,
            gradient=0.1 * rising,
            pairs=0.05 * rising,
            product=scale * rising,
            chain=0.5 * scale * rising,
            layer=rising,
        )

    with pytest.MonkeyPatch.context() as patch:
        trainings = {
            "huber": training(3.0),
            "mse_softmax": training(1.0),
            "hl_gauss": training(2.0),
        }
        patch.setattr(theory, "train", lambda pairing, *_: trainings[pairing])
        return theory.study.__wrapped__()


@pytest.fixture
def as_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Study], None]:
    """Return as_scale(study), which saves the study's settings as scale `quick` in its folder."""

    def place(study: Study) -> None:
        folder = tmp_path / "scales"
        folder.mkdir()
        (folder / "base.yaml").write_text(yaml.safe_dump(study.settings))
        (folder / "quick.yaml").write_text("scale: quick\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("ngt.settings.options.load", partial(load, directory=folder))

    return place


@pytest.fixture(scope="session")
def paper_config() -> Config:
    """Return the config of scale `paper` with few bootstrap repetitions."""
    config: Config = load({"scale": "paper", "statistics": {"reps": 20}})
    return config


def published(env: str) -> dict[str, float]:
    """Return an env's random and expert returns as published with the authors' code."""
    task = get_task(env)
    if task.published_random is None or task.published_expert is None:
        return {"random": RANDOM, "expert": EXPERT}
    return {"random": task.published_random, "expert": task.published_expert}


@pytest.fixture(scope="session")
def make_evidence(paper_config: Config) -> Callable[..., Any]:
    """Return make_evidence(scores), which makes evidence of complete runs with these final scores.

    paces: env steps per second of timed runs, over equal stretches.
    silent: runs that diverged before their first evaluation.
    """
    from paper.claims.verdicts import Evidence

    def make(
        scores: Mapping[RunKey, float],
        config: Config = paper_config,
        paces: Mapping[RunKey, Sequence[float]] | None = None,
        record: Mapping[str, Any] | None = None,
        gpu: Any = None,
        silent: Sequence[RunKey] = (),
    ) -> Evidence:
        rows = []
        for key in (*scores, *(paces or {})):
            pace = np.array((paces or {}).get(key, [np.nan]), float)
            seconds = np.cumsum(1000 / pace)
            for step, second in enumerate(seconds, 1):
                row = {**asdict(key), "step": 1000 * step, "score": scores.get(key, 0.5)}
                rows.append({**row, "seconds": second, "status": "finished"})
        keys = {RunKey(*(row[f.name] for f in fields(RunKey))) for row in rows} | {*silent}
        hashes = {cell: config_hash(resolve(config, *cell)) for cell in {k.cell for k in keys}}
        records = {
            key: {
                "config_hash": hashes[key.cell],
                "reference": published(key.env),
                **(record or {}),
            }
            for key in sorted(keys)
        }
        statuses = {key: Status("finished", "") for key in records}
        frame = pd.DataFrame(rows) if rows else None
        if frame is not None:
            reasons = {key.env: unscored(run["reference"]) for key, run in records.items()}
            frame.attrs = {"unscored": {env: text for env, text in reasons.items() if text}}
            frame["return"] = frame["score"]
        return Evidence(config, paper_config, Runs(frame, statuses, dict(records)), gpu)

    return make


# --- a browser

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a browser without a network. Skip the test if chromium or chromedriver is missing."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("chromium or chromedriver is missing")
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "localhost,127.0.0.1")
        driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        yield driver
        driver.quit()

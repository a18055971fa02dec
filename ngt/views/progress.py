"""The progress of runs and experts: their statuses, and the rows in their CSV files so far.

The files are only read and are never locked or changed, so training is not affected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ngt.experience import demos
from ngt.experience.reference import reference_of, unscored
from ngt.files import read_json
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout, RunKey
from ngt.runs.status import COMPLETE, PART
from ngt.settings.config import Config
from ngt.settings.resolve import demos_file, own_file

Rows = dict[int, dict[str, float]]  # step -> column -> value
Stamp = tuple[int, int] | None  # a file's modification time and size; None if it is missing


class Started(NamedTuple):
    """A run or an expert that has started, with some of its settings."""

    name: str  # a run's key, or "<env>/expert"
    env: str
    curve: str  # name of the run's curve, such as "ngt/state-action-demos4-rate20"
    steps: int  # step at which training ends
    episodes: int  # number of episodes in an evaluation
    eval: Path
    train: Path
    complete: bool


class Progress:
    """The progress of the runs with these keys, and of the experts of these runs' envs."""

    def __init__(self, layout: Layout, config: Config, keys: Sequence[RunKey]) -> None:
        self.layout, self.config, self.keys = layout, config, list(keys)
        self.statuses: dict[RunKey, str] = {}
        self.over = False  # True if all runs are complete and none is being trained again
        self._complete: dict[Path, tuple[Stamp, str]] = {}  # statuses of complete runs
        self._references: dict[str, tuple[float, float]] = {}
        self._rows: dict[Path, tuple[Stamp, Rows]] = {}

    def look(self) -> list[Started]:
        """Update all statuses, and return the experts and then the runs that have started."""
        self.folders = Folders(self.layout, self.config)
        found = []
        for env in dict.fromkeys(key.env for key in self.keys):
            if self.config.demos != "shipped" and not own_file(self.config, env):
                folder = self.layout.expert(env)
                complete = self._status(folder, env) in COMPLETE
                found.append(started(folder, complete, f"{env}/expert", env, "expert"))
        for key in self.keys:
            folder = self.layout.run(key)
            self.statuses[key] = self._status(folder, key)
            complete = self.statuses[key] in COMPLETE
            found.append(started(folder, complete, str(key), key.env, curve_of(key)))
        begun = [run for run in found if run]
        ended = set(self.statuses.values()) <= set(COMPLETE)
        self.over = ended and all(run.complete for run in begun)
        return begun

    def _status(self, folder: Path, what: RunKey | str) -> str:
        """Return the status of a run or an expert. A complete folder is read only once.

        what: the run's key, or the env of the expert.
        """
        now = stamp(folder / "run.json")
        known, former = self._complete.get(folder, (None, ""))
        if now and known == now:
            return former
        if isinstance(what, str):
            status = self.folders.expert_status(what).status
        else:
            status = self.folders.status(what).status
        if status in COMPLETE:
            self._complete[folder] = now, status
        return status

    def evaluations(self, run: Started) -> Rows:
        """Return the mean return and the mean length for each of a run's evaluations."""
        now = stamp(run.eval)
        if run.eval not in self._rows or self._rows[run.eval][0] != now:
            self._rows[run.eval] = now, evaluations(run.eval, run.episodes)
        return self._rows[run.eval][1]

    def reference(self, env: str) -> tuple[float, float] | None:
        """Return the mean returns of the random policy and the expert.

        Return None if they are unknown or cannot normalise returns.
        """
        if env not in self._references and self.folders.reference(env).get("demos"):
            file = Path(demos_file(self.config, env) or self.layout.demos(env))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `ngt train` shows these warnings
                data = demos.load(file, env)
            if not unscored(reference_of(data)):
                self._references[env] = data.random, data.expert
        return self._references.get(env)


def curve_of(key: RunKey) -> str:
    """Return the name of a run's curve: the run's key without env and seed."""
    return str(key).removeprefix(f"{key.env}/").rpartition("/")[0]


def started(folder: Path, complete: bool, name: str, env: str, curve: str) -> Started | None:
    """Return the run or expert in a folder, or None if none has started.

    If a new run is being trained in a folder with an earlier result, return the new run.
    """
    ending = PART if (training := (folder / f"eval.csv{PART}").exists()) else ""
    settings = read_json(folder / f"config.json{ending}") if training or complete else None
    if settings is None:
        return None
    train = settings["train"]
    return Started(
        name,
        env,
        curve,
        steps=int(train["steps"]),
        episodes=int(train["eval_episodes"]),
        eval=folder / f"eval.csv{ending}",
        train=folder / f"train.csv{ending}",
        complete=complete and not training,
    )


def stamp(path: Path) -> Stamp:
    """Return a file's modification time and size, or None if the file is missing."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size


def table(path: Path) -> Iterator[dict[str, float]]:
    """Yield the rows of a CSV file of numbers, up to the first row that is not fully written.

    Yield no rows if the file is missing, as it is for a moment while a new file replaces it.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    header, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]
    for line in lines:
        try:
            yield dict(zip(header.split(","), map(float, line.split(",")), strict=True))
        except ValueError:
            return


def evaluations(path: Path, episodes: int) -> Rows:
    """Return the mean return and the mean length for each complete evaluation in a file.

    path: a run's eval.csv file.
    episodes: the number of episodes in a complete evaluation.
    """
    found: dict[int, list[dict[str, float]]] = {}
    for row in table(path):
        found.setdefault(int(row["step"]), []).append(row)
    return {
        step: {name: fmean(row[name] for row in rows) for name in ("return", "length")}
        for step, rows in found.items()
        if len(rows) >= episodes
    }


def training(path: Path) -> Rows:
    """Return the rows of train.csv by step."""
    return {int(row["step"]): row for row in table(path)}

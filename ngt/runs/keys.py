"""Run keys, the table of all runs, packs (runs that are trained together) and the paths of results.

A run's key identifies the run. The key consists of the env, the method, the input mode, the number
of demonstrations, the subsampling rate and the seed. It contains no time, host name or
hyper-parameter.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from ngt.errors import UserError
from ngt.settings.check import check_rate
from ngt.settings.config import DIGITS, MODES, CellConfig, Config, Mode
from ngt.settings.resolve import config_hash, method_rate, resolve
from ngt.text import ranges

_NUMBER = rf"(\d{{1,{DIGITS}}})"
_KEY = re.compile(rf"([^/]*)/([^/]*)/([^/]+)-demos{_NUMBER}-rate{_NUMBER}/seed{_NUMBER}")


@dataclass(frozen=True, order=True)
class RunKey:
    """A run's key. Its text is the path env/method/mode-demosK-rateN/seedS."""

    env: str
    method: str
    mode: Mode
    rate: int
    demos: int
    seed: int

    def __str__(self) -> str:
        return (
            f"{self.env}/{self.method}/{self.mode}-demos{self.demos}-rate{self.rate}"
            f"/seed{self.seed}"
        )

    @property
    def record(self) -> dict[str, Any]:
        """Return the key in the form that run.json uses."""
        return {"run": str(self), **asdict(self)}

    @property
    def cell(self) -> tuple[str, str, Mode, int]:
        """Return the run's cell, i.e. the part of the key that all runs of a pack share."""
        return (self.env, self.method, self.mode, self.rate)

    @staticmethod
    def parse(text: str) -> RunKey:
        """Parse a run's key. Raise UserError if the text is not a key."""
        match = _KEY.fullmatch(text.strip("/"))
        if match is None or match[3] not in MODES:
            raise UserError(
                f"run {text!r}: not a run key; write env/method/mode-demosK-rateN/seedS, "
                f"with mode one of {', '.join(MODES)} and numbers of at most {DIGITS} digits"
            )
        env, method, mode = match.groups()[:3]
        demos, rate, seed = map(int, match.groups()[3:])
        if demos < 1 or rate < 1:
            raise UserError(f"run {text!r}: demos and rate must be at least 1")
        return RunKey(env, method, cast(Mode, mode), rate, demos, seed)


@dataclass(frozen=True)
class Layout:
    """The paths of the results at a scale, i.e. with a preset config.

    A study, i.e. a user's own comparison of methods, has a separate folder with the study's name.
    """

    scale: str
    root: Path = Path("results")
    records: Path | None = None  # file of published records, if it is not in `home`
    study: str = ""

    @staticmethod
    def of(config: Config, root: Path = root) -> Layout:
        """Return the paths of a config's results."""
        return Layout(config.scale, root, study=config.study)

    @property
    def home(self) -> Path:
        """Return the folder that holds figures, tables and one folder per scale.

        This is the root or, in a study, the study's folder.
        """
        return self.root / self.study

    @property
    def work(self) -> Path:
        """Return the scale's folder, with its runs, experts, demonstrations and settings."""
        return self.home / self.scale

    @property
    def runs(self) -> Path:
        """Return the folder that holds the scale's runs."""
        return self.work / "runs"

    def run(self, key: RunKey) -> Path:
        """Return the folder of a run."""
        return self.runs / str(key)

    @property
    def experts(self) -> Path:
        """Return the folder that holds the scale's experts."""
        return self.work / "experts"

    def expert(self, env: str) -> Path:
        """Return the folder of an env's expert, which holds the same files as a run's folder."""
        return self.experts / env

    def settings(self, config: Config) -> Path:
        """Return the file with the complete settings, which the workflow's jobs read."""
        return self.work / "settings" / f"{config_hash(config)}.json"

    @property
    def published(self) -> Path:
        """Return the file of published records.

        The manifest has the same path, except that it ends in .json.
        """
        return self.records or self.home / "published" / f"{self.scale}.parquet"

    def demos(self, env: str) -> Path:
        """Return the file of an env's recorded demonstrations."""
        return self.work / "demos" / f"{env}.npz"


def run_table(
    config: Config, figures: Iterable[str] | None = None, *, beside: bool = False
) -> list[RunKey]:
    """Return the keys of all runs that figures and tables request, sorted and without duplicates.

    figures: names of figures and tables, or None for every run of the config.
    beside: True to include the runs that the figures and tables show only for comparison.
    """
    names, beside = (list(config.figures), True) if figures is None else (list(figures), beside)
    keys = set()
    for name in names:
        f = config.figures[name]
        for method in (*f.methods, *f.beside) if beside else f.methods:
            rate = method_rate(config, method)
            rates = f.rates if rate is None else (rate,)
            axes = itertools.product(f.envs_of(method), [method], f.modes, rates, f.demos, f.seeds)
            keys |= set(itertools.starmap(RunKey, axes))
    return sorted(keys)


def packs(
    keys: Sequence[RunKey], size: int, apart: Callable[[RunKey], Hashable] | None = None
) -> list[tuple[RunKey, ...]]:
    """Group the distinct keys into packs of at most `size` runs. The runs of a pack train together.

    The keys of a pack have the same cell and, if `apart` is given, the same value of `apart(key)`.
    For the workflow, workflow/plan.py chooses `size` and `apart`.
    """
    groups: dict[Hashable, list[RunKey]] = {}
    for key in sorted(set(keys)):
        groups.setdefault((key.cell, apart and apart(key)), []).append(key)
    return [
        tuple(members[i : i + size])
        for members in groups.values()
        for i in range(0, len(members), size)
    ]


def pack_name(pack: Sequence[RunKey]) -> str:
    """Return a pack's name, which lists the seeds for each number of demonstrations.

    `1.0-3_4.0,2` means one demonstration with seeds 0 to 3, and four demonstrations with seeds 0
    and 2.
    """
    seeds: dict[int, list[int]] = {}
    for key in sorted(pack):
        seeds.setdefault(key.demos, []).append(key.seed)
    return "_".join(f"{demos}.{_ranges(values)}" for demos, values in seeds.items())


def parse_pack(cell: tuple[str, str, Mode, int], name: str) -> list[RunKey]:
    """Return the keys of a pack, given its cell and its name from `pack_name`."""
    env, method, mode, rate = cell
    keys = []
    for group in name.split("_"):
        demos, _, seeds = group.partition(".")
        for part in seeds.split(","):
            first, _, last = part.partition("-")
            keys += [
                RunKey(env, method, mode, rate, int(demos), seed)
                for seed in range(int(first), int(last or first) + 1)
            ]
    return keys


def _ranges(values: Sequence[int]) -> str:
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges(values))


def resolve_key(config: Config, key: RunKey) -> CellConfig:
    """Return a run's complete settings, which are the same for all runs with the run's cell."""
    rate = method_rate(config, key.method)
    if rate is not None and rate != key.rate:
        raise UserError(f"run {key}: method {key.method} has rate {rate}; write rate{rate}")
    check_rate(key.rate, key.env, f"run {key}")
    return resolve(config, *key.cell)

"""Run keys, the run table, packs, and every path under results/.

A run is named by what it is: no time, no host, no hyper-parameter in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from ngt.errors import UserError
from ngt.runs.state import named_by
from ngt.settings.config import MODES, CellConfig, Config, Mode
from ngt.settings.resolve import config_hash, method_rate, resolve

_CELL = re.compile(r"(?P<mode>.+)-demos(?P<demos>\d+)-rate(?P<rate>\d+)")


@dataclass(frozen=True, order=True)
class RunKey:
    """What a run is; its text form is its folder: env/method/mode-demosK-rateN/seedS."""

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
        """The key as run.json shows it."""
        return {"run": str(self), **asdict(self)}

    @property
    def cell(self) -> tuple[str, str, Mode, int]:
        """What the runs of a pack share."""
        return (self.env, self.method, self.mode, self.rate)

    @staticmethod
    def parse(text: str) -> RunKey:
        """The key that `str` wrote."""
        parts = text.strip("/").split("/")
        match = _CELL.fullmatch(parts[2]) if len(parts) == 4 else None
        seed = re.fullmatch(r"seed(\d+)", parts[3]) if len(parts) == 4 else None
        if match is None or seed is None or match["mode"] not in MODES:
            raise UserError(
                f"run {text!r}: not a run key; write env/method/mode-demosK-rateN/seedS, "
                f"mode one of {', '.join(MODES)}"
            )
        demos, rate = int(match["demos"]), int(match["rate"])
        if demos < 1 or rate < 1:
            raise UserError(f"run {text!r}: demos and rate must be at least 1")
        return RunKey(parts[0], parts[1], cast(Mode, match["mode"]), rate, demos, int(seed[1]))


@dataclass(frozen=True)
class Layout:
    """Where things lie."""

    scale: str
    root: Path = Path("results")
    records: Path | None = None  # published records elsewhere than under root

    @property
    def runs(self) -> Path:
        """Folder of all runs of the scale."""
        return self.root / self.scale / "runs"

    def run(self, key: RunKey) -> Path:
        """Folder of a run."""
        return self.runs / str(key)

    def expert(self, env: str) -> Path:
        """Folder of an env's expert: the same files as a run's."""
        return self.root / self.scale / "experts" / env

    def settings(self, config: Config) -> Path:
        """The file of the complete settings that jobs of the workflow read."""
        return self.root / self.scale / "settings" / f"{config_hash(config)}.json"

    @property
    def published(self) -> Path:
        """The records of the scale that ship; its manifest beside it, ending in .json."""
        return self.records or self.root / "published" / f"{self.scale}.parquet"

    def demos(self, env: str) -> Path:
        """An env's recorded demonstrations and its random and expert references."""
        return self.root / self.scale / "demos" / f"{env}.npz"


def run_table(
    config: Config, figures: Iterable[str] | None = None, *, beside: bool = False
) -> list[RunKey]:
    """Every run that the given artefacts count, once, sorted.

    beside: with the runs that they draw for comparison. No figures: every run of the config.
    """
    names, beside = (list(config.figures), True) if figures is None else (list(figures), beside)
    keys = set()
    for name in names:
        f = config.figures[name]
        for method in (*f.methods, *f.beside) if beside else f.methods:
            rate = method_rate(config, method)
            rates = f.rates if rate is None else (rate,)
            keys |= {
                RunKey(env, method, mode, r, demos, seed)
                for env in f.envs for mode in f.modes for r in rates
                for demos in f.demos for seed in f.seeds
            }  # fmt: skip
    return sorted(keys)


def packs(
    keys: Sequence[RunKey], size: int, apart: Callable[[RunKey], Hashable] | None = None
) -> list[tuple[RunKey, ...]]:
    """Keys, each once, in packs of at most `size` that share a cell, and `apart` where given."""
    groups: dict[Hashable, list[RunKey]] = {}
    for key in sorted(set(keys)):
        groups.setdefault((key.cell, apart and apart(key)), []).append(key)
    return [
        tuple(members[i : i + size])
        for members in groups.values()
        for i in range(0, len(members), size)
    ]


def pack_name(pack: Sequence[RunKey]) -> str:
    """The members of a pack within its cell, as text.

    `1.0-3_4.0,2` is one demonstration with seeds 0 to 3 and four with seeds 0 and 2.
    """
    seeds: dict[int, list[int]] = {}
    for key in sorted(pack):
        seeds.setdefault(key.demos, []).append(key.seed)
    return "_".join(f"{demos}.{_ranges(values)}" for demos, values in seeds.items())


def parse_pack(cell: tuple[str, str, Mode, int], name: str) -> list[RunKey]:
    """The keys that `pack_name` wrote."""
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
    groups: list[list[int]] = []
    for value in values:
        if groups and value == groups[-1][1] + 1:
            groups[-1][1] = value
        else:
            groups.append([value, value])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in groups)


def run_hash(config: Config, key: RunKey) -> str:
    """Names a run and its settings: what a receipt of the workflow carries."""
    return named_by(str(key), config_hash(resolve_key(config, key)))


def resolve_key(config: Config, key: RunKey) -> CellConfig:
    """The complete settings of a run's cell."""
    rate = method_rate(config, key.method)
    if rate is not None and rate != key.rate:
        raise UserError(f"run {key}: method {key.method} has rate {rate}; write rate{rate}")
    return resolve(config, *key.cell)

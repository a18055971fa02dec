"""What a scale lacks: runs to train, the packs to train them in, and files that are outdated.

Every answer follows from the config and from the content of the files at hand. Time stamps and
Snakemake's own memory decide nothing. The rules ask a `Plan`, which does without Snakemake.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.experience.envs import TASKS, check_registered
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout, RunKey, pack_name, packs, parse_pack, run_table
from ngt.runs.published import Published
from ngt.runs.receipt import receipt_hash
from ngt.runs.ship import is_of
from ngt.runs.status import COMPLETE
from ngt.settings.config import MODES, Config, Mode
from ngt.settings.load import load, read_yaml, to_file
from ngt.settings.resolve import (
    config_hash,
    demos_file,
    expert_config,
    expert_ships,
    own_file,
    resolve,
    resolve_expert,
)
from paper.document import latex
from paper.drawing import labels
from paper.drawing.stamps import carries, parts, stamp
from paper.register import FIGURES, PAPER, REPORT, SPEED, TABLES, at_scale
from workflow.resources import Job, Site, pack_size, recording, site_of, training

ARTEFACTS = {**FIGURES, **TABLES, REPORT.name: REPORT, PAPER.name: PAPER}
# The files of an artefact that carry the hash of what it was drawn from.
STAMPED = {
    **dict.fromkeys(FIGURES, ("pdf", "png")),
    **dict.fromkeys(TABLES, ("json",)),
    REPORT.name: ("html",),
    PAPER.name: ("pdf",),
}
PICTURE = {REPORT.name: "png", PAPER.name: "pdf"}  # the form in which each shows the figures


class Inputs(NamedTuple):
    """The input files of a job, and the files to make again even if they exist."""

    files: list[str]
    outdated: list[str]


class Plan:
    """What exists at a scale and what has to be made.

    A complete run with its receipt is a source file to the workflow: no rule makes it, so nothing
    can train it again or delete it, whatever the pack size.

    Args:
        main: False in the process of a single job, which looks at no run.
    """

    def __init__(self, config: Config, layout: Layout, site: Site, *, main: bool = True) -> None:
        self.config, self.layout, self.site, self.main = config, layout, site, main
        self.work = f"{layout.root}/{layout.scale}"
        self.settings_file = str(layout.settings(config))
        self.settings_text = to_file(config)
        self.folders = Folders(layout, config)
        self.records = (
            Published(layout.published, config) if config.records == "published" else None
        )
        self.expert_hash = {env: config_hash(resolve_expert(config, env)) for env in TASKS}
        # An env without demonstrations stops only what needs it.
        self.runs = [key for key in run_table(config) if main and self._has_demos(key.env)]
        self.missing = [k for k in self.runs if self.folders.status(k).status not in COMPLETE]
        self.packs = self._packs()
        self.pack_of = {key: pack for pack in self.packs for key in pack}
        self.has_expert, self.has_recording = cache(self._has_expert), cache(self._has_recording)
        self.job = cache(self._job)

    def _packs(self) -> list[tuple[RunKey, ...]]:
        """Group the missing runs into packs as large as the site allows.

        The runs of a pack belong to the same artefacts, so that asking for one artefact trains no
        run of another. A timed run is alone, or its speed would be another's too.
        """
        counted = {name: set(run_table(self.config, [name])) for name in self.config.figures}

        def apart(key: RunKey) -> tuple[object, ...]:
            timed = key in counted.get(SPEED, ())
            return (*(key in own for own in counted.values()), key if timed else None)

        found = []
        for cell, keys in groupby(self.missing, lambda key: key.cell):
            size = pack_size(resolve(self.config, *cell), self.config.pack, self.site)
            found += packs(list(keys), size, apart=apart)
        return found

    def names(self) -> dict[str, Iterable[str]]:
        """Return every value that a wildcard of the rules may take."""
        return {
            "env": TASKS,
            "method": self.config.methods,
            "mode": MODES,
            "figure": FIGURES,
            "table": TABLES,
        }

    # ---------------------------------------------------------------- receipts

    def run_hash(self, key: RunKey) -> str:
        """Return the hash that names a run and the settings that it must have."""
        return receipt_hash(str(key), self.folders.hashes(key)[0])

    def run_receipt(self, key: RunKey) -> str:
        """Return the receipt of a run."""
        return f"{self.layout.run(key)}/done.{self.run_hash(key)}"

    def expert_receipt(self, env: str) -> str:
        """Return the receipt of an env's expert."""
        return f"{self.layout.expert(env)}/done.{self.expert_hash[env]}"

    def recording_receipt(self, env: str) -> str:
        """Return the receipt of an env's recorded demonstrations."""
        return f"{self.layout.demos(env).with_suffix('')}.done.{self.expert_hash[env]}"

    def run_hashes(self) -> list[str]:
        """Return the hashes of the run receipts that a rule may write."""
        return [
            self.run_hash(key)
            for key in self.runs
            if key in self.pack_of or not os.path.exists(self.run_receipt(key))
        ]

    def expert_hashes(self) -> list[str]:
        """Return the hashes of the expert receipts that a rule may write."""
        return self._hashes(self.expert_receipt, self.has_expert)

    def recording_hashes(self) -> list[str]:
        """Return the hashes of the recording receipts that a rule may write."""
        return self._hashes(self.recording_receipt, self.has_recording)

    def _hashes(self, receipt: Callable[[str], str], complete: Callable[[str], bool]) -> list[str]:
        """Return the hashes of missing receipts, and of those whose content is not complete.

        Only the experts that something may ask for are examined.
        """
        used = {*self.unshipped(), *(key.env for key in self.missing)}
        return [
            hash
            for env, hash in self.expert_hash.items()
            if not os.path.exists(receipt(env)) or (env in used and not complete(env))
        ]

    def unshipped(self) -> list[str]:
        """Return the envs whose expert is meant to ship and does not, with these settings."""
        return [
            env
            for env in TASKS
            if TASKS[env].aim is not None and not expert_ships(self.config, env)
        ]

    def shipping_receipts(self) -> list[str]:
        """Return the receipts of the experts that have yet to ship."""
        return [
            f"{self.work}/shipped/{env}.done.{self.expert_hash[env]}" for env in self.unshipped()
        ]

    # ---------------------------------------------------------------- inputs of rules

    def settings(self) -> Inputs:
        """Return the settings' file; it is outdated if it was cut or changed."""
        file = Path(self.settings_file)
        intact = (
            not file.exists()
            or file.read_text(encoding="utf-8", errors="replace") == self.settings_text
        )
        return Inputs([str(file)], [] if intact else [str(file)])

    def run(self, name: str) -> Inputs:
        """Return the receipt of the pack that trains a run; nothing if only its own is missing."""
        key = RunKey.parse(name)
        receipt = self.run_receipt(key)
        if key not in self.pack_of:
            return Inputs([], [receipt])
        env, method, mode, rate = key.cell
        pack = f"{self.work}/packs/{env}/{method}/{mode}-rate{rate}/{pack_name(self.pack_of[key])}"
        return Inputs([f"{pack}.done"], [receipt, f"{pack}.done", f"{pack}.outcome"])

    def expert(self, env: str) -> Inputs:
        """Return the outcome of training an expert; nothing if it is complete."""
        return self._made("expert", env, self.has_expert(env), self.expert_receipt(env))

    def recording(self, env: str) -> Inputs:
        """Return the outcome of recording an expert; nothing if its recording is intact."""
        return self._made("record", env, self.has_recording(env), self.recording_receipt(env))

    def _made(self, job: str, env: str, complete: bool, receipt: str) -> Inputs:
        """Return the outcome of a job on an env's expert; nothing if its result is complete."""
        outcome = f"{self.work}/packs/{env}/{job}/{self.expert_hash[env]}.outcome"
        return Inputs([], []) if complete else Inputs([outcome], [receipt, outcome])

    def demos(self, env: str) -> str:
        """Return an env's demonstrations: their own file, or the receipt of a recording."""
        file = demos_file(self.config, env)
        return _as_input(file) if file else self.recording_receipt(env)

    def artefact(self, name: str) -> Inputs:
        """Return what stands for the runs and experts of an artefact.

        Its files are outdated if they were drawn from anything else than what exists now.
        """
        artefact, root = ARTEFACTS[name], self.layout.root
        if artefact is PAPER and (reason := latex.lacking()):
            raise UserError(f"{root}/{name}.pdf: {reason}")
        own = [f"{root}/{name}.{ending}" for ending in STAMPED[name]]
        text = stamp(self.config, self.layout, artefact, PICTURE.get(name, ""))
        intact = all(carries(Path(file), text) for file in own)
        runs, envs = artefact.keys(self.config), artefact.experts_of(self.config)
        files = [file for file in artefact.files if Path(file).exists()]
        if self.records is None:
            files += [self.run_receipt(key) for key in runs] + [self._expert_of(e) for e in envs]
        else:
            self.records.check(runs, envs)
            table = self.layout.published
            files += [str(table), str(table.with_suffix(".json"))] * bool(
                artefact.shown(self.config)
            )
        return Inputs(files, [] if intact else own)

    def parts(self, picture: str) -> list[str]:
        """Return the files of every figure and table that a report shows; picture: their form."""
        return [str(file) for file in parts(self.config, self.layout, picture)]

    def everything(self) -> list[str]:
        """Return every figure and table of the scale, the report, and the paper if LaTeX exists."""
        readings = [f"{REPORT.name}.html", *([] if latex.lacking() else [f"{PAPER.name}.pdf"])]
        return [f"{self.layout.root}/{name}" for name in (*at_scale(self.config), *readings)]

    # ---------------------------------------------------------------- what jobs ask

    def members(self, env: str, method: str, mode: Mode, rate: str, members: str) -> list[str]:
        """Return the runs of a pack, from the parts of its path."""
        return [str(key) for key in parse_pack((env, method, mode, int(rate)), members)]

    def pack_job(self, env: str, method: str, mode: Mode, rate: str, members: str) -> Job:
        """Return what training a pack asks."""
        runs = len(self.members(env, method, mode, rate, members))
        return self.job(runs, env, method, mode, int(rate))

    def expert_job(self, env: str, **_: str) -> Job:
        """Return what training an expert asks."""
        return self.job(1, env)

    def record_job(self, env: str, **_: str) -> Job:
        """Return what recording an expert asks."""
        return recording(env, expert_config(self.config, env).episodes, self.site)

    def retries(self) -> int:
        """Return how often a training may be tried again.

        A job that fails resumes from its checkpoint. So does one that is stopped because its time
        is up, as often as the longest training needs. A job on a cluster leaves it to this process.
        """
        jobs = [self.job(len(pack), *pack[0].cell) for pack in self.packs]
        jobs += [self.job(1, env) for env in {key.env for key in self.missing}]
        return 2 + max((job.parts for job in jobs), default=1) if self.main else 0

    # ---------------------------------------------------------------- helpers

    def _has_demos(self, env: str) -> bool:
        """Return True if an env's demonstrations exist or can be made: not every expert ships."""
        own = bool(own_file(self.config, env))
        return self.config.demos == "trained" or own or shipped.ships(env)

    def _has_expert(self, env: str) -> bool:
        """Return True if an env's expert is complete."""
        return not self.main or self.folders.expert_status(env).status in COMPLETE

    def _has_recording(self, env: str) -> bool:
        """Return True if an env's recording is intact, and of its expert if that is complete."""
        if not self.main:
            return True
        policy = self.layout.expert(env) / shipped.POLICY if self.has_expert(env) else None
        return is_of(self.layout.demos(env), env, self.expert_hash[env], policy)

    def _expert_of(self, env: str) -> str:
        """Return what stands for an env's expert: its record that ships, or its receipt."""
        if self.config.demos == "trained":
            return self.expert_receipt(env)
        shipped.read(env)
        return _as_input(str(shipped.DATA / env / shipped.EXPERT))

    def _job(self, runs: int, env: str, *cell: Any) -> Job:
        """Return what training runs of a cell asks, or an env's expert if no cell is given."""
        settings = resolve(self.config, env, *cell) if cell else resolve_expert(self.config, env)
        return training(settings, runs, self.site)


def _as_input(file: str) -> str:
    """Return a file's path as a rule's input, in which Snakemake would fill braces."""
    path = os.path.relpath(file)
    if set(path) & set("{}"):
        raise UserError(f"{path}: its name has braces, which Snakemake would fill; rename it")
    return path


def read(user: Mapping[str, Any], files: Iterable[Path] = (), *, main: bool = True) -> Plan:
    """Return the plan of a user's own differences, checked before any job starts.

    Args:
        user: the differences, with the section `cluster`.
        files: the files that they come from; Snakemake would keep the last of two equal keys.
        main: as for `Plan`.
    """
    for file in files:
        read_yaml(file)
    site = site_of(user)
    config = load({key: value for key, value in user.items() if key != "cluster"})
    labels.check(config)
    if main:
        check_registered(env for figure in config.figures.values() for env in figure.envs)
    return Plan(config, Layout(config.scale), site, main=main)

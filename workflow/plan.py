"""The plan for a scale: the missing runs, the packs in which they are trained, and outdated files.

A pack is a group of runs that one job trains together. The plan depends on the config and on the
content of existing files, but not on time stamps or on Snakemake's records of earlier jobs. The
workflow's rules query a `Plan`, and this module does not import Snakemake.
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
from ngt.runs.former import FORMER
from ngt.runs.keys import Layout, RunKey, pack_name, packs, parse_pack, run_table
from ngt.runs.published import Published
from ngt.runs.status import COMPLETE
from ngt.settings.config import MODES, Config, Mode
from ngt.settings.load import load, read_yaml, to_file
from ngt.settings.resolve import (
    demos_file,
    expert_config,
    expert_ships,
    resolve,
    resolve_expert,
)
from paper.document import latex
from paper.drawing import labels
from paper.drawing.stamps import carries, check_drawable, drawable, parts, stamp
from paper.numbers.statistics import reference
from paper.register import FIGURES, PAPER, REPORT, SPEED, TABLES
from workflow.resources import Job, Site, pack_size, recording, site_of, training
from workflow.results import Results

ARTEFACTS = {**FIGURES, **TABLES, REPORT.name: REPORT, PAPER.name: PAPER}
# For each artefact (a figure, a table, the report or the paper), the suffixes of those files of the
# artefact that contain the hash of the artefact's inputs.
STAMPED = {
    **dict.fromkeys(FIGURES, ("pdf", "png")),
    **dict.fromkeys(TABLES, ("json",)),
    REPORT.name: ("html",),
    PAPER.name: ("pdf",),
}
PICTURE = {REPORT.name: "png", PAPER.name: "pdf"}  # file format of figures


class Inputs(NamedTuple):
    """The input files of a job, and the outdated files, which are remade although they exist."""

    files: list[str]
    outdated: list[str]


class Plan(Results):
    """A scale's existing and missing results.

    A receipt is an empty file that marks a run, an expert or a recording as complete. If a complete
    run has a receipt, no rule can make this receipt, and Snakemake treats it as a source file. The
    workflow can therefore neither retrain nor delete such a run, whatever the pack size.

    Args:
        main: False in the process of a single job, where the runs are not examined.
    """

    def __init__(self, config: Config, layout: Layout, site: Site, *, main: bool = True) -> None:
        super().__init__(config, layout, main=main)
        self.site = site
        self.settings_file = str(layout.settings(config))
        self.settings_text = to_file(config)
        self.records = (
            Published(layout.published, config) if config.records == "published" else None
        )
        # Runs on an env without demonstrations are left out, so that only targets that need these
        # runs fail.
        self.runs = [key for key in run_table(config) if main and self.has_demos(key.env)]
        self.statuses = {key: self.folders.status(key).status for key in self.runs}
        unfinished = [key for key in self.runs if self.statuses[key] not in COMPLETE]
        self.returning = {key for key in unfinished if self.folders.former(key)}
        self.missing = [key for key in unfinished if key not in self.returning]
        self.packs = self._packs()
        self.pack_of = {key: pack for pack in self.packs for key in pack}
        self.job = cache(self._job)

    def _packs(self) -> list[tuple[RunKey, ...]]:
        """Group the missing runs into packs as large as the cluster's limits allow.

        All runs of a pack belong to the same entries of `figures`, so that a target trains only the
        runs that it needs. A run whose speed is reported forms a pack of its own, so that no other
        run affects this speed.
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
        """Return the values that each wildcard of the rules may take."""
        return {
            "env": TASKS,
            "method": self.config.methods,
            "mode": MODES,
            "figure": FIGURES,
            "table": TABLES,
        }

    def moves(self) -> list[str]:
        """Return sentences that state how many results will move to or from `former/`."""
        former, moves = f"{self.work}/{FORMER}", []
        if replaced := sum(self.statuses[key] in ("stale", "damaged") for key in self.missing):
            moves.append(
                f"runs with other settings, or damaged: {replaced}; training them again moves "
                f"their results to {former}"
            )
        if returning := len(self.returning):
            moves.append(f"runs that come back from {former} without training: {returning}")
        return [] if self.records else moves

    def check_targets(self, words: Iterable[str]) -> None:
        """Check that no word of the Snakemake command names an artefact outside the study's folder.

        Otherwise, if such a file exists, Snakemake takes it for a source file and does nothing.
        """
        for file in map(Path, words) if self.config.study else ():
            if file.parent == self.layout.root and file.stem in ARTEFACTS:
                raise UserError(
                    f"{file}: not of study {self.config.study}; request {self.home}/{file.name}"
                )

    # ---------------------------------------------------------------- receipts

    def run_hashes(self) -> list[str]:
        """Return the hashes in the names of the run receipts that a rule may write."""
        return [
            self.run_hash(key)
            for key in self.runs
            if key in self.pack_of
            or key in self.returning
            or not os.path.exists(self.run_receipt(key))
        ]

    def expert_hashes(self) -> list[str]:
        """Return the hashes in the names of the expert receipts that a rule may write."""
        return self._hashes(self.expert_receipt, self.expert_in_place)

    def recording_hashes(self) -> list[str]:
        """Return the hashes in the names of the recording receipts that a rule may write."""
        return self._hashes(self.recording_receipt, self.has_recording)

    def _hashes(self, receipt: Callable[[str], str], complete: Callable[[str], bool]) -> list[str]:
        """Return the hashes of experts whose receipts are missing or results are incomplete."""
        used = self._requested_experts()
        return [
            hash
            for env, hash in self.expert_hash.items()
            if not os.path.exists(receipt(env)) or (env in used and not complete(env))
        ]

    def _requested_experts(self) -> set[str]:
        """Return the envs whose experts a target can request."""
        return {*self.unshipped(), *(key.env for key in self.missing)}

    def unshipped(self) -> list[str]:
        """Return the envs that should have an expert with these settings in data/ but lack one."""
        return [
            env
            for env in TASKS
            if TASKS[env].aim is not None and not expert_ships(self.config, env)
        ]

    def shipping(self) -> Inputs:
        """Return the receipts of the experts in `unshipped`, which are outdated if they exist."""
        home = f"{self.work}/shipped"
        receipts = [f"{home}/{env}.done.{self.expert_hash[env]}" for env in self.unshipped()]
        return Inputs(receipts, [*receipts, f"{home}/page.done"] if receipts else [])

    # ---------------------------------------------------------------- inputs of rules

    def settings(self) -> Inputs:
        """Return the settings file, which is outdated if its text was truncated or changed."""
        file = Path(self.settings_file)
        intact = (
            not file.exists()
            or file.read_text(encoding="utf-8", errors="replace") == self.settings_text
        )
        return Inputs([str(file)], [] if intact else [str(file)])

    def run(self, name: str) -> Inputs:
        """Return the input of the rule that writes a run's receipt: the receipt of the run's pack.

        There is no input if the run is complete and only its receipt is missing, or if the rule
        itself restores a former result, i.e. an earlier result that was moved to a separate folder.
        """
        key = RunKey.parse(name)
        receipt = self.run_receipt(key)
        if key not in self.pack_of:
            return Inputs([], [receipt])
        env, method, mode, rate = key.cell
        pack = f"{self.work}/packs/{env}/{method}/{mode}-rate{rate}/{pack_name(self.pack_of[key])}"
        return Inputs([f"{pack}.done"], [receipt, f"{pack}.done", f"{pack}.outcome"])

    def expert(self, env: str) -> Inputs:
        """Return the outcome file of an expert's training, or no input if the expert is complete.

        If a former result is restored, there is no input either, and only the receipt is outdated.
        """
        receipt = self.expert_receipt(env)
        if self.expert_folder(env) and not self.expert_in_place(env):
            return Inputs([], [receipt])
        return self._made("expert", env, self.expert_in_place(env), receipt)

    def recording(self, env: str) -> Inputs:
        """Return the outcome file of an env's recording, or no input if the recording is intact."""
        return self._made("record", env, self.has_recording(env), self.recording_receipt(env))

    def _made(self, job: str, env: str, complete: bool, receipt: str) -> Inputs:
        """Return the outcome file of a job, or no input if the job's result is complete.

        `job` is "expert" (training an env's expert) or "record" (recording that expert).
        """
        outcome = f"{self.work}/packs/{env}/{job}/{self.expert_hash[env]}.outcome"
        return Inputs([], []) if complete else Inputs([outcome], [receipt, outcome])

    def demos(self, env: str, runs: Iterable[str] = ()) -> str:
        """Return an env's demonstration file if the config names it, or the recording's receipt."""
        self.check_demos(map(RunKey.parse, runs))
        file = demos_file(self.config, env)
        return _as_input(file) if file else self.recording_receipt(env)

    def artefact(self, name: str) -> Inputs:
        """Return the input files that represent the runs and experts in an artefact.

        The artefact's own files are outdated if they were drawn from different inputs.
        """
        artefact, home = ARTEFACTS[name], self.home
        if artefact is PAPER and (reason := latex.lacking()):
            raise UserError(f"{home}/{name}.pdf: {reason}")
        own = [f"{home}/{name}.{ending}" for ending in STAMPED[name]]
        artefact.check(self.config)
        text = stamp(self.config, self.layout, artefact, PICTURE.get(name, ""))
        intact = all(carries(Path(file), text) for file in own)
        runs, envs = artefact.keys(self.config), artefact.experts_of(self.config)
        files = [file for file in artefact.files if Path(file).exists()]
        if self.records is None:
            files += [self.run_receipt(key) for key in runs] + [self._expert_of(e) for e in envs]
        else:
            self.records.check(runs, envs)
            check_drawable(self.config, self.layout, artefact)
            table = self.layout.published
            both = [str(table), str(table.with_suffix(".json"))]
            files += both if artefact.shown(self.config) else []
        return Inputs(files, [] if intact else own)

    def parts(self, picture: str) -> list[str]:
        """Return the files of all figures and tables in the report or the paper.

        picture: the file format of figures.
        """
        return [str(file) for file in parts(self.config, self.layout, picture)]

    def everything(self) -> list[str]:
        """Return the files of all figures and tables, the report, and the paper if LaTeX exists."""
        readings = [f"{REPORT.name}.html", *([] if latex.lacking() else [f"{PAPER.name}.pdf"])]
        own = [artefact.file for artefact in drawable(self.config, self.layout)]
        return [f"{self.home}/{name}" for name in (*own, *readings)]

    # ---------------------------------------------------------------- resources of jobs

    def members(self, env: str, method: str, mode: Mode, rate: str, members: str) -> list[str]:
        """Return the keys of the runs in a pack, given the parts of the pack's path."""
        return [str(key) for key in parse_pack((env, method, mode, int(rate)), members)]

    def pack_job(self, env: str, method: str, mode: Mode, rate: str, members: str) -> Job:
        """Return the resources for training a pack, given the parts of the pack's path."""
        runs = len(self.members(env, method, mode, rate, members))
        return self.job(runs, env, method, mode, int(rate))

    def expert_job(self, env: str, **_: str) -> Job:
        """Return the resources for training an expert."""
        return self.job(1, env)

    def record_job(self, env: str, **_: str) -> Job:
        """Return the resources for recording episodes of an expert and of a random policy."""
        return recording(env, expert_config(self.config, env).episodes, self.site)

    def retries(self) -> int:
        """Return how often a training job may be retried, or 0 in the process of a single job.

        A retried job resumes from its checkpoint. The number allows for three failures, and for a
        retry whenever the longest training reaches a job's time limit.
        """
        jobs = [self.job(len(pack), *pack[0].cell) for pack in self.packs]
        jobs += [self.job(1, env) for env in self._requested_experts()]
        return 2 + max((job.parts for job in jobs), default=1) if self.main else 0

    # ---------------------------------------------------------------- helpers

    def _expert_of(self, env: str) -> str:
        """Return the file that represents an env's expert: its record in data/ or its receipt."""
        if self.config.demos == "trained":
            return self.expert_receipt(env)
        shipped.read(env)
        return _as_input(str(shipped.DATA / env / shipped.EXPERT))

    def _job(self, runs: int, env: str, *cell: Any) -> Job:
        """Return the resources for training runs of a cell or, without it, an env's expert."""
        settings = resolve(self.config, env, *cell) if cell else resolve_expert(self.config, env)
        return training(settings, runs, self.site)


def _as_input(file: str) -> str:
    """Return a file's path, relative to the working folder, for use as a rule's input.

    Raise UserError if the path contains braces, which Snakemake would interpret.
    """
    path = os.path.relpath(file)
    if set(path) & set("{}"):
        raise UserError(f"{path}: the path has braces, which Snakemake would fill; rename it")
    return path


def read(user: Mapping[str, Any], files: Iterable[Path] = ()) -> Plan:
    """Check a user's settings and return the plan for them.

    Args:
        user: the user's settings, including the `cluster` section.
        files: the config files that contain these settings. They are read again to report duplicate
            keys, since Snakemake silently keeps only the last duplicate.
    """
    for file in files:
        read_yaml(file)
    site = site_of(user)
    config = load({key: value for key, value in user.items() if key != "cluster"})
    labels.check(config)
    reference(config)  # raises UserError if the main figure lacks the reference method
    check_registered(env for figure in config.figures.values() for env in figure.envs)
    return Plan(config, Layout.of(config), site)

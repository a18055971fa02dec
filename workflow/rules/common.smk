# The config, the run table and the functions that rules share.

import os
import re
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, workflow.basedir)  # the checkout's own packages, installed or not

from ngt.settings.config import MODES
from ngt.settings.load import load, read_yaml, to_file
from ngt.settings.resolve import config_hash, demos_file, expert_ships, own_file, resolve, resolve_expert
from ngt.experience.envs import TASKS, check_registered
from ngt.errors import UserError
from ngt.runs.folder import Folders
from ngt.runs.published import Published
from ngt.runs.keys import Layout, RunKey, pack_name, packs, parse_pack, run_table
from ngt.runs.ship import is_of
from ngt.experience.shipped import DATA, EXPERT, read, ships
from ngt.runs.receipt import receipt_hash
from ngt.runs.status import COMPLETE
from paper.drawing import labels
from paper.document import latex
from paper.register import FIGURES, PAPER, REPORT, TABLES, at_scale
from paper.drawing.stamps import carries, stamp
from workflow.resources import pack_size, site_of


# Snakemake fills the braces in a rule's paths, and a checkout's own path may have some.
ENVIRONMENT = f"{workflow.basedir}/environment.yml".replace("{", "{{").replace("}", "}}")


def stop(message):
    """A user's mistake is one line; Snakemake lets this through from an input function too."""
    print(f"snakemake: error: {message}", file=sys.stderr)
    sys.exit(2)


def or_stop(function, *args):
    """What a function of the package returns."""
    try:
        return function(*args)
    except UserError as error:
        stop(error)


try:
    for file in workflow.config_settings.configfiles:
        read_yaml(Path(file))  # Snakemake keeps the last of two equal keys and says nothing
    # `config` holds the user's own differences: --config, --configfile
    SITE = site_of(config)
    CONFIG = load({key: value for key, value in config.items() if key != "cluster"})
    labels.check(CONFIG)
    LAYOUT = Layout(CONFIG.scale)
    PUBLISHED = [LAYOUT.published, LAYOUT.published.with_suffix(".json")]
    if CONFIG.records == "published":
        RECORDS = Published(LAYOUT.published, CONFIG)  # complete and whole, or one line
    if workflow.is_main_process:
        check_registered(env for figure in CONFIG.figures.values() for env in figure.envs)
except UserError as error:
    hint = " (--config reads nested values as text: use --configfile)" if config else ""
    stop(f"{error}{hint if 'found text' in str(error) else ''}")

READINGS = [f"{REPORT.name}.html"] + ([] if latex.lacking() else ["paper.pdf"])
WORK = f"results/{CONFIG.scale}"
SETTINGS = str(LAYOUT.settings(CONFIG))
# The files of an artefact that carry what it was drawn from.
ENDINGS = {"figure": ["pdf", "png"], "table": ["json"], REPORT.name: ["html"], PAPER.name: ["pdf"]}
PICTURE = {REPORT.name: "png", PAPER.name: "pdf"}  # what they show figures as


def as_input(file):
    """A file's path for a rule's input, in which Snakemake would fill any braces."""
    path = os.path.relpath(file)
    if set(path) & set("{}"):
        stop(f"{path}: its name has braces, which Snakemake would fill; rename it")
    return path


def has_demos(env):
    """Whether an env's demonstrations are there or can be made: not every expert need ship."""
    return CONFIG.demos == "trained" or bool(own_file(CONFIG, env)) or ships(env)


FOLDERS = Folders(LAYOUT, CONFIG)


def run_hash(key):
    """Names a run and its settings."""
    return receipt_hash(str(key), or_stop(FOLDERS.config_hash, key))


RUN_HASH = {key: run_hash(key) for key in run_table(CONFIG) if has_demos(key.env)}


def receipt(key):
    """A run's receipt. It names the run's settings, so a run of other settings has none."""
    return f"{LAYOUT.run(key)}/done.{RUN_HASH.get(key) or run_hash(key)}"


def again(*files):
    """Make these files in this invocation even if they are there: they are not what they say.

    Called by input functions, so it only concerns what is asked for. Snakemake would look at time
    stamps and at what it remembers, which `--rerun-triggers` chooses among.
    """
    workflow.dag.forcefiles.update(files)


def counted_by(key):
    """The artefacts that count a run as theirs."""
    return tuple(figure for figure, keys in COUNTED_BY.items() if key in keys)


# What is trained follows from the content of the runs' folders alone. A complete run that has its
# receipt is a source file to the workflow: no rule makes it, so nothing can retrain or delete it,
# whatever the pack size. A job's own process plans nothing.
PLANNED = list(RUN_HASH) if workflow.is_main_process else []
UNFINISHED = [key for key in PLANNED if FOLDERS.status(key).status not in COMPLETE]
WITHOUT_RECEIPT = {*UNFINISHED, *(key for key in PLANNED if not os.path.exists(receipt(key)))}
# The runs of a pack are counted by the same artefacts, so that asking for one trains no other's.
COUNTED_BY = {figure: set(run_table(CONFIG, [figure])) for figure in CONFIG.figures}
CELLS = {cell: resolve(CONFIG, *cell) for cell in {key.cell for key in UNFINISHED}}
SIZE = {name: pack_size(cell, CONFIG.pack, SITE) for name, cell in CELLS.items()}
PACKS = [
    pack
    for size in sorted(set(SIZE.values()))
    for pack in packs([k for k in UNFINISHED if SIZE[k.cell] == size], size, apart=counted_by)
]
PACK_OF = {key: pack for pack in PACKS for key in pack}


@cache
def stamp_of(artefact):
    """What an artefact would carry that is drawn from what lies here now."""
    return stamp(CONFIG, LAYOUT, artefact, PICTURE.get(artefact.name, ""))


def records_of(artefact):
    """What stands for the runs and experts that an artefact shows."""
    endings = ENDINGS.get(artefact.name) or ENDINGS["figure" if artefact.name in FIGURES else "table"]
    if not all(carries(Path(f"results/{artefact.name}.{end}"), stamp_of(artefact)) for end in endings):
        again(*(f"results/{artefact.name}.{end}" for end in endings))
    names = artefact.shown(CONFIG)
    files = [file for file in artefact.files if Path(file).exists()]
    if CONFIG.records == "published":
        or_stop(RECORDS.check, artefact.keys(CONFIG), artefact.experts_of(CONFIG))
        return files + (PUBLISHED if names else [])
    runs, envs = artefact.keys(CONFIG), artefact.experts_of(CONFIG)
    return files + [receipt(key) for key in runs] + [expert_of(env) for env in envs]


def records_of_paper(_):
    """What the paper shows. Without LaTeX that is said before anything is made for it."""
    if lack := latex.lacking():
        stop(f"results/paper.pdf: {lack}")
    return records_of(PAPER)


def settings_of(_):
    """The settings' file; one that was cut or changed is written again."""
    if os.path.exists(SETTINGS) and Path(SETTINGS).read_text(errors="replace") != to_file(CONFIG):
        again(SETTINGS)
    return SETTINGS


def key_of(wildcards):
    """The run that a rule's wildcards name."""
    w = wildcards
    return RunKey(w.env, w.method, w.mode, int(w.rate), int(w.demos), int(w.seed))


def pack_of(wildcards):
    """The pack that trains a run; nothing for one that is complete and lacks its receipt alone."""
    key = key_of(wildcards)
    again(receipt(key))
    if key not in PACK_OF:
        return []
    env, method, mode, rate = key.cell
    pack = f"{WORK}/packs/{env}/{method}/{mode}-rate{rate}/{pack_name(PACK_OF[key])}"
    again(f"{pack}.done", f"{pack}.outcome")
    return f"{pack}.done"


def members(wildcards):
    """The keys of a pack, from its name alone."""
    w = wildcards
    return [str(key) for key in parse_pack((w.env, w.method, w.mode, int(w.rate)), w.members)]


def demos_of(wildcards):
    """What stands for the env's demonstrations: their file, or the recording's receipt."""
    file = demos_file(CONFIG, wildcards.env)
    if file:
        return as_input(file)
    return recording_of(wildcards.env)


def recording_of(env):
    """A recording's receipt."""
    return f"{WORK}/demos/{env}.done.{expert_hash(env)}"


@cache
def expert_hash(env):
    """Names an env's expert and its settings."""
    return config_hash(resolve_expert(CONFIG, env))


@cache
def has_expert(env):
    """Whether an env's expert is complete."""
    return not workflow.is_main_process or FOLDERS.expert_status(env).status in COMPLETE


@cache
def has_recording(env):
    """Whether an env's demonstrations are whole, and of its expert if that is there."""
    policy = LAYOUT.expert(env) / "policy.safetensors" if has_expert(env) else None
    return not workflow.is_main_process or is_of(LAYOUT.demos(env), env, expert_hash(env), policy)


def expert_job_of(wildcards):
    """What trains an expert that is not complete."""
    if has_expert(wildcards.env):
        return []
    outcome = f"{WORK}/packs/{wildcards.env}/expert/{wildcards.hash}.outcome"
    again(trained_of(wildcards.env), outcome)
    return outcome


def recording_job_of(wildcards):
    """What records an expert whose recording is missing, damaged or of another one."""
    if has_recording(wildcards.env):
        return []
    outcome = f"{WORK}/packs/{wildcards.env}/record/{wildcards.hash}.outcome"
    again(recording_of(wildcards.env), outcome)
    return outcome


def expert_of(env):
    """What stands for an env's expert: its record that ships, or its receipt at its settings."""
    if CONFIG.demos == "shipped":
        or_stop(read, env)
        return as_input(DATA / env / EXPERT)
    return trained_of(env)


def trained_of(env):
    """An expert's receipt."""
    return f"{LAYOUT.expert(env)}/done.{expert_hash(env)}"


UNSHIPPED = [env for env in TASKS if TASKS[env].aim is not None and not expert_ships(CONFIG, env)]


def without(receipt_of, is_whole):
    """Pattern of the hashes of experts or recordings that a rule makes, as with runs."""
    asked = {*UNSHIPPED, *(key.env for key in UNFINISHED)}
    whole = [
        env
        for env in TASKS
        if os.path.exists(receipt_of(env)) and (env not in asked or is_whole(env))
    ]
    return "|".join(expert_hash(env) for env in TASKS if env not in whole) or "(?!)"


wildcard_constraints:
    env="|".join(map(re.escape, TASKS)),
    method="|".join(map(re.escape, CONFIG.methods)),
    mode="|".join(MODES),
    demos=r"\d+",
    rate=r"\d+",
    seed=r"\d+",
    members=r"[\d.,_-]+",
    figure="|".join(FIGURES),
    table="|".join(TABLES),


localrules:
    settings,
    trained,
    recorded,
    pack,
    run,
    ship,
    experts_page,
    experts,
    figure,
    table,
    report,
    paper,

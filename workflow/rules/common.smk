# The config, the run table and the functions that rules share.

import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, workflow.basedir)  # the checkout's own packages, installed or not

from ngt.config import (
    MODES,
    config_hash,
    demos_file,
    expert_ships,
    load,
    own_file,
    read_yaml,
    resolve,
    resolve_expert,
    to_json,
)
from ngt.envs import TASKS
from ngt.errors import UserError
from ngt.publish import Published
from ngt.runs import Layout, RunKey, pack_name, packs, parse_pack, run_hash, run_table
from ngt.shipped import DATA, EXPERT, read, ships
from paper import labels, latex
from paper.artefacts import FIGURES, REPORT, TABLES, at_scale
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
except UserError as error:
    hint = " (--config reads nested values as text: use --configfile)" if config else ""
    stop(f"{error}{hint if 'found text' in str(error) else ''}")

NOW = time.time()
READINGS = [f"{REPORT.name}.html"] + ([] if latex.lacking() else ["paper.pdf"])
WORK = f"results/{CONFIG.scale}"


def as_input(file):
    """A file's path for a rule's input, in which Snakemake would fill any braces."""
    path = os.path.relpath(file)
    if set(path) & set("{}"):
        stop(f"{path}: its name has braces, which Snakemake would fill; rename it")
    return path


def has_demos(env):
    """Whether an env's demonstrations are there or can be made: not every expert need ship."""
    return CONFIG.demos == "trained" or bool(own_file(CONFIG, env)) or ships(env)


RUN_HASH = {key: run_hash(CONFIG, key) for key in run_table(CONFIG) if has_demos(key.env)}


def receipt(key):
    """A run's receipt. It names the run's settings, so a run of other settings has none."""
    named = RUN_HASH.get(key) or or_stop(run_hash, CONFIG, key)
    return f"{LAYOUT.run(key)}/done.{named}"


def counted_by(key):
    """The artefacts that count a run as theirs."""
    return tuple(figure for figure, keys in COUNTED_BY.items() if key in keys)


# A run that has its receipt is a source file to the workflow: no rule makes it, so nothing can
# retrain or delete it, whatever the pack size.
UNFINISHED = [
    key
    for key in RUN_HASH
    if not (os.path.exists(receipt(key)) and (LAYOUT.run(key) / "run.json").exists())
]
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


def records_of(artefact):
    """What stands for the runs and experts that an artefact shows."""
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
    return records_of(REPORT)


def key_of(wildcards):
    """The run that a rule's wildcards name."""
    w = wildcards
    return RunKey(w.env, w.method, w.mode, int(w.rate), int(w.demos), int(w.seed))


def pack_of(wildcards):
    """The pack that trains a run."""
    pack = PACK_OF[key_of(wildcards)]
    env, method, mode, rate = pack[0].cell
    return f"{WORK}/packs/{env}/{method}/{mode}-rate{rate}/{pack_name(pack)}.done"


def members(wildcards):
    """The keys of a pack, from its name alone."""
    w = wildcards
    return [str(key) for key in parse_pack((w.env, w.method, w.mode, int(w.rate)), w.members)]


def demos_of(wildcards):
    """What stands for the env's demonstrations: their file, or the recording's receipt."""
    file = demos_file(CONFIG, wildcards.env)
    if file:
        return as_input(file)
    return f"{WORK}/demos/{wildcards.env}.done.{expert_hash(wildcards.env)}"


def expert_hash(env):
    """Names an env's expert and its settings."""
    return config_hash(resolve_expert(CONFIG, env))


def expert_of(env):
    """What stands for an env's expert: its record that ships, or its receipt at its settings."""
    if CONFIG.demos == "shipped":
        or_stop(read, env)
        return as_input(DATA / env / EXPERT)
    return f"{LAYOUT.expert(env)}/done.{expert_hash(env)}"


def unshipped():
    """Receipts of the experts that the suite means to ship, but for those that ship already."""
    envs = [env for env in TASKS if TASKS[env].aim is not None and not expert_ships(CONFIG, env)]
    return [f"{WORK}/shipped/{env}.done.{expert_hash(env)}" for env in envs]


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
    run,
    ship,
    experts_page,
    experts,
    figure,
    table,
    report,
    paper,

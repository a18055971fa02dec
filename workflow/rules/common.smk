# The plan of this scale, and functions with which rules query it.

import re
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)  # use the checkout's own packages, even if not installed

from workflow.plan import UserError, read

# Snakemake fills braces in a rule's paths, so braces in the checkout's own path are escaped.
ENVIRONMENT = f"{workflow.basedir}/environment.yml".replace("{", "{{").replace("}", "}}")
RUN = "{env}/{method}/{mode}-demos{demos}-rate{rate}/seed{seed}"  # a run's key
PACK = "{env}/{method}/{mode}-rate{rate}/{members}"


def one_line(function, *args, hint=""):
    """Return the function's result. On a UserError, end Snakemake with one line."""
    try:
        return function(*args)
    except UserError as error:
        print(f"snakemake: error: {error}{hint if 'found text' in str(error) else ''}", file=sys.stderr)
        sys.exit(2)  # also ends Snakemake from within an input function


def read_plan():
    """Return the plan. `config` holds the user's own settings, from --config and --configfile."""
    files = map(Path, workflow.config_settings.configfiles)
    return read(config, files, main=workflow.is_main_process)


PLAN = one_line(
    read_plan, hint=" (--config reads nested values as text: use --configfile)" if config else ""
)
CONFIG, WORK = PLAN.config, PLAN.work


if workflow.is_main_process:
    one_line(PLAN.check_targets, sys.argv[1:])
    for sentence in PLAN.moves():
        print(f"snakemake: {sentence}", file=sys.stderr)


def inputs(find, *args):
    """Return the input files that the plan finds, and force the outdated files to be made again.

    Only input functions call this function, so it affects only files that a target needs. Snakemake
    alone would decide by time stamps and by its own records, as `--rerun-triggers` selects.
    """
    found = one_line(find, *args)
    workflow.dag.forcefiles.update(found.outdated)
    return found.files


def settings_file(_):
    """Return the file of the complete settings."""
    return inputs(PLAN.settings)


def one_of(values):
    """Return a pattern that matches exactly these values, or nothing if there are none."""
    return "|".join(map(re.escape, values)) or "(?!)"


wildcard_constraints:
    **{name: one_of(values) for name, values in PLAN.names().items()},
    demos=r"\d+",
    rate=r"\d+",
    seed=r"\d+",
    members=r"[\d.,_-]+",


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

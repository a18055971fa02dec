# The plan, which states the missing runs and files at the chosen scale, and functions with which
# the rules query the plan. A scale is a config in workflow/config/.

import re
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)  # use the checkout's packages, even if they are not installed

from workflow.handover import VARIABLE, hand_on, receive
from workflow.plan import UserError, read
from workflow.resources import check_executor

# With --software-deployment-method conda, each job runs in this environment. By default, jobs run
# in Snakemake's own environment. Snakemake replaces braces in the paths of rules, so braces in the
# checkout's path are escaped.
ENVIRONMENT = f"{workflow.basedir}/workflow/envs/suite.yaml".replace("{", "{{").replace("}", "}}")
RUN = "{env}/{method}/{mode}-demos{demos}-rate{rate}/seed{seed}"  # the key that names a run
PACK = "{env}/{method}/{mode}-rate{rate}/{members}"  # the name of a pack of runs


def one_line(function, *args):
    """Call the function and return its result.

    If the function raises a UserError, or if a file can't be read, print the error in one line and
    end Snakemake.
    """
    try:
        return function(*args)
    except UserError as error:
        reason = str(error)
    except OSError as error:  # for example a file of another user, or a folder where a file should be
        reason = f"{error.filename}: {error.strerror}"
    print(f"snakemake: error: {reason}", file=sys.stderr)
    sys.exit(2)  # this ends Snakemake even if an input function of a rule called `one_line`


def read_plan():
    """Return the plan for the user's settings, which come from --config and --configfile.

    The process of a job returns the plan of the main process, which may have read other settings.
    """
    if not workflow.is_main_process:
        return receive()
    given = workflow.config_settings
    try:
        plan = read(config, map(Path, given.configfiles))
    except UserError as error:
        section = re.split(r"[.:\[]", str(error))[0]
        if section not in given.config or "found text" not in str(error):
            raise
        hint = "--config reads nested values as text: use --configfile"
        raise UserError(f"{error} ({hint})") from None
    hand_on(plan)
    given.configfiles = []  # otherwise, each job would parse these files again
    return plan


PLAN = one_line(read_plan)
CONFIG, WORK = PLAN.config, PLAN.work


envvars:
    VARIABLE,


if workflow.is_main_process:
    one_line(PLAN.check_targets, sys.argv[1:])
    for sentence in PLAN.moves():
        print(f"snakemake: {sentence}", file=sys.stderr)


def inputs(find, *args):
    """Return the input files that the plan finds, and make Snakemake remake the outdated ones.

    find: a method of the plan.
    args: the method's arguments.

    Rules call this function in their input functions, so the call affects only files that a target
    needs. Without this function, Snakemake would decide what to remake by time stamps and by its
    records of earlier jobs.
    """
    found = one_line(find, *args)
    workflow.dag.forcefiles.update(found.outdated)
    return found.files


def settings_file(_):
    """Return the path of the file that holds all settings of the scale."""
    return inputs(PLAN.settings)


def settings_to_submit(wildcards):
    """Check that jobs can be submitted, and return the settings file that they read."""
    if workflow.executor_plugin is not None:  # None with --lint, for example
        one_line(check_executor, workflow.executor_plugin.name)
    return settings_file(wildcards)


def one_of(values):
    """Return a regular expression that matches these values and nothing else."""
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

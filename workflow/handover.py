"""Hand the plan of Snakemake's main process on to the processes of its jobs.

A job may start hours after the workflow was planned. It reads the planned settings, so it does not
matter whether the user has edited the config files since.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

from ngt.errors import UserError
from ngt.runs.keys import Layout
from ngt.settings.load import load_file
from workflow.plan import Plan
from workflow.resources import site_of

VARIABLE = "NGT_PLAN"  # the environment variable that jobs inherit


def hand_on(plan: Plan) -> None:
    """Set the variable to the plan's cluster and settings file, which exists before jobs start."""
    planned = {"settings": plan.settings_file, "cluster": asdict(plan.site)}
    os.environ[VARIABLE] = json.dumps(planned)


def receive() -> Plan:
    """Return the main process's plan, without a look at the runs.

    Raise UserError if the variable is not set, or if the settings file is missing or damaged.
    """
    if VARIABLE not in os.environ:
        raise UserError(
            f"{VARIABLE}: not set in the job's environment; let jobs inherit the environment of "
            "the `snakemake` command"
        )
    planned = json.loads(os.environ[VARIABLE])
    config = load_file(Path(planned["settings"]))
    return Plan(config, Layout.of(config), site_of({"cluster": planned["cluster"]}), main=False)

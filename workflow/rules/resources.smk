# What jobs ask of a cluster, and how often they are tried.

from functools import cache

from ngt.settings.resolve import expert_config
from snakemake.logging import logger
from workflow.cost import Asked
from workflow.resources import Job, recording, training

if workflow.is_main_process:
    logger.addHandler(Asked())


@cache
def training_job(runs, env, *cell):
    """What training runs of a cell asks, or, without one, an expert."""
    settings = resolve(CONFIG, env, *cell) if cell else resolve_expert(CONFIG, env)
    return training(settings, runs, SITE)


def pack_job(wildcards):
    """What training a pack asks."""
    w = wildcards
    return training_job(len(members(w)), w.env, w.method, w.mode, int(w.rate))


def expert_job(wildcards):
    """What training an expert asks."""
    return training_job(1, wildcards.env)


def record_job(wildcards):
    """What recording an expert asks."""
    return recording(wildcards.env, expert_config(CONFIG, wildcards.env).episodes, SITE)


def asked(job):
    """A rule's resources, from what `job(wildcards)` asks; what is empty is left out."""

    def value_of(name):
        return lambda wildcards: getattr(job(wildcards), name)

    unused = {"gpu", "gpu_model"} if SITE.gpu is None else set()
    return {name: value_of(name) for name in Job._fields if name not in unused}


# A job that refuses leaves its reason in its output and ends well; its receipt's rule, which runs
# beside Snakemake, fails with the reason on stderr.
ACCEPT = "if [ -n '{input}' ] && [ -s '{input}' ]; then cat '{input}' >&2; exit 1; fi > {log}"
CERTIFY = "python -m ngt.runs.receipt {output} > {log}"

# A job that failed is tried again and goes on from its checkpoint; so does one that was told to
# stop because its time was up, as often as that must be. Jobs on a cluster leave it to this process.
PARTS = [training_job(len(pack), *pack[0].cell).parts for pack in PACKS]
PARTS += [training_job(1, env).parts for env in {key.env for key in UNFINISHED}]  # of experts
RETRIES = 2 + max(PARTS, default=1) if workflow.is_main_process else 0

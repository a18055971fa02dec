# What jobs ask of a cluster, how often they are tried, and what their receipts stand for.

from snakemake.logging import logger
from workflow.cost import Asked
from workflow.resources import Job

if workflow.is_main_process:
    logger.addHandler(Asked())

RETRIES = PLAN.retries()


def pack_job(wildcards):
    """Return what training a pack asks."""
    return PLAN.pack_job(**wildcards)


def expert_job(wildcards):
    """Return what training an expert asks."""
    return PLAN.expert_job(wildcards.env)


def record_job(wildcards):
    """Return what recording an expert asks."""
    return PLAN.record_job(wildcards.env)


def asked(job):
    """Return a rule's resources, from what `job(wildcards)` asks; unused ones are left out."""

    def value_of(name):
        return lambda wildcards: getattr(job(wildcards), name)

    unused = {"gpu", "gpu_model"} if PLAN.site.gpu is None else set()
    return {name: value_of(name) for name in Job._fields if name not in unused}


# A job that refuses its work leaves the reason in its output and succeeds. The rule of its receipt,
# which runs beside Snakemake, then fails with the reason on stderr.
ACCEPT = "if [ -n '{input}' ] && [ -s '{input}' ]; then cat '{input}' >&2; exit 1; fi > {log}"
CERTIFY = "python -m ngt.runs.state {output} > {log}"

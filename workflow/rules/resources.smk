# What jobs ask of a cluster, how often they are tried, and what their receipts stand for.

from snakemake.logging import logger
from workflow.cost import Asked
from workflow.resources import Job

if workflow.is_main_process:
    logger.addHandler(Asked())

RETRIES = PLAN.retries()


def asked(job):
    """Return a rule's resources, from what `job` says of its wildcards; unused ones are left out."""

    def value_of(name):
        return lambda wildcards: getattr(job(**wildcards), name)

    unused = {"gpu", "gpu_model"} if PLAN.site.gpu is None else set()
    return {name: value_of(name) for name in Job._fields if name not in unused}


# A job that refuses its work leaves the reason in its output and succeeds. The rule of its receipt,
# which runs beside Snakemake, then fails with the reason on stderr.
ACCEPT = "if [ -n '{input}' ] && [ -s '{input}' ]; then cat '{input}' >&2; exit 1; fi > {log}"
CERTIFY = "python -m ngt.runs.receipt {output} > {log}"

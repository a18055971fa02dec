# Each job's resources and number of retries, and the commands that write receipts.

from snakemake.logging import logger
from workflow.cost import Asked
from workflow.resources import Job

if workflow.is_main_process:
    logger.addHandler(Asked())

RETRIES = PLAN.retries()


def asked(job):
    """Return a rule's resources as functions of its wildcards.

    `job` maps wildcards to a Job. GPU resources are left out if the site has no GPU.
    """

    def value_of(name):
        return lambda wildcards: getattr(job(**wildcards), name)

    unused = {"gpu", "gpu_model"} if PLAN.site.gpu is None else set()
    return {name: value_of(name) for name in Job._fields if name not in unused}


# A job that refuses its task writes the reason to its output file and succeeds. The rule that makes
# its receipt runs on Snakemake's own machine. It then fails and prints the reason on stderr.
ACCEPT = "if [ -n '{input}' ] && [ -s '{input}' ]; then cat '{input}' >&2; exit 1; fi > {log}"
CERTIFY = "python -m ngt.runs.receipt {output} > {log}"

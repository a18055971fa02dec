# Each job's resources and number of retries, and the commands that write receipts. A receipt is an
# empty file that marks a run, an expert or a recording as complete.

from snakemake.logging import logger
from workflow.cost import Asked
from workflow.resources import Job

if workflow.is_main_process:
    logger.addHandler(Asked(PLAN.site))

RETRIES = PLAN.retries()


def asked(job):
    """Return the resources of a rule, each as a function of the rule's wildcards.

    GPU resources are left out if the user's config has no section for GPUs.

    job: a function that returns the Job for given wildcards.
    """

    def value_of(name):
        return lambda wildcards: getattr(job(**wildcards), name)

    unused = {"gpu", "gpu_model", "gpu_mb"} if PLAN.site.gpu is None else set()
    return {name: value_of(name) for name in Job._fields if name not in unused}


# A training or recording job that refuses its task writes the reason to its output file and
# succeeds. The rule that writes the job's receipt runs on the same machine as Snakemake. If the
# output file holds a reason, that rule prints the reason on stderr and fails.
ACCEPT = "if [ -n '{input}' ] && [ -s '{input}' ]; then cat '{input}' >&2; exit 1; fi > {log}"
CERTIFY = "python -m ngt.runs.receipt {output} > {log}"

# Train imitation runs. One job trains a pack of runs, and each run has a receipt: an empty file
# that marks the run as complete.
#
# The rule that writes a receipt has the output of a training or recording job as its input only if,
# according to the plan, this job must run. A time stamp alone therefore never starts such a job.
# The inputs are not marked `ancient`, because Snakemake would then skip an outdated job if its
# ancient input is made in the same command.


rule train:
    input:
        settings=settings_to_submit,
        demos=lambda wildcards: one_line(PLAN.demos, wildcards.env, PLAN.members(**wildcards)),
    output:
        temp(f"{WORK}/packs/{PACK}.outcome"),
    log:
        f"{WORK}/logs/train/{PACK}.log",
    benchmark:
        f"{WORK}/benchmarks/train/{PACK}.tsv"
    threads: lambda wildcards: PLAN.pack_job(**wildcards).cpus_per_task
    retries: RETRIES
    resources:
        **asked(PLAN.pack_job),
    params:
        runs=lambda wildcards: PLAN.members(**wildcards),
    conda:
        ENVIRONMENT
    message:
        "train {wildcards.method} on {wildcards.env}, demos.seeds {wildcards.members}; see {log}"
    shell:
        "exec python -m ngt train {params.runs} --planned {input.settings}"
        " --device {resources.device} --env-workers {resources.env_workers}"
        " --outcome {output} > {log} 2>&1"


rule pack:
    """Mark a pack as trained, or fail with the reason if its job refused to train.

    This rule runs on the same machine as Snakemake, so the reason is printed only once.
    """
    input:
        rules.train.output,
    output:
        temp(touch(f"{WORK}/packs/{PACK}.done")),
    log:
        f"{WORK}/logs/pack/{PACK}.log",
    retries: 0
    conda:
        ENVIRONMENT
    message:
        "{wildcards.method} on {wildcards.env}, demos.seeds {wildcards.members}"
    shell:
        ACCEPT


rule run:
    """Write the receipt of a run if the run is finished and has the plan's settings."""
    input:
        lambda wildcards: inputs(PLAN.run, RUN.format(**wildcards)),
    output:
        f"{WORK}/runs/{RUN}/done.{{hash}}",
    log:
        f"{WORK}/logs/run/{RUN}.{{hash}}.log",
    retries: 0
    wildcard_constraints:
        hash=one_of(PLAN.run_hashes()),
    conda:
        ENVIRONMENT
    message:
        "run {wildcards.env}/{wildcards.method} demos {wildcards.demos} seed {wildcards.seed}"
    shell:
        CERTIFY

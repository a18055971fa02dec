# Train imitation runs. A pack of runs is one job, and each run has its own receipt.
#
# The plan names a training job or a recording as an input only if it must run, so a time stamp alone
# never starts one. Inputs are not `ancient`, because Snakemake would skip an outdated job whose ancient
# input is made in the same command.


rule train:
    input:
        settings=settings_file,
        demos=lambda wildcards: one_line(PLAN.demos, wildcards.env),
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
    """Write a pack's receipt, or fail with the reason if the job refused to train.

    This rule runs on Snakemake's own machine, so the reason is printed once.
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
    """Write a run's receipt if its folder matches the plan."""
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

# Imitation: a pack of runs is one job; a run's receipt is its own.


rule train:
    input:
        settings=ancient(settings_of),
        demos=ancient(demos_of),
    output:
        temp(f"{WORK}/packs/{{env}}/{{method}}/{{mode}}-rate{{rate}}/{{members}}.outcome"),
    log:
        f"{WORK}/logs/train/{{env}}/{{method}}/{{mode}}-rate{{rate}}/{{members}}.log",
    benchmark:
        f"{WORK}/benchmarks/train/{{env}}/{{method}}/{{mode}}-rate{{rate}}/{{members}}.tsv"
    threads: lambda wildcards: pack_job(wildcards).cpus_per_task
    retries: RETRIES
    resources:
        **asked(pack_job),
    params:
        runs=members,
    conda:
        ENVIRONMENT
    message:
        "train {wildcards.method} on {wildcards.env}, demos.seeds {wildcards.members}; see {log}"
    shell:
        "exec python -m ngt train {params.runs} --planned {input.settings} --replace"
        " --device {resources.device} --env-workers {resources.env_workers}"
        " --outcome {output} > {log} 2>&1"


rule pack:
    """Whether a pack is trained; if that was refused, the reason, once and beside Snakemake."""
    input:
        rules.train.output,
    output:
        temp(touch(f"{WORK}/packs/{{env}}/{{method}}/{{mode}}-rate{{rate}}/{{members}}.done")),
    log:
        f"{WORK}/logs/pack/{{env}}/{{method}}/{{mode}}-rate{{rate}}/{{members}}.log",
    retries: 0
    conda:
        ENVIRONMENT
    message:
        "{wildcards.method} on {wildcards.env}, demos.seeds {wildcards.members}"
    shell:
        ACCEPT


rule run:
    """One run's receipt, written if the run's folder is what was planned."""
    input:
        pack_of,
    output:
        f"{WORK}/runs/{{env}}/{{method}}/{{mode}}-demos{{demos}}-rate{{rate}}/seed{{seed}}/done.{{hash}}",
    log:
        f"{WORK}/logs/run/{{env}}/{{method}}/{{mode}}-demos{{demos}}-rate{{rate}}/seed{{seed}}.{{hash}}.log",
    retries: 0
    wildcard_constraints:
        hash="|".join(RUN_HASH[key] for key in WITHOUT_RECEIPT) or "(?!)",
    conda:
        ENVIRONMENT
    message:
        "run {wildcards.env}/{wildcards.method} demos {wildcards.demos} seed {wildcards.seed}"
    shell:
        CERTIFY

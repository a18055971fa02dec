# Imitation: a pack of runs is one job; a run's receipt is its own.


rule train:
    input:
        config=ancient(f"{WORK}/config.json"),
        demos=ancient(demos_of),
    output:
        temp(touch(f"{WORK}/packs/{{env}}/{{method}}/{{mode}}-rate{{rate}}/{{members}}.done")),
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
        "exec python -m ngt train {params.runs} --config {input.config} --replace"
        " --device {resources.device} --env-workers {resources.env_workers} > {log} 2>&1"


rule run:
    """One run's receipt, written when its pack is trained."""
    input:
        pack_of,
    output:
        f"{WORK}/runs/{{env}}/{{method}}/{{mode}}-demos{{demos}}-rate{{rate}}/seed{{seed}}/done.{{hash}}",
    log:
        f"{WORK}/logs/run/{{env}}/{{method}}/{{mode}}-demos{{demos}}-rate{{rate}}/seed{{seed}}.{{hash}}.log",
    params:
        now=NOW,  # Snakemake leaves a missing intermediate file alone unless something changed
    wildcard_constraints:
        hash="|".join(RUN_HASH[key] for key in UNFINISHED) or "(?!)",
    conda:
        ENVIRONMENT
    message:
        "run {wildcards.env}/{wildcards.method} demos {wildcards.demos} seed {wildcards.seed}"
    shell:
        "touch {output} 2> {log}"

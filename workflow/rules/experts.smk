# One SAC expert an env, on the env's own reward; and those that ship in data/.


rule expert:
    input:
        config=ancient(f"{WORK}/config.json"),
    output:
        touch(f"{WORK}/experts/{{env}}/done.{{hash}}"),
    log:
        f"{WORK}/logs/expert/{{env}}.{{hash}}.log",
    benchmark:
        f"{WORK}/benchmarks/expert/{{env}}.{{hash}}.tsv"
    threads: lambda wildcards: expert_job(wildcards).cpus_per_task
    retries: RETRIES
    resources:
        **asked(expert_job),
    conda:
        ENVIRONMENT
    message:
        "train the expert of {wildcards.env}; see {log}"
    shell:
        "exec python -m ngt expert {wildcards.env} --config {input.config} --replace"
        " --device {resources.device} --env-workers {resources.env_workers} > {log} 2>&1"


rule ship:
    """Into data/, unless a better one ships; no output there, which Snakemake would remove first."""
    input:
        config=ancient(f"{WORK}/config.json"),
        demos=ancient(f"{WORK}/demos/{{env}}.done.{{hash}}"),
    output:
        touch(f"{WORK}/shipped/{{env}}.done.{{hash}}"),
    log:
        f"{WORK}/logs/ship/{{env}}.{{hash}}.log",
    conda:
        ENVIRONMENT
    message:
        "ship the expert of {wildcards.env}"
    shell:
        "python -m ngt ship {wildcards.env} --config {input.config} > {log} 2>&1"


rule experts_page:
    """The page that says how good each is."""
    input:
        unshipped(),
    output:
        touch(f"{WORK}/shipped/page.done"),
    log:
        f"{WORK}/logs/experts_page.log",
    conda:
        ENVIRONMENT
    message:
        "write data/README.md"
    shell:
        "python -m paper.experts > {log} 2>&1"


rule experts:
    """Every expert that the suite means to ship; those that ship already are not trained again."""
    input:
        rules.experts_page.output,

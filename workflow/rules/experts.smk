# One SAC expert an env, on the env's own reward; and those that ship in data/.


rule expert:
    input:
        settings=ancient(settings_of),
    output:
        temp(f"{WORK}/packs/{{env}}/expert/{{hash}}.outcome"),
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
        "exec python -m ngt expert {wildcards.env} --planned {input.settings} --replace"
        " --device {resources.device} --env-workers {resources.env_workers}"
        " --outcome {output} > {log} 2>&1"


rule trained:
    """An expert's receipt, written if its folder is what was planned."""
    input:
        expert_job_of,
    output:
        f"{WORK}/experts/{{env}}/done.{{hash}}",
    log:
        f"{WORK}/logs/expert/{{env}}.{{hash}}.receipt.log",
    retries: 0
    wildcard_constraints:
        hash=without(trained_of, has_expert),
    conda:
        ENVIRONMENT
    message:
        "expert of {wildcards.env}"
    shell:
        f"{ACCEPT}; {CERTIFY}"


rule ship:
    """Into data/, unless a better one ships; no output there, which Snakemake would remove first."""
    input:
        settings=ancient(settings_of),
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
        "python -m ngt ship {wildcards.env} --planned {input.settings} > {log} 2>&1"


rule experts_page:
    """The page that says how good each is."""
    input:
        [f"{WORK}/shipped/{env}.done.{expert_hash(env)}" for env in UNSHIPPED],
    output:
        touch(f"{WORK}/shipped/page.done"),
    log:
        f"{WORK}/logs/experts_page.log",
    conda:
        ENVIRONMENT
    message:
        "write data/README.md"
    shell:
        "python -m paper.handbook.experts > {log} 2>&1"


rule experts:
    """Every expert that the suite means to ship; those that ship already are not trained again."""
    input:
        rules.experts_page.output,

# Train one SAC expert per env on the env's own reward, and copy experts to data/.


rule expert:
    input:
        settings=settings_to_submit,
    output:
        temp(f"{WORK}/packs/{{env}}/expert/{{hash}}.outcome"),
    log:
        f"{WORK}/logs/expert/{{env}}.{{hash}}.log",
    benchmark:
        f"{WORK}/benchmarks/expert/{{env}}.{{hash}}.tsv"
    threads: lambda wildcards: PLAN.expert_job(**wildcards).cpus_per_task
    retries: RETRIES
    resources:
        **asked(PLAN.expert_job),
    conda:
        ENVIRONMENT
    message:
        "train the expert of {wildcards.env}; see {log}"
    shell:
        "exec python -m ngt expert {wildcards.env} --planned {input.settings}"
        " --device {resources.device} --env-workers {resources.env_workers}"
        " --outcome {output} > {log} 2>&1"


rule trained:
    """Write the receipt of an expert if the expert is finished and has the plan's settings.

    The receipt is an empty file, with a hash in its name, that marks the expert as complete.
    """
    input:
        lambda wildcards: inputs(PLAN.expert, wildcards.env),
    output:
        f"{WORK}/experts/{{env}}/done.{{hash}}",
    log:
        f"{WORK}/logs/expert/{{env}}.{{hash}}.receipt.log",
    retries: 0
    wildcard_constraints:
        hash=one_of(PLAN.expert_hashes()),
    conda:
        ENVIRONMENT
    message:
        "expert of {wildcards.env}"
    shell:
        f"{ACCEPT}; {CERTIFY}"


rule ship:
    """Copy an expert to data/, unless data/ has a better expert for this env already.

    Files in data/ are not outputs of the rule, because Snakemake removes outputs before a job
    starts.
    """
    input:
        settings=ancient(settings_file),
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
    """Write data/README.md, the page that shows how good each expert in data/ is."""
    input:
        lambda _: inputs(PLAN.shipping),
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
    """Train the experts that data/ should have but lacks, and copy them there."""
    input:
        rules.experts_page.output,

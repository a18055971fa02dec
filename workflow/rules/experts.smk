# One SAC expert an env, on the env's own reward.


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
        "../../environment.yml"
    message:
        "train the expert of {wildcards.env}; see {log}"
    shell:
        "exec python -m ngt.cli expert {wildcards.env} --config {input.config} --replace"
        " --device {resources.device} --env-workers {resources.env_workers} > {log} 2>&1"

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
    threads: 1
    conda:
        "../../environment.yml"
    message:
        "train the expert of {wildcards.env}; see {log}"
    shell:
        "python -m ngt.cli expert {wildcards.env} --config {input.config} --replace > {log} 2>&1"

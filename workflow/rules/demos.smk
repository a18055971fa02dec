# Sixteen episodes of each expert, and of a uniform-random policy.


rule record:
    input:
        config=ancient(f"{WORK}/config.json"),
        expert=lambda wildcards: expert_receipt(wildcards.env),
    output:
        f"{WORK}/demos/{{env}}.npz",
    log:
        f"{WORK}/logs/record/{{env}}.log",
    threads: 1
    conda:
        "../../environment.yml"
    message:
        "record the expert of {wildcards.env}"
    shell:
        "python -m ngt.cli record {wildcards.env} --config {input.config} --out {output}"
        " > {log} 2>&1"

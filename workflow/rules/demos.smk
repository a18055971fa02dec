# Sixteen episodes of each expert, and of a uniform-random policy, in demos/<env>.npz.


rule record:
    input:
        config=ancient(f"{WORK}/config.json"),
        expert=ancient(f"{WORK}/experts/{{env}}/done.{{hash}}"),
    output:
        touch(f"{WORK}/demos/{{env}}.done.{{hash}}"),
    log:
        f"{WORK}/logs/record/{{env}}.{{hash}}.log",
    threads: 1
    resources:
        **asked(record_job),
    conda:
        ENVIRONMENT
    message:
        "record the expert of {wildcards.env}"
    shell:
        "python -m ngt record {wildcards.env} --config {input.config} > {log} 2>&1"

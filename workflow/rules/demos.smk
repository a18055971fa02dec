# Record episodes of each expert and of a uniform-random policy into demos/<env>.npz.


rule record:
    input:
        settings=settings_to_submit,
        expert=f"{WORK}/experts/{{env}}/done.{{hash}}",
    output:
        temp(f"{WORK}/packs/{{env}}/record/{{hash}}.outcome"),
    log:
        f"{WORK}/logs/record/{{env}}.{{hash}}.log",
    threads: 1
    resources:
        **asked(PLAN.record_job),
    conda:
        ENVIRONMENT
    message:
        "record the expert of {wildcards.env}"
    shell:
        "python -m ngt record {wildcards.env} --planned {input.settings}"
        " --outcome {output} > {log} 2>&1"


rule recorded:
    """Write the receipt of an env's recording if the recording is of the plan's expert.

    The receipt is an empty file, with a hash in its name, that marks the recording as complete.
    """
    input:
        lambda wildcards: inputs(PLAN.recording, wildcards.env),
    output:
        f"{WORK}/demos/{{env}}.done.{{hash}}",
    log:
        f"{WORK}/logs/record/{{env}}.{{hash}}.receipt.log",
    retries: 0
    wildcard_constraints:
        hash=one_of(PLAN.recording_hashes()),
    conda:
        ENVIRONMENT
    message:
        "recording of {wildcards.env}"
    shell:
        f"{ACCEPT}; {CERTIFY}"

# What every job is told.


rule settings:
    """The merged settings, for every job and for readers."""
    output:
        f"{WORK}/config.json",
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=lambda _: to_json(CONFIG),  # a function's result keeps its braces
    conda:
        ENVIRONMENT
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s\\n' {params.text:q} > {output} 2> {log}"

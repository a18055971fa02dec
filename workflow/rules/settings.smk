# What every job is told.


rule settings:
    """The merged settings, for every job, in a file named by their hash."""
    output:
        SETTINGS,
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=lambda _: to_file(CONFIG),  # a function keeps braces as they are
    conda:
        ENVIRONMENT
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s' {params.text:q} > {output} 2> {log}"

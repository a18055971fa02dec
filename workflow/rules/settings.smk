# What every job is told.


rule settings:
    """The merged settings, for every job, in a file named by their hash."""
    output:
        SETTINGS,
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=to_file(CONFIG),
    conda:
        "../../environment.yml"
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s' {params.text:q} > {output} 2> {log}"

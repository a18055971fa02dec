# What every job is told.


rule settings:
    """The merged settings, for every job and for readers."""
    output:
        f"{WORK}/config.json",
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=to_json(CONFIG),
    conda:
        "../../environment.yml"
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s\\n' {params.text:q} > {output} 2> {log}"

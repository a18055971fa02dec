# Write the file of settings that every job reads.


rule settings:
    """Write the settings of all jobs to one file. The file's name is the hash of the settings."""
    output:
        PLAN.settings_file,
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=lambda _: PLAN.settings_text,  # a function, since Snakemake fills braces in a string
    conda:
        ENVIRONMENT
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s' {params.text:q} > {output} 2> {log}"

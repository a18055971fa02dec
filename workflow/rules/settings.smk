# Write the settings that every job reads.


rule settings:
    """Write the merged settings of all jobs to a file whose name is their hash."""
    output:
        PLAN.settings_file,
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=lambda _: PLAN.settings_text,  # Snakemake fills no braces in a function's result
    conda:
        ENVIRONMENT
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s' {params.text:q} > {output} 2> {log}"

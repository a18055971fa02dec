# Write the settings that every job reads.


rule settings:
    """Write the merged settings of all jobs to a file that is named by their hash."""
    output:
        PLAN.settings_file,
    log:
        f"{WORK}/logs/settings.log",
    params:
        text=lambda _: PLAN.settings_text,  # a function keeps braces as they are
    conda:
        ENVIRONMENT
    message:
        "settings of scale {CONFIG.scale}"
    shell:
        "printf '%s' {params.text:q} > {output} 2> {log}"

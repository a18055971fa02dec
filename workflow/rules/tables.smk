# Make a table with `python -m paper NAME`.


rule table:
    input:
        settings=settings_file,
        records=lambda wildcards: inputs(PLAN.artefact, wildcards.table),
    output:
        csv=f"{PLAN.home}/{{table}}.csv",
        tex=f"{PLAN.home}/{{table}}.tex",
        json=f"{PLAN.home}/{{table}}.json",
    log:
        f"{WORK}/logs/{{table}}.log",
    conda:
        ENVIRONMENT
    message:
        "make {wildcards.table} at scale {CONFIG.scale}"
    shell:
        "python -m paper {wildcards.table} --planned {input.settings} --out {output.csv} > {log} 2>&1"

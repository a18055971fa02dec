# Put all figures and tables of the scale on one web page.


rule report:
    input:
        settings=settings_file,
        parts=PLAN.parts("png"),
        records=lambda _: inputs(PLAN.artefact, "report"),
    output:
        f"{PLAN.home}/report.html",
    log:
        f"{WORK}/logs/report.log",
    conda:
        ENVIRONMENT
    message:
        "write the report of scale {CONFIG.scale}"
    shell:
        "python -m paper report --planned {input.settings} --out {output} > {log} 2>&1"

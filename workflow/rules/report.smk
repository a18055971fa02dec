# Everything that the scale has, in one page.


rule report:
    input:
        settings=settings_of,
        figures=[f"results/{a.name}.png" for a in FIGURES.values() if a.at(CONFIG)],
        tables=[f"results/{a.name}.json" for a in TABLES.values() if a.at(CONFIG)],
        records=lambda _: records_of(REPORT),
    output:
        f"results/{REPORT.name}.html",
    log:
        f"{WORK}/logs/report.log",
    conda:
        ENVIRONMENT
    message:
        "write the report of scale {CONFIG.scale}"
    shell:
        "python -m paper report --planned {input.settings} --out {output} > {log} 2>&1"

# The report in LaTeX, where that is installed.


rule paper:
    input:
        settings=settings_of,
        figures=[f"results/{a.name}.pdf" for a in FIGURES.values() if a.at(CONFIG)],
        tables=[f"results/{a.name}.json" for a in TABLES.values() if a.at(CONFIG)],
        records=records_of_paper,
    output:
        "results/paper.pdf",
    log:
        f"{WORK}/logs/paper.log",
    conda:
        ENVIRONMENT
    message:
        "typeset the paper of scale {CONFIG.scale}"
    shell:
        "python -m paper paper --planned {input.settings} --out {output} > {log} 2>&1"

# Typeset the report with LaTeX, if LaTeX is installed.


rule paper:
    input:
        settings=settings_file,
        parts=PLAN.parts("pdf"),
        records=lambda _: inputs(PLAN.artefact, "paper"),
    output:
        f"{PLAN.home}/paper.pdf",
    log:
        f"{WORK}/logs/paper.log",
    conda:
        ENVIRONMENT
    message:
        "typeset the paper of scale {CONFIG.scale}"
    shell:
        "python -m paper paper --planned {input.settings} --out {output} > {log} 2>&1"

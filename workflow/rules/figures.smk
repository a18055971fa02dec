# Draw a figure with `python -m paper NAME`.


rule figure:
    input:
        settings=settings_file,
        records=lambda wildcards: inputs(PLAN.artefact, wildcards.figure),
    output:
        pdf=f"{PLAN.home}/{{figure}}.pdf",
        png=report(f"{PLAN.home}/{{figure}}.png", category="Figures", labels={"figure": "{figure}"}),
        captions=multiext(f"{PLAN.home}/{{figure}}.caption", ".md", ".tex"),
    log:
        f"{WORK}/logs/{{figure}}.log",
    conda:
        ENVIRONMENT
    message:
        "draw {wildcards.figure} at scale {CONFIG.scale}"
    shell:
        "python -m paper {wildcards.figure} --planned {input.settings} --out {output.pdf}"
        " --png {output.png} --no-note > {log} 2>&1"

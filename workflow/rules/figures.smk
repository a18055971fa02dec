# One rule a figure; each calls the module of its name in paper/.


rule main_figure:
    input:
        config=f"{WORK}/config.json",
        runs=receipts("main_figure"),
    output:
        pdf="results/main_figure.pdf",
        png="results/main_figure.png",
    log:
        f"{WORK}/logs/main_figure.log",
    conda:
        "../../environment.yml"
    message:
        "draw the main figure at scale {CONFIG.scale}"
    shell:
        "python -m paper.main_figure --config {input.config} --out {output.pdf} --png {output.png}"
        " > {log} 2>&1"


rule expert_figure:
    input:
        config=f"{WORK}/config.json",
        experts=[expert_receipt(env) for env in CONFIG.figures["main_figure"].envs],
    output:
        pdf="results/expert_figure.pdf",
        png="results/expert_figure.png",
    log:
        f"{WORK}/logs/expert_figure.log",
    conda:
        "../../environment.yml"
    message:
        "draw the experts' learning curves at scale {CONFIG.scale}"
    shell:
        "python -m paper.expert_figure --config {input.config} --out {output.pdf}"
        " --png {output.png} > {log} 2>&1"

# From nothing to every artefact of the paper. `snakemake --cores all results/main_figure.pdf`
# builds the main figure at scale `quick`; `--config scale=paper` picks another scale.
# Settings: workflow/config/. A job's log: results/<scale>/logs/.


rule figures:
    """Every figure of the scale; the default target."""
    input:
        "results/main_figure.pdf",
        "results/expert_figure.pdf",


include: "workflow/rules/common.smk"
include: "workflow/rules/settings.smk"
include: "workflow/rules/experts.smk"
include: "workflow/rules/demos.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/figures.smk"

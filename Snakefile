# Make every artefact of the paper from scratch.
#   snakemake --cores all results/main_figure.pdf  makes the main figure at scale `quick`
#   --config scale=paper                           selects another scale
#   --config records=published                     draws from the repository's earlier results
# A scale is a config file in workflow/config/. Without a target, everything is made. Jobs write logs
# to results/<scale>/logs/.

from snakemake.utils import min_version

min_version("9.0")


rule all:
    """Make the report and every figure and table of the scale, and the paper if there is LaTeX."""
    input:
        lambda _: PLAN.everything(),


include: "workflow/rules/common.smk"
include: "workflow/rules/resources.smk"
include: "workflow/rules/settings.smk"
include: "workflow/rules/experts.smk"
include: "workflow/rules/demos.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/paper.smk"

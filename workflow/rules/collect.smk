# Targets by name.


rule figures:
    """Every figure of the scale."""
    default_target: True
    input:
        "results/main_figure.pdf",

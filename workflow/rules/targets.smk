# Targets that no rule makes, refused with the nearest that one does. Included last.

from ngt.errors import suggest


def unknown_target(target):
    """Whether a target is neither a rule, nor what one makes, nor a file that exists."""
    named = any(target == rule.name or rule.is_producer(target) for rule in workflow.rules)
    return not named and not os.path.exists(target)


def known_targets():
    """What users ask for: rules of targets, and every artefact's file."""
    files = [f"results/{name}.pdf" for name in FIGURES] + [f"results/{name}.csv" for name in TABLES]
    return ["all", "experts", "results/paper.pdf", f"results/{REPORT.name}.html", *files]


if workflow.is_main_process:
    for wanted in map(str, workflow.dag_settings.targets):
        if unknown_target(wanted):
            stop(f"target {wanted!r} is not known; {suggest(wanted, known_targets())}")

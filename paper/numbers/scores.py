"""Final scores, from which all tables, aggregates and verdicts on claims are computed.

A score is a normalised return, computed by `ngt.runs.table.as_rows`: 0 for a random policy, 1 for
the expert. A run that diverged before its first evaluation has the score UNEVALUATED.
"""

import pandas as pd

UNEVALUATED = 0.0  # the score of a random policy


def final_scores(runs: pd.DataFrame, window: int, column: str = "score") -> pd.DataFrame:
    """Return each run's final score: the mean of `column` over its last `window` evaluations."""
    axes = ["env", "method", "mode", "rate", "demos", "seed"]
    last = runs.sort_values("step").groupby(axes).tail(window)
    return last.groupby(axes, as_index=False)[column].mean()

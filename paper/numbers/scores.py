"""Final scores, from which every table, aggregate and verdict on a claim is computed.

A score is a normalised return, as `ngt.runs.table.as_rows` computes it: 0 for a random policy, 1
for the expert. Runs without an evaluation get their score from `final` in
paper/numbers/statistics.py.
"""

import pandas as pd


def final_scores(runs: pd.DataFrame, window: int, column: str = "score") -> pd.DataFrame:
    """Return each run's final score: the mean of `column` over its last `window` evaluations."""
    axes = ["env", "method", "mode", "rate", "demos", "seed"]
    last = runs.sort_values("step").groupby(axes).tail(window)
    return last.groupby(axes, as_index=False)[column].mean()

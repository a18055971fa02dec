"""Final scores: each is the mean of a run's last scores."""

import pandas as pd

from paper.numbers.scores import final_scores


def frame(scores: dict[int, list[float]]) -> pd.DataFrame:
    """Return the rows of runs given as {seed: scores at steps 100, 200, ...}."""
    rows = [
        {
            "env": "e",
            "method": "m",
            "mode": "state-action",
            "rate": 20,
            "demos": 1,
            "seed": seed,
            "step": 100 * (i + 1),
            "score": score,
        }
        for seed, values in scores.items()
        for i, score in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_final_scores_by_hand() -> None:
    runs = frame({0: [9.0, 1.0, 1.5, 3.5], 1: [0.5], 2: [4.0, 8.0]})
    final = final_scores(runs, 3)
    assert list(final["seed"]) == [0, 1, 2]
    assert final["score"].tolist() == [2.0, 0.5, 6.0], "a short run must use all its scores"
    assert final_scores(runs, 1)["score"].tolist() == [3.5, 0.5, 8.0]
    shuffled = runs.sample(frac=1.0, random_state=0)
    assert final_scores(shuffled, 3)["score"].tolist() == [2.0, 0.5, 6.0], (
        "the last scores must be the last by step"
    )


def test_final_scores_tell_runs_apart_by_every_axis() -> None:
    base = frame({0: [1.0]})
    others = [
        base.assign(**{axis: value, "score": 5.0})
        for axis, value in {
            "env": "f",
            "method": "n",
            "mode": "state-only",
            "rate": 5,
            "demos": 4,
            "seed": 1,
        }.items()
    ]
    final = final_scores(pd.concat([base, *others]), 20)
    assert len(final) == 7 and sorted(final["score"]) == [1.0] + [5.0] * 6

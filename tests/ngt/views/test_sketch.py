"""Learning curves as text."""

from __future__ import annotations

from typing import Any

import pytest

from ngt.runs.keys import RunKey
from ngt.views import sketch
from ngt.views.progress import Progress
from ngt.views.sketch import ASCII, BLOCKS, draw, spark


def test_a_curve_by_hand() -> None:
    curve = {25: 0.0, 50: 0.5, 75: 2.0}
    assert spark(curve, 100, 0.0, 1.0, 4, BLOCKS) == "▁▅█ "
    assert spark(curve, 100, 0.0, 1.0, 8, ASCII) == " __==#  "
    assert spark({100: -9.0}, 100, 0.0, 1.0, 4, BLOCKS) == "   ▁"
    assert spark({}, 100, 0.0, 1.0, 4, BLOCKS) == "    "
    assert spark({10: 3.0, 100: 3.0}, 100, 3.0, 3.0, 3, BLOCKS) == "▁▁▁", "a flat curve"


def test_runs_in_training(
    progress: Progress, keys: list[RunKey], begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check means over the runs that have reached a step, as scores and as returns."""
    first, second = map(begin, keys)
    for writer, values in ((first, (-1000.0, -600.0)), (second, (-800.0,))):
        for step, value in zip((50, 100), values, strict=False):
            writer.evaluation(step, [value, value], [200, 200])
    begun = progress.look()
    monkeypatch.setattr(Progress, "reference", lambda *_: (-1000.0, -200.0))
    head, env, line = draw(progress, begun, "two runs", 80, None)
    assert head.endswith("two runs") and "1 = expert" in env
    assert line.startswith("  ngt/state-action-demos1-rate20  2/2   75% |")
    assert line.endswith("| 0.375"), "the mean of 0.5 and 0.25"
    curve = line.split("|")[1]
    half = len(curve) // 2
    assert set(curve[: half - 1]) == {" "} and curve[half] == "▂" and curve[-1] == "▅"

    monkeypatch.setattr(Progress, "reference", lambda *_: None)
    _, env, line = draw(progress, begun, "", 80, None)
    assert env == "Pendulum-v1: mean return (-900 to -600)" and line.endswith("| -700")
    monkeypatch.setattr(sketch, "encodable", lambda _: False)
    assert all(row.isascii() for row in draw(progress, begun, "", 80, None))


def test_what_does_not_fit_is_counted(progress: Progress, keys: list[RunKey], begin: Any) -> None:
    for key in keys:
        begin(key).evaluation(50, [1.0, 1.0], [9, 9])
    begun = progress.look()
    assert len(draw(progress, begun, "", 80, 3)) == 3
    short = draw(progress, begun, "", 30, 2)
    assert short[1].startswith("... 2 more lines") and max(map(len, short)) <= 30

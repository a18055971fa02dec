"""Tests of progress, shown as a bar on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import io
import time

import pytest

from ngt.training.progress import Progress, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace `time.monotonic` and return a list whose only item sets its time."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_off_a_terminal(clock: list[float]) -> None:
    out = io.StringIO()
    progress = Progress(1000, "ngt Hopper-v4 x3", out)
    progress.update(4)
    clock[0] += 14.0
    progress.update(100)
    assert out.getvalue() == "", "no line must be printed so early"
    clock[0] += 6.0
    progress.update(200)
    line = "ngt Hopper-v4 x3: step 200/1000, 10 steps/s, return -, 0:01:20 left\n"
    assert out.getvalue() == line
    progress.note = "return 12.5"
    clock[0] += 1.0
    progress.update(210)
    assert out.getvalue() == line, "no line must be printed so soon after the last"
    clock[0] += 19.0
    progress.update(400)
    line += "ngt Hopper-v4 x3: step 400/1000, 10 steps/s, return 12.5, 0:01:00 left\n"
    assert out.getvalue() == line
    clock[0] += 60.0
    progress.update(1000)
    progress.update(1000)
    progress.close()
    line += "ngt Hopper-v4 x3: step 1000/1000, 10 steps/s, return 12.5, 0:00:00 left\n"
    assert out.getvalue() == line, "the last line must appear once"
    assert "\r" not in line and "\x1b" not in line, "logs must contain no control characters"


def test_a_run_that_ends_early_says_where(clock: list[float]) -> None:
    out = io.StringIO()
    progress = Progress(1000, "bc", out)
    clock[0] += 2.0
    progress.update(100)
    progress.close()
    assert out.getvalue() == "bc: step 100/1000, 50 steps/s, return -, 0:00:18 left\n"


def test_a_run_that_goes_on_counts_its_own_steps(clock: list[float]) -> None:
    out = io.StringIO()
    progress = Progress(1000, "bc", out, first=400)
    clock[0] += 20.0
    progress.update(600)
    assert out.getvalue() == "bc: step 600/1000, 10 steps/s, return -, 0:00:40 left\n"


def test_no_step_yet(clock: list[float]) -> None:
    out = io.StringIO()
    progress = Progress(1000, "bc", out)
    clock[0] += 20.0
    progress.update(0)
    assert out.getvalue() == "bc: step 0/1000, 0 steps/s, return -, ? left\n"


def test_a_bar_on_a_terminal() -> None:
    out = Terminal()
    progress = Progress(10, "ngt", out)
    for step in range(1, 11):
        progress.note = f"return {step}.5"
        progress.update(step)
    progress.close()
    assert "ngt" in out.getvalue() and "\r" in out.getvalue()
    last = out.getvalue().split("\r")[-1]
    assert "10/10" in last and "return 10.5" in last
    assert out.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00"), (59.6, "0:01:00"), (3723, "1:02:03"), (360000, "100:00:00"), (-1, "0:00:00")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text

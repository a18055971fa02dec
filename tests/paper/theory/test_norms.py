"""The product of the predictor's layer norms during training."""

from __future__ import annotations

import pytest

from paper.theory import norms


def test_more_iterations_bring_the_product_closer_to_one() -> None:
    one, three = (norms.products(iterations=n, updates=30) for n in norms.ITERATIONS)
    assert one.shape == three.shape == (30,)
    assert 1.0 < three.max() < one.max() and one.min() > 0.99
    assert (norms.products(iterations=1, updates=30) == one).all(), (
        "the same seed must give the same numbers"
    )


def test_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the printed table: the largest product and the mean of the last products."""
    monkeypatch.setattr(norms, "LAST", 2)
    monkeypatch.setattr(norms, "PAIRINGS", ("huber",))
    monkeypatch.setattr(norms, "products", lambda pairing, n: norms.np.array([2.0, 1.5, n / 10]))
    norms.main()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows == ["| huber | 1 | 2.00 | 0.80 |", "| huber | 3 | 2.00 | 0.90 |"]

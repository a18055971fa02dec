"""The maps of a potential: repeated training, the steps of the maps, and the shipped file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ngt.errors import UserError
from paper.numbers import potential
from paper.register import POTENTIAL

ROOT = Path(__file__).resolve().parents[3]


def test_a_training_gives_the_same_maps_each_time(tmp_path: Path) -> None:
    first, again = potential.train(80), potential.train(80)
    assert first.step.tolist() == [4, 16, 40, 80]
    assert first.potential.shape == (4, len(potential.VELOCITIES), len(potential.ANGLES))
    for name, value in vars(first).items():
        np.testing.assert_array_equal(value, vars(again)[name])
    assert np.isfinite(first.agent[:, :, 0]).sum(axis=1).tolist() == [4, 16, 40, 80]
    assert not np.array_equal(first.potential[0], first.potential[-1])
    potential.save(tmp_path / "maps.npz", first)
    read = potential.load(tmp_path / "maps.npz")
    np.testing.assert_allclose(read.potential, first.potential, rtol=1e-6)


def test_what_ships_is_low_at_the_expert() -> None:
    """Check that each shipped map is lowest at the expert's balance point."""
    maps = potential.load(Path(POTENTIAL))
    assert maps.step.tolist() == [part * potential.STEPS for part in potential.MOMENTS]
    for h in maps.potential:
        velocity, angle = np.unravel_index(h.argmin(), h.shape)
        assert abs(potential.ANGLES[angle]) < 1.0 and abs(potential.VELOCITIES[velocity]) < 2.0
    assert np.abs(maps.agent[-1]).mean() < 0.3 < 1.0 < np.nanmean(np.abs(maps.agent[0]))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="write it again with"):
        potential.load(tmp_path / "none.npz")

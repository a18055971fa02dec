"""The GPU check: what of it needs no device."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
import torch

from ngt.bench import gpu

ROOT = Path(__file__).resolve().parents[3]


def test_products_are_those_of_an_update() -> None:
    """SAC by hand: 5 forward passes of three layers, and what their gradients need.

    Forward: actor and target at next_obs, critic; then actor, critic. Backward: the critic's
    weights (3) and inner inputs (2); the frozen critic's inputs (3); the actor's weights (3) and
    inner inputs (2).
    """
    shapes = gpu.products("SAC", "Hopper-v4", 2)
    assert len(shapes) == 5 * 3 + 5 + 3 + 5
    assert ((2, 256, 11), (2, 11, 256)) in shapes, "the actor's first layer, two runs"
    assert ((4, 256, 14), (4, 14, 256)) in shapes, "the twin critics' first, stacked"
    assert all(a[0] == b[0] and a[2] == b[1] for a, b in shapes)


def test_cells_are_the_papers() -> None:
    assert gpu.cell_of("NGT", "Humanoid-v4").params == {"pairing": "hl_gauss"}
    assert gpu.cell_of("NGT", "Walker2d-v4").params == {"pairing": "huber"}
    assert gpu.cell_of("DAC", "Humanoid-v4").params == {}


def test_parameters_of_a_pack_in_one_row() -> None:
    made, replay = gpu.learner("DAC", "Hopper-v4", 1, "cpu", filled=300)
    assert replay.size == 300
    row = gpu.parameters(made)
    count = sum(p.numel() for n in (made.agent, made.model) for p in n.parameters())
    assert row.shape == (count,) and row.dtype == torch.float64


@pytest.mark.slow
def test_it_needs_no_package_but_those_that_it_names() -> None:
    """A process that lacks every other package of the project makes each kind of measurement."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.match(r"[\w-]+", text)[0].replace("-", "_") for text in listed}  # type: ignore[index]
    names = names - {"pillow", "pyyaml"} | {"PIL", "yaml"}
    needed = {name for name in names if re.search(rf"\b{name}\b", gpu.__doc__ or "")}
    assert {"torch", "einops", "safetensors"} <= needed < names
    lacking = names - needed - {"packaging"}  # which gymnasium[mujoco] brings
    code = f"""
        import sys
        sys.modules.update(dict.fromkeys({sorted(lacking)}))  # each import of them fails
        from ngt import gpucheck
        gpucheck.products("NGT", "Hopper-v4", 2), gpucheck.products("DAC", "Hopper-v4", 2)
        print(gpucheck.training("SAC", "Hopper-v4", 1, 1004, 1, "cpu"))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

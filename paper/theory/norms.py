"""Measure how far the norms of the predictor's layers exceed 1 in spite of spectral norm.

Spectral norm divides a layer's weights by an estimate of the layer's norm. Power iterations compute
this estimate, which lags behind the weights during training. `python -m paper.theory.norms` trains
a potential on demonstrations of HalfCheetah-v4 and prints a table with the product of the layers'
exact norms. The command takes about five minutes on one core and is seeded.
"""

from __future__ import annotations

import numpy as np
import torch

from ngt.agent.streams import torch_generator
from ngt.experience import demos
from ngt.experience.replay import Batch
from ngt.potential import Potential, PotentialConfig
from ngt.reward import Spec
from paper.theory.bounds import Floats
from paper.theory.study import DEMOS, PAIRINGS

UPDATES, LAST = 1000, 100  # number of updates; the table shows the mean over the last 100
ITERATIONS = (1, 3)  # power iterations per update
BATCH = 256
EPISODES, RATE = 4, 20  # 4 demonstrations, with every 20th transition


def products(
    pairing: str = "huber",
    iterations: int = PotentialConfig.power_iterations,
    updates: int = UPDATES,
) -> Floats:
    """Train a potential; after each update, measure the product of its predictor's layer norms.

    Return the products, shape (updates,), which are computed from exact norms. The expert's batches
    are transitions of the demonstrations. The agent's batches consist of states of the
    demonstrations, with added noise of the states' standard deviation, and of uniform actions.
    """
    torch.set_num_threads(1)
    data = demos.subsample(demos.load(DEMOS, "HalfCheetah-v4"), EPISODES, RATE, 0, where=str(DEMOS))
    obs, action = data.obs[0], data.action[0]
    config = PotentialConfig(pairing=pairing, power_iterations=iterations)  # type: ignore[arg-type]
    spec = Spec(obs.shape[1], action.shape[1], "state-action", BATCH, (0,), 1000, 4, 0.99)
    model, generator = Potential(config, spec), torch_generator(0, "theory", "norms")
    found = []
    for _ in range(updates):
        rows, other = torch.randint(len(obs), (2, BATCH), generator=generator)
        noise = torch.randn(BATCH, obs.shape[1], generator=generator) * obs.std(0)
        uniform = 2.0 * torch.rand(BATCH, action.shape[1], generator=generator) - 1.0
        expert, agent = _batch(obs[rows], action[rows]), _batch(obs[other] + noise, uniform)
        model.update(agent, expert)
        found.append(model.predictor.lipschitz().item())
    return np.array(found)


def _batch(obs: torch.Tensor, action: torch.Tensor) -> Batch:
    zero = torch.zeros(1, len(obs))
    return Batch(obs[None], action[None], obs[None], zero, zero)


def main() -> None:
    """Print, for each pairing loss, the largest product and the mean of the last products."""
    print(f"| pairing | power iterations per update | largest | mean of the last {LAST} |")
    print("| --- | --- | --- | --- |")
    for pairing in PAIRINGS:
        for iterations in ITERATIONS:
            found = products(pairing, iterations)
            shown = f"{found.max():.2f} | {found[-LAST:].mean():.2f}"
            print(f"| {pairing} | {iterations} | {shown} |", flush=True)


if __name__ == "__main__":
    main()

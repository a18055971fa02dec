"""The numbers of the theory's table and figure. They are seeded and take about 15 s on one core.

The expert's samples are transitions of the shipped demonstrations of HalfCheetah-v4. The agent's
samples have the same states plus noise with the states' standard deviation, and uniform actions.
"""

import functools
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ngt.agent.nets import PackedMLP
from ngt.experience import demos
from ngt.experience.replay import Batch
from ngt.potential import (
    Potential,
    PotentialConfig,
    hl_gauss,
    hl_gauss_edges,
    hl_gauss_target,
)
from ngt.reward import Spec
from ngt.seeding import rng, torch_generator
from paper.theory import bounds
from paper.theory.bounds import Floats, Slopes

DEMOS = Path(__file__).resolve().parents[2] / "data" / "HalfCheetah-v4" / "demos.npz"
PAIRINGS = ("huber", "mse_softmax", "hl_gauss")
SAMPLES = 64  # number of samples of the expert, and of samples of the agent
STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300)  # updates after which a potential is measured
BINS = (2, 5, 21, 51, 101)
WIDTH = 2.0  # width of the support [-1, 1]
SIGMAS = np.geomspace(0.01, 10.0, 121)
SIZES = (5, 10, 20, 40, 64)  # sizes of both samples, if they come from one law
DRAWS = 10  # number of pairs of samples of each size
COINS = 20  # number of coin flips or uniform numbers in each sample
TRIALS = 100_000  # trials of the Monte Carlo estimate


@dataclass(frozen=True)
class Hlg:
    """Constants of HL-Gauss over BINS (rows) and SIGMAS (columns)."""

    slope: Floats  # exact Lipschitz constant in the logits
    mass: Floats  # exact p_max
    estimate: Floats  # the estimate of p_max (Lemma pmax)
    bound_p_max: Floats  # the bound of Theorem pmax
    bound_sigma: Floats  # the bound of Theorem sigma


@dataclass(frozen=True)
class Training:
    """A potential trained on L over the two samples, measured after STEPS updates."""

    dual: Floats  # dual value of h / Lambda(h), with Lambda on the samples
    objective: Floats  # -L, the training objective
    gradient: Floats  # largest |dh/dx| on the samples and between them
    pairs: Floats  # largest |h(x) - h(y)| / |x - y| over the same points
    product: Floats  # Lambda(l) (Lambda(f) + Lambda(f'))
    chain: Floats  # the bound argument by argument, from `Slopes.potential`
    layer: Floats  # largest spectral norm of a predictor's layer


@dataclass(frozen=True)
class Layers:
    """Freshly initialised layers of the prior (orthogonal), by depth."""

    shapes: tuple[tuple[int, int], ...]  # (in, out)
    singular: tuple[Floats, ...]  # singular values
    least_gain: Floats  # smallest |x W| / |x|
    change: Floats  # largest change of a weight by spectral norm
    local: float  # largest slope of the whole net at the samples


@dataclass(frozen=True)
class Study:
    """All numbers of the theory's table and figure."""

    config: PotentialConfig
    inputs: int  # dimensions of a sample
    emd: float  # earth mover's distance between the two samples
    hlg: Hlg
    trainings: dict[str, Training]  # by pairing
    layers: Layers
    twin: tuple[float, float]  # the product and the largest slope, if predictor and prior agree
    target: Floats  # slope of the HL-Gauss loss in t by autograd, over SIGMAS
    target_agent: float  # slope of the HL-Gauss loss in t at the agent's sigma
    one_law: Floats  # earth mover's distances of two samples from one law, (SIZES, DRAWS)
    epsilon: Floats  # k / COINS for k = 1 to COINS
    coins: Floats  # exact P(|L^ - L| >= epsilon) for fair coins
    uniform: Floats  # Monte Carlo estimate of P(|L^ - L| >= epsilon) for uniform laws
    far: tuple[float, float]  # earth mover's distance of two points, largest difference of h


@functools.cache
def study() -> Study:
    """Compute all numbers on one thread. More threads are slower and change the numbers."""
    torch.set_num_threads(1)
    config = PotentialConfig()
    expert, agent = samples()
    epsilon = np.arange(1, COINS + 1) / COINS
    return Study(
        config=config,
        inputs=expert.shape[-1],
        emd=bounds.emd(expert.numpy(), agent.numpy()),
        hlg=hlg(),
        trainings={pairing: train(pairing, expert, agent) for pairing in PAIRINGS},
        layers=layers(torch.cat([expert, agent])),
        twin=twin(torch.cat([expert, agent])),
        target=np.array([target_slope(config, float(sigma)) for sigma in SIGMAS]),
        target_agent=target_slope(config, config.sigma_agent),
        one_law=one_law(expert.shape[-1]),
        epsilon=epsilon,
        coins=np.array([bounds.coin_deviation(COINS, k) for k in range(1, COINS + 1)]),
        uniform=uniform(epsilon),
        far=far(config),
    )


def samples() -> tuple[Tensor, Tensor]:
    """Return the inputs (s, a) of expert and agent, each of shape (SAMPLES, 23), float64."""
    batch = demos.subsample(demos.load(DEMOS, "HalfCheetah-v4"), 4, 20, 0, where=str(DEMOS))
    draw = rng(0, "theory", "samples")
    row = np.sort(draw.choice(batch.obs.shape[1], SAMPLES, replace=False))
    obs, action = batch.obs[0, row].double(), batch.action[0, row].double()
    noise = torch.from_numpy(draw.standard_normal(obs.shape)) * obs.std(0)
    uniform = torch.from_numpy(draw.uniform(-1.0, 1.0, action.shape))
    return torch.cat([obs, action], 1), torch.cat([obs + noise, uniform], 1)


def hlg() -> Hlg:
    """Return the bounds on HL-Gauss and the values that they bound, on the grid."""
    grid = [[(n, WIDTH, float(s)) for s in SIGMAS] for n in BINS]
    mass = np.array([[bounds.p_max(*c) for c in row] for row in grid])
    return Hlg(
        slope=np.array([[bounds.hlg_slope(*c) for c in row] for row in grid]),
        mass=mass,
        estimate=np.array([[bounds.p_max_estimate(*c) for c in row] for row in grid]),
        bound_p_max=np.array(
            [[bounds.bound_p_max(n, p) for p in row] for n, row in zip(BINS, mass, strict=True)]
        ),
        bound_sigma=np.array([[bounds.bound_sigma(*c) for c in row] for row in grid]),
    )


# --- potentials


def build(inputs: int, **options: object) -> Potential:
    """Return an untrained potential of one run in float64."""
    spec = Spec(inputs, 0, "state-only", SAMPLES, (0,), 1000, 4, 0.99)
    return Potential(PotentialConfig(**options), spec).double()  # type: ignore[arg-type]


def slopes(model: Potential) -> Slopes:
    """Return the Lipschitz constants of a model's pairing loss in its nets' unsquashed outputs.

    HL-Gauss has the width that the reward uses.
    """
    c = model.config
    if c.pairing == "huber":
        pair = bounds.huber_slopes(c.m, c.delta)
    elif c.pairing == "mse_softmax":
        pair = bounds.mse_softmax_slopes()
    else:
        sigma = c.sigma_expert if c.reward_sigma == "expert" else c.sigma_agent
        pair = bounds.hl_gauss_slopes(c.m, c.bins, 2.0 * c.support, sigma, c.rescale)
    return pair.squashed(c.rescale, target_scale(model))


def target_scale(model: Potential) -> float:
    """Return the largest absolute value of a squashed target. HL-Gauss squashes by tanh alone."""
    return 1.0 if model.config.pairing == "hl_gauss" else model.config.rescale


def potential(model: Potential, x: Tensor) -> Tensor:
    """Return the reward's h(x), shape (R, B), for inputs x of shape (R, B, input).

    It has the full gradient in x. `Potential.potential` lacks the gradient through the prior.
    """
    target = target_scale(model) * torch.tanh(model.prior(x))
    return model._pair(model.prediction(x), target, model.config.reward_sigma)


def train(pairing: str, expert: Tensor, agent: Tensor) -> Training:
    """Train a potential on L over all samples, and measure it after STEPS updates."""
    model = build(expert.shape[-1], pairing=pairing)
    slope = slopes(model)
    weight = torch.from_numpy(rng(0, "theory", "between").random((SAMPLES, 1)))
    points = torch.cat([expert, agent, weight * expert + (1.0 - weight) * agent])
    batches = [_batch(agent), _batch(expert)]
    rows: list[tuple[float, ...]] = []
    for step in range(STEPS[-1] + 1):
        if step in STEPS:
            h, gradient = _gradient(model, points)
            at_expert, at_agent = h[:SAMPLES], h[SAMPLES : 2 * SAMPLES]
            with torch.no_grad():
                value = -model.loss(*batches).item()
            predictor, prior = model.predictor.lipschitz().item(), model.prior.lipschitz().item()
            norms = [torch.linalg.matrix_norm(w.matrix(), 2).item() for w in model.predictor.layers]
            rows.append(
                (
                    bounds.dual_value(expert.numpy(), agent.numpy(), at_expert, at_agent),
                    value,
                    gradient,
                    bounds.slope_on(points.numpy(), h),
                    max(slope) * (predictor + prior),
                    slope.potential(predictor, prior),
                    max(norms),
                )
            )
        model.update(*batches)
    return Training(*np.array(rows).T)


def _batch(x: Tensor) -> Batch:
    zero = torch.zeros(1, len(x), dtype=x.dtype)
    return Batch(x[None], x[None, :, :0], x[None], zero, zero)


def _gradient(model: Potential, points: Tensor) -> tuple[Floats, float]:
    """Return the reward's h (n,) at points (n, input), and its largest gradient norm."""
    x = points[None].clone().requires_grad_()
    h = potential(model, x)
    (gradient,) = torch.autograd.grad(h.sum(), x)
    return h[0].detach().numpy(), gradient.norm(dim=-1).max().item()


def twin(points: Tensor) -> tuple[float, float]:
    """Return the bound on Lambda(h) and the largest slope of h, if predictor and prior agree."""
    model = build(points.shape[-1], spectral_norm=False)
    with torch.no_grad():
        for mine, other in zip(model.predictor.layers, model.prior.layers, strict=True):
            mine.weight.copy_(other.weight)
    product = slopes(model).potential(
        model.predictor.lipschitz().item(), model.prior.lipschitz().item()
    )
    return product, _gradient(model, points)[1]


def layers(points: Tensor) -> Layers:
    """Measure orthogonally initialised layers, before and after spectral norm."""
    config = PotentialConfig()
    sizes = [points.shape[-1], *config.hidden, config.m]
    leaky = functools.partial(torch.nn.functional.leaky_relu_, negative_slope=config.leak)
    net = PackedMLP(sizes, [torch_generator(0, "theory", "prior")], activation=leaky).double()
    before = [layer.weight[0].detach().clone() for layer in net.layers]
    net.freeze(normalise=True)
    after = [layer.weight[0] for layer in net.layers]
    return Layers(
        shapes=tuple(itertools.pairwise(sizes)),
        singular=tuple(torch.linalg.svdvals(w).numpy() for w in before),
        # The smallest |x W| over unit vectors x: 0 if W has fewer columns than rows.
        least_gain=np.array(
            [torch.linalg.eigvalsh(w @ w.mT).clamp(min=0.0).min().sqrt().item() for w in before]
        ),
        change=np.array([(a - b).abs().max().item() for a, b in zip(after, before, strict=True)]),
        local=local_slope(net, points),
    )


def local_slope(net: PackedMLP, points: Tensor) -> float:
    """Return the largest spectral norm of a one-run net's Jacobian at points (n, input)."""
    x = points[None].clone().requires_grad_()
    columns = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0] for column in net(x)[0].T]
    return float(torch.linalg.matrix_norm(torch.cat(columns).transpose(0, 1), 2).max())


def target_slope(config: PotentialConfig, sigma: float) -> float:
    """Return |dl/dt| of HL-Gauss, with t on an inner edge between logits of opposite signs."""
    edges = hl_gauss_edges(-config.support, config.support, config.bins).double()
    inner = config.bins // 2
    logits = torch.where(torch.arange(config.bins) < inner, -config.rescale, config.rescale)
    t = edges[inner : inner + 1].clone().requires_grad_()
    loss = hl_gauss(logits.double(), hl_gauss_target(t, edges, sigma))
    (gradient,) = torch.autograd.grad(loss, t)
    return abs(gradient.item())


# --- laws


def one_law(dim: int) -> Floats:
    """Return earth mover's distances of two samples from one law, shape (SIZES, DRAWS).

    The law is uniform on a cube of diameter 1.
    """
    side = dim**-0.5
    draw = rng(0, "theory", "one law")
    return np.array(
        [[bounds.emd(*(draw.random((2, n, dim)) * side)) for _ in range(DRAWS)] for n in SIZES]
    )


def uniform(epsilon: Floats) -> Floats:
    """Return P(|L^ - L| >= epsilon) for samples of COINS uniform numbers on [0, 1], h(x) = x."""
    mean = rng(0, "theory", "uniform").random((2, TRIALS, COINS)).mean(-1)
    deviation = np.abs(mean[0] - mean[1])
    return np.array([(deviation >= e).mean() for e in epsilon])


def far(config: PotentialConfig) -> tuple[float, float]:
    """Return the distance of two far points, and the largest difference of Huber's squashed h."""
    x, y = np.zeros((1, 1)), np.full((1, 1), 100.0)
    return bounds.emd(x, y), bounds.largest_huber(config.rescale, config.delta)

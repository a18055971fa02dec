"""Compute the numbers for the table and the figure that check the paper's theorems.

The computation is seeded and takes about 15 s on one core. The expert's samples are transitions of
the shipped demonstrations of HalfCheetah-v4. The agent's samples consist of the same states, with
added noise of the states' standard deviation, and of uniform actions.
"""

import functools
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ngt.agent.nets import PackedMLP
from ngt.agent.streams import torch_generator
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
from ngt.seeding import rng
from paper.theory import bounds
from paper.theory.bounds import Floats, Slopes

DEMOS = Path(__file__).resolve().parents[2] / "data" / "HalfCheetah-v4" / "demos.npz"
PAIRINGS = ("huber", "mse_softmax", "hl_gauss")
SAMPLES = 64  # number of the expert's samples, and number of the agent's samples
STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300)  # numbers of updates after which h is measured
BINS = (2, 5, 21, 51, 101)
WIDTH = 2.0  # width of the support [-1, 1]
SIGMAS = np.geomspace(0.01, 10.0, 121)
SIZES = (5, 10, 20, 40, 64)  # sizes of two samples from the same law (distribution)
DRAWS = 10  # number of pairs of samples from the same law, for each size
COINS = 20  # size of each sample (coin flips or uniform numbers) in the check of the concentration
TRIALS = 100_000  # number of trials in the Monte Carlo estimate of the concentration


@dataclass(frozen=True)
class Hlg:
    """Constants of HL-Gauss. Each array has one row per entry of BINS and one column per sigma."""

    slope: Floats  # the loss's exact Lipschitz constant in the logits
    mass: Floats  # exact p_max, the largest mass of a bin
    estimate: Floats  # the estimate of p_max (Lemma pmax)
    bound_p_max: Floats  # the bound of Theorem pmax
    bound_sigma: Floats  # the bound of Theorem sigma


@dataclass(frozen=True)
class Training:
    """Measurements of a potential h while it is trained on the two samples with the objective L.

    Each array has one value per entry of STEPS.
    """

    dual: Floats  # dual value of h / Lambda(h), with Lambda(h) measured on the samples
    objective: Floats  # -L, the training objective
    gradient: Floats  # largest |dh/dx| on the samples and between them
    pairs: Floats  # largest |h(x) - h(y)| / |x - y| over the same points
    product: Floats  # the paper's bound Lambda(l) (Lambda(f) + Lambda(f'))
    chain: Floats  # the smaller bound `Slopes.potential`
    layer: Floats  # largest spectral norm of a layer of the predictor


@dataclass(frozen=True)
class Layers:
    """Measurements of the orthogonally initialised layers of a new prior, in order of depth."""

    shapes: tuple[tuple[int, int], ...]  # (in, out) of each layer
    singular: tuple[Floats, ...]  # singular values of each layer
    least_gain: Floats  # smallest |x W| / |x| over all x, by layer
    change: Floats  # largest change of a weight that spectral norm makes, by layer
    local: float  # largest slope of the whole net at a sample


@dataclass(frozen=True)
class Study:
    """All numbers for the table and the figure about the theory."""

    config: PotentialConfig
    inputs: int  # number of dimensions of a sample
    emd: float  # earth mover's distance between the two samples
    hlg: Hlg
    trainings: dict[str, Training]  # by pairing loss
    layers: Layers
    twin: tuple[float, float]  # bound on Lambda(h) and largest slope of h, if predictor = prior
    target: Floats  # slope of the HL-Gauss loss in its target t, by autograd, for each sigma
    target_agent: float  # the same slope for the agent's sigma
    one_law: Floats  # earth mover's distances between two samples from the same law, (SIZES, DRAWS)
    epsilon: Floats  # k / COINS for k = 1 to COINS
    coins: Floats  # exact P(|L^ - L| >= epsilon) for fair coins
    uniform: Floats  # Monte Carlo estimate of P(|L^ - L| >= epsilon) for uniform laws
    far: tuple[float, float]  # distance of two far points, and largest difference of h there


@functools.cache
def study() -> Study:
    """Compute and return all numbers, on one thread.

    More threads are slower and change the numbers.
    """
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
    """Return the expert's and the agent's inputs (s, a), each of shape (SAMPLES, 23), float64."""
    batch = demos.subsample(demos.load(DEMOS, "HalfCheetah-v4"), 4, 20, 0, where=str(DEMOS))
    draw = rng(0, "theory", "samples")
    row = np.sort(draw.choice(batch.obs.shape[1], SAMPLES, replace=False))
    obs, action = batch.obs[0, row].double(), batch.action[0, row].double()
    noise = torch.from_numpy(draw.standard_normal(obs.shape)) * obs.std(0)
    uniform = torch.from_numpy(draw.uniform(-1.0, 1.0, action.shape))
    return torch.cat([obs, action], 1), torch.cat([obs + noise, uniform], 1)


def hlg() -> Hlg:
    """Return HL-Gauss's exact constants and the bounds on them, for all BINS and SIGMAS."""
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
    """Return an untrained potential of one run in float64.

    options: the potential's settings that differ from the defaults.
    """
    spec = Spec(inputs, 0, "state-only", SAMPLES, (0,), 1000, 4, 0.99)
    return Potential(PotentialConfig(**options), spec).double()  # type: ignore[arg-type]


def slopes(model: Potential) -> Slopes:
    """Return the pairing loss's Lipschitz constants in the nets' outputs before squashing.

    For HL-Gauss, the loss has the sigma that the reward uses.
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
    """Return the largest absolute value of a squashed target.

    Targets of HL-Gauss are squashed by tanh without a scale.
    """
    return 1.0 if model.config.pairing == "hl_gauss" else model.config.rescale


def potential(model: Potential, x: Tensor) -> Tensor:
    """Return the potential h(x) as in the reward, shape (R, B), for inputs x (R, B, input).

    The gradient of this function in x is complete, whereas the gradient of `Potential.potential`
    lacks the part that flows through the prior.
    """
    target = target_scale(model) * torch.tanh(model.prior(x))
    return model._pair(model.prediction(x), target, model.config.reward_sigma)


def train(pairing: str, expert: Tensor, agent: Tensor) -> Training:
    """Train a potential with the objective L on all samples, and measure it at each of STEPS."""
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
    """Return h, shape (n,), at points (n, input), and the largest norm of its gradient."""
    x = points[None].clone().requires_grad_()
    h = potential(model, x)
    (gradient,) = torch.autograd.grad(h.sum(), x)
    return h[0].detach().numpy(), gradient.norm(dim=-1).max().item()


def twin(points: Tensor) -> tuple[float, float]:
    """Return the bound on Lambda(h), and the largest slope of h at the points.

    The potential's predictor has the same weights as its prior.
    """
    model = build(points.shape[-1], spectral_norm=False)
    with torch.no_grad():
        for mine, other in zip(model.predictor.layers, model.prior.layers, strict=True):
            mine.weight.copy_(other.weight)
    product = slopes(model).potential(
        model.predictor.lipschitz().item(), model.prior.lipschitz().item()
    )
    return product, _gradient(model, points)[1]


def layers(points: Tensor) -> Layers:
    """Measure orthogonally initialised layers before and after spectral norm.

    points: the inputs at which the net's slope is measured.
    """
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
        # The smallest |x W| over unit vectors x. It is 0 if W has fewer columns than rows.
        least_gain=np.array(
            [torch.linalg.eigvalsh(w @ w.mT).clamp(min=0.0).min().sqrt().item() for w in before]
        ),
        change=np.array([(a - b).abs().max().item() for a, b in zip(after, before, strict=True)]),
        local=local_slope(net, points),
    )


def local_slope(net: PackedMLP, points: Tensor) -> float:
    """Return the largest spectral norm of a net's Jacobian over points (n, input).

    net: the net of a single run.
    """
    x = points[None].clone().requires_grad_()
    columns = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0] for column in net(x)[0].T]
    return float(torch.linalg.matrix_norm(torch.cat(columns).transpose(0, 1), 2).max())


def target_slope(config: PotentialConfig, sigma: float) -> float:
    """Return |dl/dt| of the HL-Gauss loss l in its target t, computed by autograd.

    t is on an edge between two inner bins. The logits below this edge and those above it have
    opposite signs, so that the slope is large.
    """
    edges = hl_gauss_edges(-config.support, config.support, config.bins).double()
    inner = config.bins // 2
    logits = torch.where(torch.arange(config.bins) < inner, -config.rescale, config.rescale)
    t = edges[inner : inner + 1].clone().requires_grad_()
    loss = hl_gauss(logits.double(), hl_gauss_target(t, edges, sigma))
    (gradient,) = torch.autograd.grad(loss, t)
    return abs(gradient.item())


# --- laws


def one_law(dim: int) -> Floats:
    """Return the earth mover's distances between pairs of samples from the same law.

    The result has shape (SIZES, DRAWS). The law is uniform on a cube of diameter 1.
    """
    side = dim**-0.5
    draw = rng(0, "theory", "one law")
    return np.array(
        [[bounds.emd(*(draw.random((2, n, dim)) * side)) for _ in range(DRAWS)] for n in SIZES]
    )


def uniform(epsilon: Floats) -> Floats:
    """Estimate P(|L^ - L| >= epsilon) by Monte Carlo, for each epsilon.

    Both samples are COINS uniform numbers in [0, 1], and h(x) = x.
    """
    mean = rng(0, "theory", "uniform").random((2, TRIALS, COINS)).mean(-1)
    deviation = np.abs(mean[0] - mean[1])
    return np.array([(deviation >= e).mean() for e in epsilon])


def far(config: PotentialConfig) -> tuple[float, float]:
    """Return the distance of two far points, and the largest possible difference of h.

    h uses the Huber pairing loss and squashed outputs.
    """
    x, y = np.zeros((1, 1)), np.full((1, 1), 100.0)
    return bounds.emd(x, y), bounds.largest_huber(config.rescale, config.delta)

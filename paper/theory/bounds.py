"""The paper's theorems as functions: the bounds that they claim, and the exact values.

Lipschitz constants are with respect to Euclidean norms. All numbers are float64; none is random.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import eye_array, kron, vstack
from scipy.spatial.distance import cdist, pdist
from scipy.special import erf
from scipy.stats import binom

Floats = NDArray[np.float64]
Relation = Literal["<=", ">=", "=="]  # claimed relation of a found value to the claimed value
Verdict = Literal["holds", "loose", "false"]

TIGHT = 2.0  # a bound is loose if it is off by more than this factor

# --- verdicts


def slack(claimed: ArrayLike, found: ArrayLike, relation: Relation) -> float:
    """Return the largest factor by which a bound exceeds the value that it bounds, over all pairs.

    claimed, found: arrays of claimed values and of the values found for them.
    relation: the claimed relation, which says whether the claimed or the found value is the bound.
    """
    c, f = np.broadcast_arrays(np.asarray(claimed, float), np.asarray(found, float))
    bound, bounded = (f, c) if relation == ">=" else (c, f)
    with np.errstate(divide="ignore"):
        return float(np.max(bound / bounded))  # inf if a bounded value is 0


def judge(
    claimed: ArrayLike, found: ArrayLike, relation: Relation, tolerance: float = 1e-9
) -> Verdict:
    """Return the verdict on a statement such as `found <= claimed`, over all pairs in the arrays.

    false: a pair breaks the relation by more than the relative tolerance.
    loose: no pair breaks the relation, but a bound is off by more than the factor TIGHT.
    holds: otherwise.
    """
    c, f = np.broadcast_arrays(np.asarray(claimed, float), np.asarray(found, float))
    if not (np.isfinite(c).all() and np.isfinite(f).all() and c.size):
        raise ValueError("a verdict needs finite numbers, at least one")
    room = tolerance * np.maximum(np.abs(c), np.abs(f))
    above, below = (f > c + room).any(), (f < c - room).any()
    if (above and relation != ">=") or (below and relation != "<="):
        return "false"
    return "holds" if relation == "==" or slack(c, f, relation) <= TIGHT else "loose"


# --- HL-Gauss (the paper's Definition def): N = `bins` bins on an interval (the support) of the
# given width; `sigma` is the width of the Gaussian. ds = width / bins is the width of a bin.


def hlg_probs(t: ArrayLike, bins: int, width: float, sigma: float) -> Floats:
    """Return the masses p_i(t) of the N bins for targets t of shape (...), shape (..., N).

    t is in [0, width], measured from the lower end of the support. The code that trains also adds
    1e-6 to the mass (`ngt.potential.HLG_EPS`), which this function leaves out.
    """
    edges = np.linspace(0.0, width, bins + 1)
    z = erf((edges - np.asarray(t, float)[..., None]) / (math.sqrt(2.0) * sigma))
    return np.diff(z, axis=-1) / (z[..., -1:] - z[..., :1])


def p_max(bins: int, width: float, sigma: float) -> float:
    """Return the largest mass that a bin can have, over all targets t.

    This is the mass of the first bin if t is on the edge of the support, where half of the Gaussian
    is cut off: (Phi(ds/sigma) - 1/2) / (Phi(width/sigma) - 1/2), where Phi is the normal cdf.
    """
    root = math.sqrt(2.0) * sigma
    return math.erf(width / bins / root) / math.erf(width / root)


def p_max_estimate(bins: int, width: float, sigma: float) -> float:
    """Return the estimate ds / (sigma sqrt(2 pi)) of p_max (Lemma pmax)."""
    return width / bins / (sigma * math.sqrt(2.0 * math.pi))


def hlg_slope(bins: int, width: float, sigma: float) -> float:
    """Return the exact Lipschitz constant of the HL-Gauss loss in its logits: sup |q - p(t)|.

    q is the softmax of the logits. The norm is convex in q, so its supremum is the limit in which q
    has all its mass on the bin with the least p. The maximum over t is reached with t on one edge
    of the support and q on the bin at the other edge.
    """
    p = hlg_probs(0.0, bins, width, sigma)
    return math.sqrt(1.0 - 2.0 * p.min() + p @ p)


def bound_p_max(bins: int, mass: float) -> float:
    """Return the bound sqrt(1 + (N - 1) p_max^2) on `hlg_slope` (Theorem pmax).

    mass: p_max.
    """
    return math.sqrt(1.0 + (bins - 1) * mass**2)


def bound_sigma(bins: int, width: float, sigma: float) -> float:
    """Return the bound sqrt(1 + (C/sigma)^2) on `hlg_slope` (Theorem sigma).

    C is ds sqrt((N - 1) / (2 pi)).
    """
    return bound_p_max(bins, p_max_estimate(bins, width, sigma))


def bound_mass(mass: float) -> float:
    """Return our bound sqrt(1 + p_max) on `hlg_slope`, which is at most sqrt(2).

    The bound follows from |q - p|^2 <= 1 + |p|^2 and |p|^2 <= p_max.

    mass: p_max.
    """
    return math.sqrt(1.0 + mass)


def hlg_target_slope(sigma: float, logit: float) -> float:
    """Return the Lipschitz constant of the HL-Gauss loss l in its target t.

    With logits x_i in [-logit, logit],
    |dl/dt| = |sum_i p_i'(t) x_i| <= logit sum_i |p_i'(t)| <= logit sqrt(2/pi) / sigma. The bound is
    reached if t is on an edge between two bins far from the ends of the support, and the logits
    have opposite signs on the two sides of this edge. If the logits have no limit, there is no
    bound.
    """
    return logit * math.sqrt(2.0 / math.pi) / sigma


# --- pairing losses, summed or averaged over the m outputs as in training


class Slopes(NamedTuple):
    """Lipschitz constants of a pairing loss in each argument, with the other argument fixed."""

    prediction: float
    target: float

    def squashed(self, prediction: float, target: float) -> Slopes:
        """Return the constants of the loss if both arguments are first passed through scale * tanh.

        prediction, target: the scale of each argument.
        """
        return Slopes(self.prediction * prediction, self.target * target)

    def potential(self, predictor: float, prior: float) -> float:
        """Return the bound on the potential's constant Lambda(h) by the chain rule.

        This bound is at most the paper's Lambda(l) (Lambda(f) + Lambda(f')) (Theorem hlip). There,
        Lambda(l) is the larger of the two constants of the loss, for the norm |u| + |v| of a pair
        (u, v).

        predictor, prior: the Lipschitz constants Lambda(f) and Lambda(f') of the nets.
        """
        return self.prediction * predictor + self.target * prior


def huber_slopes(m: int, delta: float = 1.0) -> Slopes:
    """Return the constants of the mean Huber loss over m outputs.

    The loss's derivative in each output is at most delta / m.
    """
    return Slopes(delta / math.sqrt(m), delta / math.sqrt(m))


def mse_softmax_slopes() -> Slopes:
    """Return the constants of MSE-softmax, which are 16 sqrt(2) / 27 for all m >= 2 outputs.

    MSE-softmax is the squared distance of the softmaxes p and q of prediction and target. Its
    gradient is 2 J(p) (p - q), where J is the softmax's Jacobian. The gradient's norm is largest if
    q has all its mass on one output, and p has the mass x there and 1 - x on another output. The
    norm is then 4 sqrt(2) x (1 - x)^2, with its maximum at x = 1/3. That no other p exceeds this
    value is tested, but not proved. The bounds |J| <= 1/2 and |p - q| <= sqrt(2) prove only the
    constant sqrt(2).
    """
    return Slopes(16.0 * math.sqrt(2.0) / 27.0, 16.0 * math.sqrt(2.0) / 27.0)


def hl_gauss_slopes(m: int, bins: int, width: float, sigma: float, logit: float) -> Slopes:
    """Return the constants of HL-Gauss's mean over m outputs, for logits in [-logit, logit].

    Each output is a distribution over N bins.
    """
    units = math.sqrt(m)
    return Slopes(hlg_slope(bins, width, sigma) / units, hlg_target_slope(sigma, logit) / units)


def largest_huber(scale: float, delta: float = 1.0) -> float:
    """Return the largest mean Huber loss between two vectors in the range of scale * tanh."""
    gap = 2.0 * scale
    return gap**2 / 2.0 if gap <= delta else delta * (gap - delta / 2.0)


# --- concentration of the empirical objective (Theorem rewloss)


def concentration_bound(
    epsilon: ArrayLike, n: ArrayLike, slope: float = 1.0, diameter: float = 1.0
) -> Floats:
    """Return exp(-eps^2 n / (Lambda diam)^2), McDiarmid's bound on P(L^ - L >= eps).

    n: the size of each of the two samples.
    slope, diameter: Lambda and diam.
    """
    e, size = np.asarray(epsilon, float), np.asarray(n, float)
    return np.exp(-(e**2) * size / (slope * diameter) ** 2)


def two_sided_bound(
    epsilon: ArrayLike, n: ArrayLike, slope: float = 1.0, diameter: float = 1.0
) -> Floats:
    """Return McDiarmid's bound on P(|L^ - L| >= eps): twice `concentration_bound`, at most 1."""
    return np.minimum(1.0, 2.0 * concentration_bound(epsilon, n, slope, diameter))


def coin_deviation(n: int, k: int) -> float:
    """Return the exact P(|L^ - L| >= k/n) if both samples are n flips of a fair coin.

    A flip is 0 or 1, and h(x) = x. Then L is 0, and n L^ + n is distributed like the number of
    heads among 2n flips.
    """
    return float(2.0 * binom.sf(n + k - 1, 2 * n, 0.5)) if k > 0 else 1.0


# --- duality (eq. emdeq)


def emd(x: Floats, y: Floats, a: Floats | None = None, b: Floats | None = None) -> float:
    """Return the exact earth mover's distance between two sets of points, (n, d) and (k, d).

    The cost is the Euclidean distance. A linear program finds the optimal transport plan.

    a (n,), b (k,): the weights of the points, which sum to one; uniform by default.
    """
    n, k = len(x), len(y)
    a = np.full(n, 1.0 / n) if a is None else a
    b = np.full(k, 1.0 / k) if b is None else b
    sums = vstack([kron(eye_array(n), np.ones((1, k))), kron(np.ones((1, n)), eye_array(k))])
    result = linprog(
        cdist(x, y).ravel(), A_eq=sums.tocsr(), b_eq=np.concatenate([a, b]), method="highs"
    )
    if result.status != 0:
        raise RuntimeError(f"earth mover's distance: {result.message}")
    return float(result.fun)


def slope_on(points: Floats, values: Floats) -> float:
    """Return the Lipschitz constant of a function with values (n,) at distinct points (n, d)."""
    return float(np.max(pdist(values[:, None]) / pdist(points)))


def dual_value(x: Floats, y: Floats, h_x: Floats, h_y: Floats) -> float:
    """Return (E_y h - E_x h) / Lambda(h), which is at most emd(x, y).

    Lambda(h) is the Lipschitz constant of h on the points x and y only.

    h_x, h_y: the values of h at the points x and y.
    """
    slope = slope_on(np.concatenate([x, y]), np.concatenate([h_x, h_y]))
    return float((h_y.mean() - h_x.mean()) / slope) if slope > 0 else 0.0

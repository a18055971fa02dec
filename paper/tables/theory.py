"""A table of the paper's theoretical statements.

Each row has the value that the statement claims, the value that we compute, and our verdict.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ngt.runs.keys import Layout
from ngt.settings.config import Config
from paper.command import Made, Options
from paper.drawing.table import Column, Table
from paper.source import cite
from paper.theory import bounds
from paper.theory.bounds import Relation, Verdict
from paper.theory.study import BINS, DRAWS, SAMPLES, SIGMAS, SIZES, STEPS, WIDTH, Study, study

COLUMNS = {
    "statement": Column("statement", width=0.29),
    "source": Column("source", "{:.3g}"),
    "ours": Column("ours", "{:.3g}"),
    "verdict": Column("verdict"),
    "why": Column("how far, or the counter-example", width=0.43),
}
LABELS = {"huber": "Huber", "mse_softmax": "MSE-softmax", "hl_gauss": "HL-Gauss"}
ROUNDED = 1e-5  # relative tolerance, because weights are initialised in float32
# HAND and LIMIT: the number of bins, the width of the interval that they divide, and sigma.
HAND = (2, WIDTH, 0.5)  # disproves Theorem sigma by hand, with a table of the normal distribution
LIMIT = (10**6, 1000.0, 1.0)  # bins far narrower than sigma, and an interval far wider
WIDE = 1e6  # a sigma far wider than the interval
FLIPS = 50  # largest number of coin flips per sample; all smaller numbers are tried, too


@dataclass(frozen=True)
class Statement:
    """A statement of the paper, and the values found for it.

    claimed, found: the values of all cases tried, which alone decide the verdict.
    shown: the claimed and found value in the table; by default `claimed` and `found` themselves.
    """

    key: str
    text: str
    relation: Relation
    claimed: ArrayLike
    found: ArrayLike
    why: str
    shown: tuple[float, float] | None = None
    tolerance: float = 1e-9

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of `paper.theory.bounds.judge` on this statement."""
        return bounds.judge(self.claimed, self.found, self.relation, self.tolerance)

    @property
    def pair(self) -> tuple[float, float]:
        """Return the claimed value and the found value that the table shows."""
        return self.shown or (np.asarray(self.claimed).item(), np.asarray(self.found).item())

    def row(self) -> dict[str, str | float]:
        """Return a row of the table."""
        source, ours = self.pair
        return {
            "statement": cite(self.text),
            "source": source,
            "ours": ours,
            "verdict": self.verdict,
            "why": cite(self.why),
        }


def statements(s: Study) -> list[Statement]:
    """Return all statements, in the paper's order."""
    topics = (_duality, _lipschitz, _networks, _pairings, _hlg, _sigma, _concentration)
    return [statement for topic in topics for statement in topic(s)]


def _duality(s: Study) -> Iterator[Statement]:
    emd, most = s.far
    yield Statement(
        "duality",
        "Eq. emdeq: inf of L over H is −EMD",
        "==",
        emd,
        most,
        f"Two points {emd:g} apart: with outputs squashed by {s.config.rescale:g} tanh, "
        f"0 ≤ h ≤ {most:g} for all weights.",
    )
    last = {pairing: t.dual[-1] for pairing, t in s.trainings.items()}
    shares = ", ".join(f"{LABELS[p]} {100 * v / s.emd:.0f} %" for p, v in last.items())
    objective = s.trainings["huber"].objective[-1] / s.emd
    yield Statement(
        "reached",
        "Eq. emdeq: −L is at most EMD for 1-Lipschitz h, and near it",
        "<=",
        s.emd,
        list(last.values()),
        f"Share of EMD after {STEPS[-1]} updates: for h/Λ(h), {shares}; for Huber's −L itself, "
        f"{100 * objective:.0f} %.",
        shown=(s.emd, min(last.values())),
    )


def _lipschitz(s: Study) -> Iterator[Statement]:
    product, slope = s.twin
    yield Statement(
        "hlip",
        "Th. hlip: Λ(h) = Λ(ℓ)(Λ(f) + Λ(f†))",
        "==",
        product,
        slope,
        "f = f†: h is 0 everywhere. The proof shows ≤.",
    )
    sigma = getattr(s.config, f"sigma_{s.config.reward_sigma}")
    for pairing, t in s.trainings.items():
        label = LABELS[pairing] + (f" (σ = {sigma:g})" if pairing == "hl_gauss" else "")
        ratio, chain = t.product / t.gradient, t.chain / t.gradient
        at = int(ratio.argmax())
        yield Statement(
            f"hlip_{pairing}",
            f"Th. hlip, proof: Λ(h) ≤ the product, {label}",
            "<=",
            t.product,
            t.gradient,
            f"{ratio.min():.0f} to {ratio.max():.0f} times the largest |∇h| found (bounded "
            f"argument by argument: {chain.min():.0f} to {chain.max():.0f} times).",
            shown=(t.product[at], t.gradient[at]),
        )
    last = {pairing: t.gradient[-1] for pairing, t in s.trainings.items()}
    yield Statement(
        "near_one",
        "Sec. controlf: in practice Λ(h) is near 1, without surges",
        "<=",
        1.0,
        list(last.values()),
        f"Largest |∇h| found after {STEPS[-1]} updates: "
        f"{', '.join(f'{LABELS[p]} {v:.2f}' for p, v in last.items())}.",
        shown=(1.0, max(last.values())),
    )


def _networks(s: Study) -> Iterator[Statement]:
    norms = np.array([t.layer for t in s.trainings.values()])
    yield Statement(
        "spectral",
        "Sec. controlf: spectral norm keeps every layer of f at norm 1",
        "<=",
        1.0,
        norms,
        f"{s.config.power_iterations} power iterations per update lag: norms up to "
        f"{norms.max():.2f}, and {norms[:, -1].min():.2f} to "
        f"{norms[:, -1].max():.2f} after {STEPS[-1]} updates.",
        shown=(1.0, norms.max()),
        tolerance=ROUNDED,
    )
    singular = np.concatenate(s.layers.singular)
    yield Statement(
        "orthogonal",
        "Sec. controlf: spectral norm has no effect on orthogonal f†",
        "==",
        1.0,
        np.concatenate([singular, 1.0 + s.layers.change]),
        f"All {len(singular)} singular values are 1 and no weight changes, to float32 rounding.",
        shown=(1.0, float(singular.max())),
        tolerance=ROUNDED,
    )
    shape, gain = s.layers.shapes[-1], s.layers.least_gain
    yield Statement(
        "preserving",
        "Sec. controlf: orthogonal layers all preserve norms",
        "==",
        1.0,
        gain,
        f"The head maps {shape[0]} dimensions to {shape[1]}, so {shape[0] - shape[1]} of them map "
        "to 0.",
        shown=(1.0, float(gain.min())),
        tolerance=ROUNDED,
    )
    yield Statement(
        "prior",
        "Sec. controlf: Λ(f†) is close to its bound, 1",
        "<=",
        1.0,
        s.layers.local,
        "Ours is the largest slope on the samples; LeakyReLU and the head lower it.",
    )


def _pairings(s: Study) -> Iterator[Statement]:
    c = s.config
    yield Statement(
        "huber",
        "Sec. elldiscuss: Huber with δ = 1 has Λ(ℓ) ≤ 1",
        "<=",
        1.0,
        bounds.huber_slopes(c.m, c.delta).prediction,
        f"A mean over m = {c.m} outputs has 1/√m per argument. A sum would have √m = "
        f"{math.sqrt(c.m):.3g}; {c.rescale:g} tanh multiplies these by {c.rescale:g}.",
    )
    yield Statement(
        "pair",
        "Th. sigma in Th. hlip: its bound is Λ(ℓ) of the pair (f, f†)",
        "<=",
        bounds.bound_sigma(c.bins, 2.0 * c.support, c.sigma_agent),
        s.target_agent,
        f"It bounds only the slope in the logits. With σ = {c.sigma_agent:g} and t on an edge "
        f"between logits ±{c.rescale:g}, |∂ℓ/∂t| = {c.rescale:g}√(2/π)/σ.",
    )


def _hlg(s: Study) -> Iterator[Statement]:
    g, root = s.hlg, math.sqrt(2.0)
    ratio = g.bound_p_max / g.slope
    row, column = np.unravel_index(ratio.argmax(), ratio.shape)
    ours = np.array([[bounds.bound_mass(p) for p in line] for line in g.mass])
    yield Statement(
        "pmax",
        "Th. pmax: Λ ≤ √(1 + (N − 1) p_max²)",
        "<=",
        g.bound_p_max,
        g.slope,
        f"N = {BINS[row]}, σ = {SIGMAS[column]:g}. The bound is above √2, and so vacuous, in "
        f"{_share(g.bound_p_max > root)} of the grid. √(1 + p_max) is within a factor of "
        f"{(ours / g.slope).max():.2f}.",
        shown=(g.bound_p_max[row, column], g.slope[row, column]),
    )
    estimate = bounds.p_max_estimate(*LIMIT)
    exact = bounds.p_max(*LIMIT) / estimate
    inside = bounds.hlg_probs(LIMIT[1] / 2.0, *LIMIT).max() / estimate
    spread = g.mass / g.estimate
    yield Statement(
        "lemma",
        "Lemma pmax: p_max / (Δs / (σ√(2π))) → 1 for Δs ≪ σ ≪ b − a",
        "==",
        1.0,
        exact,
        f"With t on the edge, half of the Gaussian is cut off, which doubles the bins' masses. "
        f"Inside, the ratio is {inside:.2f}; on the grid, {spread.min():.2g} to "
        f"{spread.max():.2g}.",
        tolerance=0.05,
    )


def _sigma(s: Study) -> Iterator[Statement]:
    g, default = s.hlg, BINS.index(s.config.bins)
    excess = g.slope[default] / g.bound_sigma[default]
    claimed, found = bounds.bound_sigma(*HAND), bounds.hlg_slope(*HAND)
    yield Statement(
        "sigma",
        "Th. sigma: Λ ≤ √(1 + (C/σ)²)",
        "<=",
        [*g.bound_sigma.ravel(), claimed],
        [*g.slope.ravel(), found],
        f"N = {HAND[0]}, σ = {HAND[2]:g}, t = −1, q on the other bin. False on "
        f"{_share(g.bound_sigma < g.slope)} of the grid; for N = {s.config.bins}, by up to "
        f"{100 * (excess.max() - 1):.1f} % (σ = {SIGMAS[excess.argmax()]:.2f}).",
        shown=(claimed, found),
    )
    narrow, least = g.bound_sigma[default, 0], g.slope[default, 0]
    yield Statement(
        "narrow",
        "Th. sigma, discussion: for σ → 0, Λ grows without bound, as C/σ",
        ">=",
        narrow,
        least,
        f"Λ tends to √2 for every N (here N = {s.config.bins}, σ = {SIGMAS[0]:g}).",
    )
    wide = np.array([bounds.bound_sigma(n, WIDTH, WIDE) for n in BINS])
    limits = np.array([bounds.hlg_slope(n, WIDTH, WIDE) for n in BINS])
    yield Statement(
        "wide",
        "Th. sigma, discussion: for σ → ∞ the bound tends to 1",
        "<=",
        wide,
        limits,
        f"Λ itself tends to √(1 − 1/N) (here N = {s.config.bins}).",
        shown=(wide[default], limits[default]),
    )


def _concentration(s: Study) -> Iterator[Statement]:
    tried = [(n, k) for n in range(1, FLIPS + 1) for k in range(1, n + 1)]
    exact = np.array([bounds.coin_deviation(n, k) for n, k in tried])
    n, epsilon = np.array([n for n, _ in tried]), np.array([k / n for n, k in tried])
    once, twice = bounds.concentration_bound(epsilon, n), bounds.two_sided_bound(epsilon, n)
    broken = ", ".join(map(str, np.unique(n[exact > once])))
    yield Statement(
        "two_sided",
        "Th. rewloss: P(|L_n − L| ≥ ε) ≤ exp(−ε²n / (Λ diam)²)",
        "<=",
        once,
        exact,
        f"n = 1, ε = 1, fair coins, h(x) = x. False for n = {broken} (of all n ≤ {FLIPS}); true "
        "for a one-sided deviation.",
        shown=(once[0], exact[0]),
    )
    seen = exact >= 0.01
    at = np.flatnonzero(seen)[(twice / exact)[seen].argmax()]
    yield Statement(
        "corrected",
        "Th. rewloss with a factor 2: ≤ 2 exp(−ε²n / (Λ diam)²)",
        "<=",
        twice[seen],
        exact[seen],
        f"The same coins, in cases with P ≥ 1 % (here n = {n[at]}, ε = {epsilon[at]:.2g}).",
        shown=(twice[at], exact[at]),
    )
    least = s.one_law.min(axis=1)
    claimed = bounds.concentration_bound(least, np.array(SIZES))
    yield Statement(
        "learned",
        "Th. rewloss, prose: it controls how a learned h generalises",
        "<=",
        claimed,
        np.ones(len(SIZES)),
        f"{SIZES[-1]} samples per side from the same law, in {s.inputs} dimensions, diameter 1: "
        f"L = 0, but the best h has |L_n| ≥ {least[-1]:.2f} in all {DRAWS} draws.",
        shown=(claimed[-1], 1.0),
    )


def _share(mask: NDArray[np.bool_]) -> str:
    return f"{100 * np.mean(mask):.0f} %"


def table(s: Study) -> Table:
    """Return a table with a row per statement."""
    notes = (
        "Theorem numbers are the paper's, and the names in brackets are its labels. L_n is L from "
        "n samples per side, i.e. of expert and agent each. source, ours: the value that the "
        "statement claims and the value found here, in one of the cases tried. holds: true "
        f"in all cases, within a factor of {bounds.TIGHT:g}. loose: true in all cases, but off by "
        "a larger factor in some. false: there is a counter-example.",
        f"Grid: N in {{{', '.join(map(str, BINS))}}}, σ from {SIGMAS[0]:g} to {SIGMAS[-1]:g}, "
        f"support [−1, 1]. Samples: {SAMPLES} transitions of HalfCheetah-v4 demonstrations, and "
        f"{SAMPLES} with noise on the states and uniform actions; one potential per pairing, one "
        "seed. No runs are used, so the table is the same at every scale.",
    )
    caption = "The paper's theoretical statements, computed."
    return Table(caption, COLUMNS, [statement.row() for statement in statements(s)], notes)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table, which is the same at every scale."""
    return Made(table(study()))

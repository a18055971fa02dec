"""Generate a part of docs/theory.md: every statement, and counter-examples to check by hand.

python -m paper.handbook.theory --into docs/theory.md
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from ngt.settings.options import Parser
from paper import pages
from paper.command import one_line_errors
from paper.source import cite
from paper.tables.theory import HAND, table
from paper.theory import bounds
from paper.theory.study import Study, study

NAME = "handbook.theory"


def by_hand(s: Study) -> str:
    """Return a Markdown list of three counter-examples, with computed numbers."""
    first, second = bounds.hlg_probs(0.0, *HAND)
    claimed, found = bounds.bound_sigma(*HAND), bounds.hlg_slope(*HAND)
    emd, most = s.far
    c = s.config
    coin, bound = bounds.coin_deviation(1, 1), float(bounds.concentration_bound(1.0, 1))
    flat = bounds.huber_slopes(c.m, c.delta).potential(1.0, 1.0)
    items = (
        "**Concentration (Th. rewloss).** Let both laws be a fair coin on {0, 1}, with h(x) = x "
        "and n = 1. Then Λ = diam = 1 and L = 0. L_n is the difference of two coins: −1, 0 or 1 "
        f"with probability 1/4, 1/2 and 1/4. So P(|L_n − L| ≥ 1) = {coin:g}, more than exp(−1) "
        f"= {bound:.3f}. The two-sided McDiarmid inequality has an extra factor of 2: 2 exp(−1) = "
        f"{2 * bound:.3f}.",
        f"**HL-Gauss (Th. sigma).** Take N = {HAND[0]} bins on [−1, 1], σ = {HAND[2]:g} and t = "
        f"−1. A normal table gives p = ({first:.4f}, {second:.4f}), where the first entry is "
        "(Φ(2) − 1/2) / (Φ(4) − 1/2). Logits that put all mass on the second bin give a gradient "
        f"q − p = (−{first:.4f}, {first:.4f}). Its norm is √2 · {first:.4f} = {found:.3f}, but the "
        f"theorem's bound is √(1 + 1/(2πσ²)) = {claimed:.3f}.",
        "**Duality (Eq. emdeq).** Put P_expert on one point and P_agent on another point at "
        f"distance {emd:g}. Their earth mover's distance (EMD) is {emd:g}. Outputs squashed by "
        f"{c.rescale:g} tanh differ by at most {2 * c.rescale:g}. For all weights, Huber's h "
        f"therefore lies between 0 and {2 * c.rescale:g} − 1/2 = {most:g}, so −L ≤ {most:g}. "
        "Without squashing, −L stays far below the EMD, too: spectral norm and the mean over "
        f"m = {c.m} outputs give Λ(h) ≤ 2/√m = {flat:.2f} (Th. hlip), so −L ≤ {flat:.2f} EMD.",
    )
    filled = (
        textwrap.fill(f"{i}. {cite(item)}", 100, subsequent_indent="   ", break_on_hyphens=False)
        for i, item in enumerate(items, 1)
    )
    return "\n".join(filled) + "\n"


def page(s: Study) -> str:
    """Return the generated part of docs/theory.md."""
    return f"{table(s).markdown()}\n## Three counter-examples to check by hand\n\n{by_hand(s)}"


def main(argv: Sequence[str] | None = None) -> None:
    """Print the generated part or, with --into, write it into the page."""
    about = "Print the statements of the theory and three counter-examples, as Markdown."
    parser = Parser(prog=f"python -m paper.{NAME}", description=about)
    parser.add_argument("--into", type=Path, help="write between the markers of this page")

    def run() -> None:
        args = parser.parse_args(argv)
        if args.into is None:
            print(page(study()), end="")
        else:
            pages.write_into(args.into, page(study()), NAME)

    one_line_errors(NAME, run)


if __name__ == "__main__":
    main()

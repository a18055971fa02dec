"""Claims about NGT's design: its ablations, its pairing losses, and gradient penalties.

The paper has no figure for its claims on pairing losses and penalties. "tex line N" is line N of
the paper's LaTeX source. A scale is a config in workflow/config/; scale `paper` has all runs of the
paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.envs import SIXTH
from paper.claims.gpu import HUMANOID
from paper.claims.rules import (
    LEARNS,
    MARGIN,
    STRONG,
    UNKNOWN_SETTINGS,
    Together,
    bounded,
)
from paper.claims.verdicts import Cells, Claim
from paper.numbers.statistics import OURS


def claims(paper: Config) -> list[Claim]:
    """Return the claims about NGT's design.

    paper: the config of scale `paper`.
    """
    return [*_ablations(), *_pairings(paper), *_penalties(paper)]


def _ablations() -> Iterator[Claim]:
    where = "App. Ablations, Fig. abl_"
    yield Claim(
        "mse_softmax",
        "MSE-softmax fails on Humanoid",
        f"{where}mse",
        "“fails to produce meaningful learning signals”",
        bounded("mean", "<", LEARNS, Cells("ablation_mse_softmax", ("ngt-mse-softmax",))),
    )
    hlg = Cells("ablation_hlg_elsewhere", ("ngt-hlg", OURS))
    yield Claim(
        "hlg_elsewhere",
        "HL-Gauss does as well on the other envs",
        f"{where}hlg_generalization",
        "“replicates the optimal results”, with other settings for each env (not given; ours: "
        "Humanoid's)",
        bounded("mean", "≥", -MARGIN, hlg, by="env", beside=SIXTH, instead=UNKNOWN_SETTINGS),
    )
    yield Claim(
        "kaiming",
        "A Kaiming head is worse",
        f"{where}init",
        "“degraded learning”",
        bounded("mean", "<", 0, Cells("ablation_init", ("ngt-kaiming", OURS)), by="env"),
    )
    yield Claim(
        "spectral_norm",
        "Without spectral norm training fails",
        f"{where}sn",
        "“collapses completely”",
        bounded("mean", "<", LEARNS, Cells("ablation_spectral_norm", ("ngt-no-sn",))),
    )
    m8, m16, m64 = (
        Cells("ablation_embedding", (f"ngt-m{m}", OURS), title=title)
        for m, title in ((8, ""), (16, "m = 16"), (64, "m = 64"))
    )
    yield Claim(
        "m8",
        "m = 8 is much worse than m = 32",
        f"{where}embeddim",
        "“degrades substantially”",
        bounded("mean", "<", -MARGIN, m8, by="env"),
    )
    yield Claim(
        "m16",
        "m = 16 and 64 do as well as m = 32",
        f"{where}embeddim",
        "“relatively stable for sizes 16 and above”",
        bounded("mean", "≥", -MARGIN, m16, m64, by="env"),
    )


def _pairings(paper: Config) -> Iterator[Claim]:
    """Yield the claims on the pairing losses Huber, MSE-softmax and L1.

    The claims on the pairing loss HL-Gauss are in `_ablations`.
    """
    name, where = "pairing_figure", "Method, tex line"
    losses = [
        Cells(name, (method,), envs=(HUMANOID,), title=method_label(paper, method))
        for method in ("ngt-huber", "ngt-mse-softmax", "ngt-l1")
    ]
    elsewhere = [replace(some, envs=(), without=(HUMANOID,)) for some in losses]
    pair = replace(elsewhere[1], methods=("ngt-mse-softmax", "ngt-huber"), title="")
    yield Claim(
        "pairings_comparable",
        "MSE-softmax is comparable to Huber except on Humanoid",
        f"{where} 521",
        "“comparable results to the Huber loss”, “a slight edge in certain tasks”",
        bounded("mean", "±", MARGIN, pair, by="env", beside=SIXTH),
    )
    yield Claim(
        "pairings_elsewhere",
        "Huber, MSE-softmax and L1 are strong except on Humanoid",
        f"{where} 524",
        "“yielded excellent results”",
        bounded("mean", "≥", STRONG, *elsewhere, by="env", beside=SIXTH),
    )
    yield Claim(
        "pairings_humanoid",
        "Huber, MSE-softmax and L1 are not strong on Humanoid",
        f"{where} 525",
        "“none of the above losses produced satisfactory performance”",
        bounded("mean", "<", STRONG, *losses, by="env"),
    )


def _penalties(paper: Config) -> Iterator[Claim]:
    """Yield the claims on gradient penalties, and on spectral norm in their place.

    A baseline needs its penalty if it learns with the penalty and fails without it. Such a need is
    not judged on Humanoid, since the paper says that the baselines fail there even with a penalty.
    """
    name = "penalty_figure"
    yield Claim(
        "penalty_ngt",
        "NGT does as well without a gradient penalty as with one",
        "Method, tex line 489",
        "“we did not need to regularize the predictor with a gradient penalty”",
        bounded("mean", "≥", -MARGIN, Cells(name, (OURS, "ngt-penalty")), by="env", beside=SIXTH),
    )
    yield Claim(
        "spectral_norm_ngt",
        "NGT learns with spectral norm alone",
        "App. Related Works, tex line 921",
        "“succeeds with only spectral normalization”",
        bounded("mean", "≥", LEARNS, Cells(name, (OURS,)), by="env", beside=SIXTH),
    )

    def needs(method: str, without: str) -> Together:
        learns, fails = (
            Cells(name, (m,), without=(HUMANOID,), title=method_label(paper, m))
            for m in (method, without)
        )
        return Together(
            (
                bounded("mean", "≥", LEARNS, learns, by="env", beside=SIXTH),
                bounded("mean", "<", LEARNS, fails, by="env", beside=SIXTH),
            )
        )

    for method in ("dac-r", "wdac"):
        yield Claim(
            f"penalty_{method}",
            f"{method_label(paper, method)} needs its gradient penalty",
            "Method, tex line 490",
            "“needed for every single off-policy adversarial IL SOTA baseline”",
            needs(method, f"{method}-no-penalty"),
        )
    yield Claim(
        "spectral_norm_dac-r",
        f"Spectral norm alone is not enough for {method_label(paper, 'dac-r')}",
        "App. Related Works, tex line 920",
        "“spectral normalization […] alone proves insufficient”",
        needs("dac-r", "dac-r-sn"),
    )

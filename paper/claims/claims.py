"""What the paper's prose claims, and the rule that each claim is judged by.

A verdict is computed from runs; nothing here is one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.evidence import Cells
from paper.claims.rules import (
    CARD,
    EXPERT,
    GRAPHS,
    HOURS,
    LEARNS,
    MARGIN,
    STEADY,
    STRONG,
    TIGHT,
    Judge,
    ahead,
    close,
    every,
    fails,
    falling,
    flat,
    graphs,
    hours,
    memory,
    most,
    on_par,
    order,
    paper_order,
    reaches,
    tight,
    unsteady,
    worse,
)  # fmt: skip
from paper.numbers import speed
from paper.numbers.speed import PAPER, PAPER_ENVS
from paper.numbers.statistics import OURS

HUMANOID = "Humanoid-v4"
BASELINES = (
    "bc", "bc-full", "pwil", "dac-rplus", "dac-r", "wdac", "mmd-dac", "red", "diffail",
)  # fmt: skip
ONLINE = BASELINES[2:]  # those that step the env


@dataclass(frozen=True)
class Claim:
    """A claim.

    where: in the paper. source: what the paper gives for it. rule: in words what `judge` decides
    by. artefact: which one shows the runs.
    """

    key: str
    text: str
    where: str
    source: str
    rule: str
    artefact: str
    judge: Judge


def claims(paper: Config) -> list[Claim]:
    """All of them, in the paper's order. paper: scale `paper`."""
    return [
        *_main(paper), *_grid(), *_humanoid(paper), *_ablations(), *_seeds(), *_dmc(paper),
        *_speed(paper), *_gpu(),
    ]  # fmt: skip


def _main(paper: Config) -> Iterator[Claim]:
    name = "main_figure"
    yield Claim(
        "expert", "NGT reaches the expert on every env", "Experiments, Fig. main",
        "“expert performance across the board”",
        f"mean ≥ {EXPERT:g} on each task", name,
        reaches(EXPERT, Cells(name, (OURS,))),
    )  # fmt: skip
    for other in BASELINES:
        label = method_label(paper, other)
        yield Claim(
            f"beats_{other}", f"NGT outperforms {label}", "Experiments, Fig. main",
            "“outperforms the baselines”", "difference of the IQMs > 0", name,
            ahead(Cells(name, (OURS, other))),
        )  # fmt: skip


def _grid() -> Iterator[Claim]:
    name = "grid_figure"
    few = Cells(name, (OURS,), demos=(1,), mode="state-action", rate=50)
    yield Claim(
        "twenty", "NGT learns Humanoid from 20 transitions", "Abstract, Fig. grid",
        "“strong performance”, 1 demonstration, rate 50", f"mean ≥ {STRONG:g}", name,
        reaches(STRONG, few),
    )  # fmt: skip
    yield Claim(
        "twenty_states", "The same without actions, from (s, s')", "Conclusion, Fig. grid",
        "“succeeds […] even when actions are unavailable”", f"mean ≥ {STRONG:g}", name,
        reaches(STRONG, dataclasses.replace(few, mode="state-state")),
    )  # fmt: skip
    cells = [
        Cells(name, (OURS,), mode=mode, rate=rate, title=f"{mode}, rate {rate}")
        for mode in ("state-action", "state-state")
        for rate in (10, 20, 50)
    ]
    yield Claim(
        "scaling", "NGT is stable over demonstrations, rates and inputs", "Experiments, Fig. grid",
        "“consistent and stable scaling”", f"mean ≥ {STRONG:g} in each of the grid's cells", name,
        reaches(STRONG, *cells),
    )  # fmt: skip


def _humanoid(paper: Config) -> Iterator[Claim]:
    name = "main_figure"
    yield Claim(
        "diffail_humanoid", "DiffAIL is strong on Humanoid", "Experiments, Fig. main",
        "“strong performance”", f"mean over demonstrations ≥ {STRONG:g}", name,
        reaches(STRONG, Cells(name, ("diffail",), envs=(HUMANOID,)), by="env"),
    )  # fmt: skip
    yield Claim(
        "diffail_elsewhere", "DiffAIL struggles on most other envs", "Experiments, Fig. main",
        "“struggles in most of the others”",
        f"mean over demonstrations < {EXPERT:g} on more than half", name,
        most(fails(EXPERT, Cells(name, ("diffail",), without=HUMANOID), by="env")),
    )  # fmt: skip
    rest = [
        Cells(name, (other,), envs=(HUMANOID,), title=method_label(paper, other))
        for other in ONLINE
    ]
    (diffail,) = (cells for cells in rest if cells.methods == ("diffail",))
    rest.remove(diffail)
    yield Claim(
        "only_diffail", "Of the online baselines DiffAIL alone learns Humanoid", "Introduction",
        "“only a diffusion-based approach”",
        f"mean over demonstrations: DiffAIL's ≥ {LEARNS:g}, each other's < {LEARNS:g}", name,
        every(reaches(LEARNS, diffail, by="all"), fails(LEARNS, *rest, by="all")),
    )  # fmt: skip
    yield Claim(
        "bc_full", "BC(1) is strong on Humanoid with 11 demonstrations", "Experiments, Fig. main",
        "“performs very well”", f"mean ≥ {STRONG:g}", name,
        reaches(STRONG, Cells(name, ("bc-full",), envs=(HUMANOID,), demos=(11,))),
    )  # fmt: skip


def _ablations() -> Iterator[Claim]:
    def variant(figure: str, method: str, **more: str) -> Cells:
        return Cells(figure, (method, OURS), **more)  # type: ignore[arg-type]

    where = "App. Ablations, Fig. abl_"
    name = "ablation_mse_softmax"
    yield Claim(
        "mse_softmax", "MSE-softmax fails on Humanoid", f"{where}mse",
        "“fails to produce meaningful learning signals”",
        f"mean < {LEARNS:g} with each number of demonstrations", name,
        fails(LEARNS, Cells(name, ("ngt-mse-softmax",))),
    )  # fmt: skip
    name = "ablation_hlg_elsewhere"
    yield Claim(
        "hlg_elsewhere", "HL-Gauss does as well on the other envs", f"{where}hlg_generalization",
        "“replicates the optimal results”, with settings of each env's own (not given; ours: "
        "Humanoid's)", f"mean − NGT's ≥ −{MARGIN:g} on each env", name,
        close(variant(name, "ngt-hlg")),
    )  # fmt: skip
    name = "ablation_init"
    yield Claim(
        "kaiming", "A Kaiming head is worse", f"{where}init", "“degraded learning”",
        "mean over demonstrations − NGT's < 0 on each env", name,
        worse(0.0, variant(name, "ngt-kaiming")),
    )  # fmt: skip
    name = "ablation_spectral_norm"
    yield Claim(
        "spectral_norm", "Without spectral norm training fails", f"{where}sn",
        "“collapses completely”", f"mean < {LEARNS:g} on each task", name,
        fails(LEARNS, Cells(name, ("ngt-no-sn",))),
    )  # fmt: skip
    name = "ablation_embedding"
    yield Claim(
        "m8", "m = 8 is much worse than m = 32", f"{where}embeddim", "“degrades substantially”",
        f"mean − NGT's < −{MARGIN:g}", name, worse(MARGIN, variant(name, "ngt-m8")),
    )  # fmt: skip
    yield Claim(
        "m16", "m = 16 and 64 do as well as m = 32", f"{where}embeddim",
        "“relatively stable for sizes 16 and above”", f"mean − NGT's ≥ −{MARGIN:g} for each", name,
        close(
            variant(name, "ngt-m16", title="m = 16"), variant(name, "ngt-m64", title="m = 64"),
        ),
    )  # fmt: skip


def _seeds() -> Iterator[Claim]:
    name = "seeds_figure"
    yield Claim(
        "ten_seeds", "NGT differs little over 10 seeds", "Experiments, Fig. 10seeds",
        "“a tight variance across runs”",
        f"standard deviation over seeds ≤ {TIGHT:g} with each number of demonstrations", name,
        tight(Cells(name, (OURS,))),
    )  # fmt: skip


def _dmc(paper: Config) -> Iterator[Claim]:
    name, where = "dmc_figure", "App. Extra Environments, Fig. dmc"
    others = [method for method in paper.figures[name].methods if method != OURS]
    yield Claim(
        "dmc_strong", "NGT is strong on the DMC tasks", where, "“consistently […] strong returns”",
        f"mean ≥ {STRONG:g} on each task", name, reaches(STRONG, Cells(name, (OURS,))),
    )  # fmt: skip
    yield Claim(
        "dmc_stable", "NGT is stable on the DMC tasks", where, "“remarkable training stability”",
        f"standard deviation over seeds ≤ {TIGHT:g} on each task", name,
        tight(Cells(name, (OURS,))),
    )  # fmt: skip
    yield Claim(
        "dmc_best", "NGT outperforms each baseline on the DMC tasks", where,
        "baselines “fail to generalize effectively”", "difference of the IQMs > 0 for each", name,
        ahead(*(Cells(name, (OURS, m), title=method_label(paper, m)) for m in others)),
    )  # fmt: skip
    yield Claim(
        "dmc_baselines", "Baselines vary or fall short on the DMC tasks", where,
        "“often show high variance or fail to approach expert behavior”",
        f"standard deviation over seeds > {TIGHT:g}, or mean < {EXPERT:g}, for more than half of "
        "baselines and tasks", name,
        most(unsteady(*(Cells(name, (m,), title=method_label(paper, m)) for m in others))),
    )  # fmt: skip


def _speed(paper: Config) -> Iterator[Claim]:
    name = speed.NAME
    for i, env in enumerate(PAPER_ENVS):
        names = paper_order(env)
        labels = " < ".join(method_label(paper, method) for method in names)
        yield Claim(
            f"speed_{env}", f"Speeds on {env}: {labels}", "App. Speeds, table",
            f"{' < '.join(str(PAPER[method][i]) for method in names)} steps/s",
            "each faster than the one before, at the end of one run each; on one GPU", name,
            order(env),
        )  # fmt: skip
    tolerance = f"{100 * STEADY:g} %"
    for base in ("ngt", "dac-r"):
        yield Claim(
            f"flat_{base}", f"{method_label(paper, base)}: speed is steady by 200 000 steps",
            "App. Speeds", "“near-horizontal”" if base == OURS else "“flattens, similar to NGT”",
            f"last fifth of the run within {tolerance} of the fourth on each env; on one GPU", name,
            flat(base),
        )  # fmt: skip
    yield Claim(
        "falling_diffail", "DiffAIL: speed drops over time", "App. Speeds", "“a noticeable drop”",
        f"last fifth of the run {tolerance} or more below the second on each env; on one GPU",
        name, falling("diffail"),
    )  # fmt: skip
    yield Claim(
        "red_speed", "RED* is as fast as NGT", "App. Speeds", "“on par”",
        f"within {tolerance} on each env; on one GPU", name, on_par("red", OURS),
    )  # fmt: skip


def _gpu() -> Iterator[Claim]:
    measured = "in every measurement of a run alone (results/published/gpu.json)"
    yield Claim(
        "graphs", "CUDA graphs make NGT and DAC three times as fast",
        "Experiments, App. CUDA Graphs", "“up to a 3x speedup for all algorithms”",
        f"eager / graph ≥ {GRAPHS:g}, time of an update, {measured}", "", graphs,
    )  # fmt: skip
    yield Claim(
        "memory", "A training of NGT or DAC fits an RTX 4090", "Experiments",
        f"{CARD:g} GB; DiffAIL on Humanoid with 1M transitions fewer",
        f"peak with the whole buffer ≤ {CARD:g} GB, {measured}", "", memory,
    )  # fmt: skip
    yield Claim(
        "hours", "A training on Humanoid takes 5 hours", "Experiments", "“≈5 hours”, RTX 4090",
        f"10⁷ env steps in ≤ {HOURS:g} h at the rate of NGT alone (results/published/gpu.json)",
        "", hours,
    )  # fmt: skip

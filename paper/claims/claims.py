"""The claims of the paper's prose, and the rule that judges each of them.

This module contains no verdicts, because verdicts are computed from runs. A scale is a config in
workflow/config/; the `paper` scale has all runs of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims import design
from paper.claims.envs import SIXTH
from paper.claims.gpu import CARD_GIB, GRAPHS_RULE, HOURS_RULE, HUMANOID, MEMORY_RULE
from paper.claims.rules import (
    EXPERT,
    LEARNS,
    STRONG,
    TIGHT,
    Bound,
    ScoreRule,
    Together,
    bounded,
)
from paper.claims.timing import (
    REPORTED,
    REPORTED_ENVS,
    falling,
    flat,
    on_par,
    order,
    reported_order,
)
from paper.claims.verdicts import Cells, Claim
from paper.numbers.statistics import OURS

# Baselines that step an env during training.
ONLINE = ("pwil", "dac-rplus", "dac-r", "wdac", "mmd-dac", "red", "diffail")
BASELINES = ("bc", "bc-full", *ONLINE)


def claims(paper: Config) -> list[Claim]:
    """Return all claims, in the order of the paper.

    paper: the config of the `paper` scale.
    """
    return [
        *_main(paper),
        *_grid(),
        *_humanoid(paper),
        *design.claims(paper),
        *_seeds(),
        *_dmc(paper),
        *_speed(paper),
        *_gpu(),
    ]


def _main(paper: Config) -> Iterator[Claim]:
    name, where = "main_figure", "Experiments, Fig. main"
    yield Claim(
        "expert",
        "NGT reaches the expert on every env",
        where,
        "“expert performance across the board”",
        bounded("mean", "≥", EXPERT, Cells(name, (OURS,)), beside=SIXTH),
    )
    for other in BASELINES:
        yield Claim(
            f"beats_{other}",
            f"NGT outperforms {method_label(paper, other)}",
            where,
            "“outperforms the baselines”",
            bounded("IQM", ">", 0, Cells(name, (OURS, other)), by="all", beside=SIXTH),
        )


def _grid() -> Iterator[Claim]:
    name = "grid_figure"
    few = Cells(name, (OURS,), demos=(1,), mode="state-action", rate=50)
    yield Claim(
        "twenty",
        "NGT learns Humanoid from 20 transitions",
        "Abstract, Fig. grid",
        "“strong performance”, 1 demonstration, rate 50",
        bounded("mean", "≥", STRONG, few),
    )
    yield Claim(
        "twenty_states",
        "NGT learns Humanoid from 20 transitions (s, s'), without actions",
        "Conclusion, Fig. grid",
        "“succeeds […] even when actions are unavailable”",
        bounded("mean", "≥", STRONG, replace(few, mode="state-state")),
    )
    cells = [
        Cells(name, (OURS,), mode=mode, rate=rate, title=f"{mode}, rate {rate}")
        for mode in ("state-action", "state-state")
        for rate in (10, 20, 50)
    ]
    yield Claim(
        "scaling",
        "NGT is stable over demonstrations, rates and inputs",
        "Experiments, Fig. grid",
        "“consistent and stable scaling”",
        bounded("mean", "≥", STRONG, *cells),
    )


def _humanoid(paper: Config) -> Iterator[Claim]:
    name, where = "main_figure", "Experiments, Fig. main"
    yield Claim(
        "diffail_humanoid",
        "DiffAIL is strong on Humanoid",
        where,
        "“strong performance”",
        bounded("mean", "≥", STRONG, Cells(name, ("diffail",), envs=(HUMANOID,)), by="env"),
    )
    elsewhere = Cells(name, ("diffail",), without=(HUMANOID,))
    yield Claim(
        "diffail_elsewhere",
        "DiffAIL struggles on most other envs",
        where,
        "“struggles in most of the others”",
        bounded("mean", "<", STRONG, elsewhere, by="env", most=True, beside=SIXTH),
    )
    *others, diffail = (
        Cells(name, (method,), envs=(HUMANOID,), title=method_label(paper, method))
        for method in ONLINE
    )
    learns = bounded("mean", "≥", LEARNS, diffail, by="all")
    yield Claim(
        "only_diffail",
        "Of the online baselines DiffAIL alone learns Humanoid",
        "Introduction",
        "“only a diffusion-based approach”",
        Together((learns, bounded("mean", "<", LEARNS, *others, by="all"))),
    )
    yield Claim(
        "bc_full",
        "BC(1) is strong on Humanoid with 11 demonstrations",
        where,
        "“performs very well”",
        bounded("mean", "≥", STRONG, Cells(name, ("bc-full",), envs=(HUMANOID,), demos=(11,))),
    )


def _seeds() -> Iterator[Claim]:
    yield Claim(
        "ten_seeds",
        "NGT differs little over 10 seeds",
        "Experiments, Fig. 10seeds",
        "“a tight variance across runs”",
        bounded("std", "≤", TIGHT, Cells("seeds_figure", (OURS,))),
    )


def _dmc(paper: Config) -> Iterator[Claim]:
    name, where = "dmc_figure", "App. Extra Environments, Fig. dmc"
    titles = {m: method_label(paper, m) for m in paper.figures[name].methods if m != OURS}
    ours = Cells(name, (OURS,))
    yield Claim(
        "dmc_strong",
        "NGT is strong on the DMC tasks",
        where,
        "“consistently […] strong returns”",
        bounded("mean", "≥", STRONG, ours),
    )
    yield Claim(
        "dmc_stable",
        "NGT is stable on the DMC tasks",
        where,
        "“remarkable training stability”",
        bounded("std", "≤", TIGHT, ours),
    )
    pairs = [Cells(name, (OURS, method), title=title) for method, title in titles.items()]
    yield Claim(
        "dmc_best",
        "NGT outperforms each baseline on the DMC tasks",
        where,
        "baselines “fail to generalize effectively”",
        bounded("IQM", ">", 0, *pairs, by="all"),
    )
    yield Claim(
        "dmc_baselines",
        "Baselines vary or fall short on the DMC tasks",
        where,
        "“often show high variance or fail to approach expert behavior”",
        ScoreRule(
            (Bound("std", ">", TIGHT), Bound("mean", "<", EXPERT)),
            tuple(Cells(name, (method,), title=title) for method, title in titles.items()),
            most=True,
        ),
    )


def _speed(paper: Config) -> Iterator[Claim]:
    for i, env in enumerate(REPORTED_ENVS):
        names = reported_order(env)
        yield Claim(
            f"speed_{env}",
            f"Speeds on {env}: {' < '.join(method_label(paper, method) for method in names)}",
            "App. Speeds, table",
            f"{' < '.join(str(REPORTED[method][i]) for method in names)} steps/s",
            order(env),
        )
    where = "App. Speeds"
    for base, source in ((OURS, "“near-horizontal”"), ("dac-r", "“flattens, similar to NGT”")):
        text = f"{method_label(paper, base)}: speed is steady by 200 000 steps"
        yield Claim(f"flat_{base}", text, where, source, flat(base))
    yield Claim(
        "falling_diffail",
        "DiffAIL: speed drops over time",
        where,
        "“a noticeable drop”",
        falling("diffail"),
    )
    yield Claim("red_speed", "RED* is as fast as NGT", where, "“on par”", on_par("red", OURS))


def _gpu() -> Iterator[Claim]:
    yield Claim(
        "graphs",
        "CUDA graphs make training up to three times as fast",
        "Experiments, App. CUDA Graphs",
        "“up to a 3x speedup for all algorithms”",
        GRAPHS_RULE,
    )
    yield Claim(
        "memory",
        "Training fits an RTX 4090 for every method",
        "Experiments",
        f"“fits within the memory”, {CARD_GIB} GiB; DiffAIL on Humanoid with 1M fewer transitions",
        MEMORY_RULE,
    )
    yield Claim(
        "hours",
        "Training on Humanoid takes 5 hours",
        "Experiments",
        "“≈5 hours”, RTX 4090",
        HOURS_RULE,
    )

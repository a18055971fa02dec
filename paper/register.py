"""Everything that the suite makes of its runs: names, and the runs that each shows.

Named as the modules of this package and as the files under results/.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ngt.experience.envs import TASKS
from ngt.runs.keys import RunKey, run_table
from ngt.settings.config import Config
from ngt.settings.resolve import own_file

GPU = "results/published/gpu.json"  # what `make gpu-check` measured

# Artefacts of the run table that are figures of learning curves.
CURVES = (
    "main_figure", "grid_figure", "seeds_figure", "ablation_mse_softmax",
    "ablation_hlg_elsewhere", "ablation_init", "ablation_spectral_norm", "ablation_embedding",
    "ablation_sigma", "dmc_figure",
)  # fmt: skip


@dataclass(frozen=True)
class Artefact:
    """A figure (PDF, PNG) or a table (CSV, LaTeX, JSON).

    runs: entries of the config's `figures` whose runs it shows; all of them where `everything`.
    files: measurements beside the runs that it reads where they are there.
    """

    name: str
    title: str
    runs: tuple[str, ...] = ()
    experts: bool = False
    everything: bool = False
    files: tuple[str, ...] = ()

    def shown(self, config: Config) -> list[str]:
        """The entries of `figures` that it shows at a scale."""
        return [name for name in config.figures if self.everything or name in self.runs]

    def at(self, config: Config) -> bool:
        """Whether the scale has it: some of its runs, or it needs none."""
        if self.experts:
            return bool(self.experts_of(config))
        return not (self.runs or self.everything) or bool(self.shown(config))

    def keys(self, config: Config) -> list[RunKey]:
        """The runs that it shows, those for comparison too; none where it shows experts."""
        return [] if self.experts else run_table(config, self.shown(config), beside=True)

    def experts_of(self, config: Config) -> list[str]:
        """The envs whose experts it shows: those whose demonstrations are not one's own."""
        envs = [env for name in self.shown(config) for env in config.figures[name].envs]
        return [env for env in envs if not own_file(config, env)] if self.experts else []


_TITLES = {
    "main_figure": "Every method, env and number of demonstrations",
    "grid_figure": "NGT over demonstrations, subsampling rates and input modes",
    "seeds_figure": "NGT over ten seeds",
    "ablation_mse_softmax": "Ablation: MSE-softmax pairing",
    "ablation_hlg_elsewhere": "Ablation: HL-Gauss pairing on the other envs",
    "ablation_init": "Ablation: initialisation of the head",
    "ablation_spectral_norm": "Ablation: no spectral norm",
    "ablation_embedding": "Ablation: size of the embedding",
    "ablation_sigma": "Ablation: equal widths of HL-Gauss (not in the paper)",
    "dmc_figure": "DeepMind Control tasks",
}

FIGURES = {
    a.name: a
    for a in (
        Artefact("method_diagram", "The method"),
        *(Artefact(name, _TITLES[name], runs=(name,)) for name in CURVES),
        Artefact("aggregate_figure", "Aggregates over tasks (not in the paper)", ("main_figure",)),
        Artefact("speed_figure", "Speed over training", ("speed_table",)),
        Artefact("expert_figure", "The experts (not in the paper)", ("main_figure",), experts=True),
        Artefact("theory_figure", "The theory, computed"),
    )
}
TABLES = {
    a.name: a
    for a in (
        Artefact("claims_table", "The paper's claims", everything=True, files=(GPU,)),
        Artefact("main_table", "Final scores", ("main_figure",)),
        Artefact("aggregate_table", "Aggregates over tasks (not in the paper)", ("main_figure",)),
        Artefact("speed_table", "Speed", ("speed_table",)),
        Artefact("theory_table", "The theory, computed"),
        Artefact("hyperparameter_table", "Settings"),
        Artefact("environment_table", "Environments"),
    )
}
REPORT = Artefact("report", "All of them in one page", everything=True)
PAPER = Artefact("paper", "All of them as a report in LaTeX", everything=True)


def envs(*configs: Config) -> list[str]:
    """Every env that a figure of one of the configs names, in the registry's order."""
    named = {env for config in configs for plan in config.figures.values() for env in plan.envs}
    return [env for env in TASKS if env in named]


def at_scale(config: Config) -> Iterator[str]:
    """Files under results/ of all figures and tables that a scale has."""
    for artefacts, ending in ((FIGURES, "pdf"), (TABLES, "csv")):
        yield from (f"{a.name}.{ending}" for a in artefacts.values() if a.at(config))

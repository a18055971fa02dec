"""The register of all figures, tables and documents.

docs/new-artefact.md shows how to add a figure or a table.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from ngt.errors import UserError, suggest
from ngt.experience.envs import TASKS
from ngt.files import CHECKOUT
from ngt.runs.keys import RunKey, run_table
from ngt.settings.config import Config, FigureConfig
from ngt.settings.resolve import method_rate, model_params, own_file

# Files of shipped measurements. They are the suite's, whatever folder a command runs in, and
# whatever folder has the runs.
_PUBLISHED = CHECKOUT / "results" / "published"
GPU = str(_PUBLISHED / "gpu.json")  # written by `make gpu-check`
QUICK = str(_PUBLISHED / "quick.json")  # written by `ngt publish`
POTENTIAL = str(_PUBLISHED / "potential.npz")  # written by `python -m paper.numbers.potential`
VIDEOS = CHECKOUT / "docs" / "experts"  # of the shipped experts, made by `ngt video`
AGENTS = CHECKOUT / "docs" / "agents"  # videos of runs beside their experts, METHOD-ENV.gif
CURVE_FIGURES = "paper.figures.curves:make"

Kind = Literal["figure", "table", "report", "paper"]
ENDINGS: dict[Kind, str] = {"figure": "pdf", "table": "csv", "report": "html", "paper": "pdf"}


def plan_of(config: Config, name: str, *, one: Iterable[str]) -> FigureConfig:
    """Return an entry of `figures`. Raise UserError unless each field in `one` has one value."""
    plan = config.figures[name]
    for axis in one:
        values = getattr(plan, axis)
        if len(values) != 1:
            shown = ", ".join(map(str, values))
            raise UserError(f"figures.{name}.{axis}: found [{shown}]; this figure needs one value")
    return plan


def one_rate(config: Config, name: str) -> FigureConfig:
    """Return an entry of `figures` whose runs have one subsampling rate."""
    return plan_of(config, name, one=["rates"])


def one_cell(config: Config, name: str) -> FigureConfig:
    """Return an entry of `figures` whose runs have one input mode and one rate."""
    return plan_of(config, name, one=["modes", "rates"])


def one_task(config: Config, name: str) -> FigureConfig:
    """Return an entry of `figures` whose runs differ only in method, env and seed."""
    return plan_of(config, name, one=["modes", "rates", "demos"])


def one_method(config: Config, name: str) -> FigureConfig:
    """Return an entry of `figures` that has a single method, which may have any rate."""
    plan = plan_of(config, name, one=["methods"])
    (method,) = plan.methods
    if plan.beside:
        raise UserError(f"figures.{name}.beside: found {plan.beside[0]}; this figure takes none")
    if (own := method_rate(config, method)) is not None:
        raise UserError(
            f"figures.{name}.methods: {method} has the fixed rate {own}; name a method without a "
            f"fixed rate"
        )
    return plan


def embeddings(config: Config, name: str) -> dict[str, int]:
    """Return the embedding size of each method in an entry of `figures` that has one rate."""
    plan, sizes = one_rate(config, name), {}
    for method in (*plan.beside, *plan.methods):
        _, params = model_params(config, method, plan.envs[0])
        if "m" not in params:
            raise UserError(f"figures.{name}.methods: {method} has no embedding size m")
        sizes[method] = int(params["m"])
    return sizes


@dataclass(frozen=True)
class Artefact:
    """A figure (PDF, PNG), a table (CSV, LaTeX, JSON), or a document that shows all of them.

    make: the function that makes the artefact, as `module:name`; its type is `paper.command.Maker`.
    source: the artefact's label in the paper's LaTeX source, or empty if the paper lacks the
    artefact.
    runs: names of entries of `figures` in the config; the artefact shows the runs of these entries.
    experts: show the experts for the entries in `runs` instead of the runs.
    everything: show the runs of all entries of `figures`.
    files: files with additional measurements, read if they exist.
    scale: the scale (a config in workflow/config/) that the artefact shows by default, or empty for
    the default scale.
    fits: a function that raises UserError if the artefact can't show an entry in `runs` or, without
    `runs`, the main figure's entry.
    """

    name: str
    title: str
    make: str
    source: str = ""
    kind: Kind = "figure"
    runs: tuple[str, ...] = ()
    experts: bool = False
    everything: bool = False
    files: tuple[str, ...] = ()
    scale: str = ""
    fits: Callable[[Config, str], object] | None = None

    @property
    def file(self) -> str:
        """Return the name of the artefact's main file under results/."""
        return f"{self.name}.{ENDINGS[self.kind]}"

    def shown(self, config: Config) -> list[str]:
        """Return the entries of `figures` that the artefact shows at a scale."""
        return [name for name in config.figures if self.everything or name in self.runs]

    def at(self, config: Config) -> bool:
        """Return True if the scale has runs of the artefact, or if the artefact needs no runs."""
        if self.experts:
            return bool(self.experts_of(config))
        return not (self.runs or self.everything) or bool(self.shown(config))

    def check(self, config: Config) -> None:
        """Raise UserError if the artefact can't show its entries of `figures` in the config.

        Also raise UserError for an entry that no artefact shows, since its name is misspelt, and if
        the config has nothing for the artefact.
        """
        known = {name for artefact in ARTEFACTS.values() for name in artefact.runs}
        for name in config.figures:
            if name not in known:
                raise UserError(f"figures.{name}: no artefact shows it; {suggest(name, [*known])}")
        for name in self.runs or MAIN:
            if self.fits and name in config.figures:
                self.fits(config, name)
        if not self.at(config):
            entry = f"figures.{' or figures.'.join(self.runs)}" if self.runs else "figures"
            raise UserError(
                f"{entry}: {self.name} has no {'expert' if self.experts else 'runs'} at scale "
                f"{config.scale}; choose another scale, or add the entry to the config"
            )

    def keys(self, config: Config) -> list[RunKey]:
        """Return the keys of all runs that the artefact shows, including the runs of `beside`."""
        return [] if self.experts else run_table(config, self.shown(config), beside=True)

    def experts_of(self, config: Config) -> list[str]:
        """Return the envs whose experts the artefact shows.

        Leave out the envs for which the config names a file of demonstrations.
        """
        envs = [env for name in self.shown(config) for env in config.figures[name].envs]
        return [env for env in envs if not own_file(config, env)] if self.experts else []


def _curves(
    name: str, title: str, source: str = "", fits: Callable[[Config, str], object] = one_rate
) -> Artefact:
    """Return a figure of learning curves for the entry of `figures` with the same name."""
    return Artefact(name, title, CURVE_FIGURES, source, runs=(name,), fits=fits)


MAIN = ("main_figure",)
SPEED = "speed_table"  # the entry of the config's `figures` with the timed runs

ARTEFACTS = {
    artefact.name: artefact
    for artefact in (
        Artefact(
            "method_diagram", "The method", "paper.figures.method:make", "Fig. diag", scale="paper"
        ),
        _curves("main_figure", "Every method, env and number of demonstrations", "Fig. main"),
        _curves(
            "grid_figure",
            "NGT over demonstrations, subsampling rates and input modes",
            "Fig. grid",
            fits=one_method,
        ),
        _curves("seeds_figure", "NGT over ten seeds", "Fig. 10seeds"),
        _curves("ablation_mse_softmax", "Ablation: MSE-softmax pairing", "Fig. abl_mse"),
        _curves(
            "ablation_hlg_elsewhere",
            "Ablation: HL-Gauss pairing on the other envs",
            "Fig. abl_hlg_generalization",
        ),
        _curves("ablation_init", "Ablation: initialisation of the head", "Fig. abl_init"),
        _curves("ablation_spectral_norm", "Ablation: no spectral norm", "Fig. abl_sn"),
        _curves(
            "ablation_embedding",
            "Ablation: size of the embedding",
            "Fig. abl_embeddim",
            fits=embeddings,
        ),
        _curves("ablation_sigma", "Ablation: equal widths of HL-Gauss (not in the paper)"),
        _curves("dmc_figure", "DeepMind Control tasks", "Fig. dmc"),
        _curves("pairing_figure", "NGT over pairing losses (not in the paper)"),
        _curves("penalty_figure", "With and without a gradient penalty (not in the paper)"),
        _curves("controls_figure", "Controls: survival and raw inputs (not in the paper)"),
        _curves("readings_figure", "Choices left open by the paper (not in the paper)"),
        _curves("beyond_figure", "NGT, DAC and methods beyond the paper (not in the paper)"),
        _curves("humanoid_figure", "Humanoid-v4, with shortened runs (not in the paper)"),
        Artefact(
            "aggregate_figure",
            "Aggregates over tasks (not in the paper)",
            "paper.figures.aggregate:make",
            runs=MAIN,
            fits=one_cell,
        ),
        Artefact(
            "reward_figure",
            "The learned reward (not in the paper)",
            "paper.figures.reward:make",
            runs=MAIN,
            files=(POTENTIAL,),
            fits=one_cell,
        ),
        Artefact(
            "speed_figure",
            "Speed over training",
            "paper.figures.speed:make",
            "Table speed-comparison",
            runs=(SPEED,),
            fits=one_task,
        ),
        Artefact(
            "expert_figure",
            "The experts (not in the paper)",
            "paper.figures.experts:make",
            runs=MAIN,
            experts=True,
        ),
        Artefact(
            "theory_figure", "The theory, computed", "paper.figures.theory:make", "the theorems"
        ),
        Artefact(
            "claims_table",
            "The paper's claims",
            "paper.tables.claims:make",
            "the prose",
            kind="table",
            everything=True,
            files=(GPU,),
            fits=one_cell,
        ),
        Artefact(
            "main_table",
            "Final scores",
            "paper.tables.scores:make",
            kind="table",
            runs=MAIN,
            fits=one_cell,
        ),
        Artefact(
            "aggregate_table",
            "Aggregates over tasks (not in the paper)",
            "paper.tables.aggregate:make",
            kind="table",
            runs=MAIN,
            fits=one_cell,
        ),
        Artefact(
            "pairs_table",
            "Each method against each other (not in the paper)",
            "paper.tables.pairs:make",
            kind="table",
            runs=MAIN,
            fits=one_cell,
        ),
        Artefact(
            "speed_table",
            "Speed",
            "paper.tables.speed:make",
            "Table speed-comparison",
            kind="table",
            runs=(SPEED,),
            fits=one_task,
        ),
        Artefact(
            "theory_table",
            "The theory, computed",
            "paper.tables.theory:make",
            "the theorems",
            kind="table",
        ),
        Artefact(
            "hyperparameter_table",
            "Settings",
            "paper.tables.settings:make",
            "appendix",
            kind="table",
            scale="paper",
        ),
        Artefact(
            "environment_table",
            "Environments",
            "paper.tables.environments:make",
            "appendix",
            kind="table",
            files=(QUICK,),
            scale="paper",
        ),
        Artefact(
            "report",
            "All figures and tables in one page",
            "paper.document.report:make",
            kind="report",
            everything=True,
        ),
        Artefact(
            "paper",
            "All figures and tables as a LaTeX report",
            "paper.document.typeset:make",
            kind="paper",
            everything=True,
        ),
    )
}
FIGURES = {name: a for name, a in ARTEFACTS.items() if a.kind == "figure"}
TABLES = {name: a for name, a in ARTEFACTS.items() if a.kind == "table"}
REPORT, PAPER = ARTEFACTS["report"], ARTEFACTS["paper"]
CURVES = tuple(name for name, a in FIGURES.items() if a.make == CURVE_FIGURES)


def envs(*configs: Config) -> list[str]:
    """Return all envs in the figures of the configs, in the order of TASKS."""
    named = {env for config in configs for plan in config.figures.values() for env in plan.envs}
    return [env for env in TASKS if env in named]

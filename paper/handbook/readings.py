"""A table of the points on which the paper can be read in two ways.

For each point, the table shows what the paper prints, what its authors' code does, what the suite
does, and how to choose the other reading. The suite's values come from the config and the code; all
other values are in `paper.claims`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import einops

from ngt.experience.envs import get_task
from ngt.settings.config import Config
from ngt.settings.resolve import load_model, model_params
from paper.claims.envs import CODE_SIZES, PAPER_SIZES, SIXTH
from paper.claims.stated import AGREE, DIFFERS, SILENT, STATED, Stated
from paper.drawing.table import markdown
from paper.tables.environments import paper_id, sizes
from paper.tables.settings import entropy_targets, settings, where
from paper.words import listed

ROOT = Path(__file__).resolve().parents[2]
HEAD = ("what", "printed", "the authors' code", "ours", "printed and ours", "the other reading")

UNITS = """\
The last column gives the argument of the `--set` option that selects the other reading, quoted for
a shell. "Silent" means that the paper says nothing about the choice. "Backbone" is
lionelblonde/sac-td3-cudagraphs-pytorch, the public code that is closest to the paper's agent.
"Release" is lionelblonde/ngt, which is later than the paper. `hyperparameter_table` has the same
columns for every setting, and `readings_figure` shows the effect of some choices.

Only the target entropy refers to actions in the env's units. In the critic's target, log π is the
log density of the action in [-1, 1]. If log π also referred to actions in the env's units, the
critic's target would differ by a constant per step: α times the sum of log b over the action's
dimensions, where b is half the distance between the action bounds.

The shipped experts in `data/` were trained with `lr_alpha: 0.0003`, `alpha_loss: log_alpha` and
`entropy_units: tanh`. The `lite` scale sets these values for its experts. If a run was trained
before a setting was added to the suite, the run counts as trained with the value that the suite
used before (`ngt/settings/former.py`).
"""


@dataclass(frozen=True)
class Reading:
    """A point that can be read in two ways, other than the value of a single setting."""

    what: str
    printed: str  # what the paper prints
    code: str  # what the authors' code does
    ours: Callable[[Config], str]  # returns what the suite does, read from the config or the code
    agreement: str  # whether the paper agrees with the suite
    other: str  # KEY=VALUE for `--set` that chooses the other reading, or a text if there is none

    def row(self, config: Config) -> tuple[str, ...]:
        """Return the table's row for this point."""
        other = f"`{shlex.quote(self.other)}`" if "=" in self.other else self.other
        return (self.what, self.printed, self.code, self.ours(config), self.agreement, other)


def sixth(config: Config) -> str:
    """Name the envs of the main figure that the paper does not list."""
    envs = config.figures["main_figure"].envs
    return listed(env for env in envs if paper_id(env) not in PAPER_SIZES) or "none"


def ant(config: Config) -> str:
    """Describe the observation and action sizes of the Ant envs in the main figure."""
    tasks = [get_task(env) for env in config.figures["main_figure"].envs if env.startswith("Ant")]
    return listed(sizes((task.obs, task.act)) for task in tasks) or "none"


def seeing(config: Config) -> str:
    """Name the methods whose models may see the env's reward."""
    models = {name: model_params(config, name, "")[0] for name in config.methods}
    seen = [f"`{n}`" for n, path in models.items() if load_model(path, n).uses_env_reward]
    return f"stored for diagnostics; seen only by {listed(['the expert', *seen])}"


def elsewhere(config: Config) -> str:
    """Describe the suite's settings for HL-Gauss on envs other than Humanoid."""
    (name,) = config.figures["ablation_hlg_elsewhere"].methods
    params = model_params(config, name, "")[1]
    return (
        f"N = {params['bins']}, [−{params['support']:g}, {params['support']:g}], "
        f"σ {params['sigma_expert']:g} and {params['sigma_agent']:g}: Humanoid's"
    )


def with_einops(config: Config) -> str:
    """Name the modules in ngt/ and baselines/ that use einops."""
    files = sorted(file for part in ("ngt", "baselines") for file in (ROOT / part).rglob("*.py"))
    named = f"from {einops.__name__} import"
    found = [file for file in files if named in file.read_text(encoding="utf-8")]
    return listed(f"`{file.relative_to(ROOT).as_posix()}`" for file in found)


READINGS = (
    Reading(
        "the env's reward in the buffer",
        "not stored",
        "dropped, to prevent leakage",
        seeing,
        f"{DIFFERS}: hidden from every other model instead",
        "methods.constant.model=ngt.reward:EnvReward",
    ),
    Reading(
        "the sixth env of 720 runs",
        "five envs are listed",
        f"{SIXTH} is among the code's envs",
        sixth,
        f"{SILENT}: 720, 72, 92 and the DeepMind Control grid are our accounting",
        "figures.main_figure.envs=[Ant-v4, HalfCheetah-v4, Humanoid-v4, Pusher-v5, Walker2d-v4]",
    ),
    Reading(
        "observations and actions of Ant",
        str(sizes(PAPER_SIZES["Ant-v4"])),
        f"{sizes(CODE_SIZES['Ant-v4'])}, Gymnasium's default",
        ant,
        AGREE,
        "figures.main_figure.envs="
        "[Ant-27, HalfCheetah-v4, Hopper-v4, Humanoid-v4, Pusher-v5, Walker2d-v4]",
    ),
    Reading(
        "HL-Gauss on envs other than Humanoid",
        "N, support and σ differ by env and are not given",
        "absent",
        elsewhere,
        f"{SILENT}: the verdict is “not comparable”",
        "methods.ngt-hlg.params.sigma_agent=0.1",
    ),
    Reading(
        "einops",
        "named as the tool for HL-Gauss's reshaping",
        "`pack` for inputs, `rearrange`",
        with_einops,
        AGREE,
        "none, because it changes no number",
    ),
)


def ours(config: Config, stated: Stated) -> Iterator[tuple[str, str]]:
    """Yield each value that the suite uses for a setting, and whether the paper agrees with it.

    If the value differs between envs, the text of each value names its envs.
    """
    envs = config.figures["main_figure"].envs
    own = {env: settings(config, stated.method, env) for env in envs}
    values = {env: known[stated.key][0] for env, known in own.items()}
    for value in dict.fromkeys(values.values()):
        on = [env for env in envs if values[env] == value]
        place = "" if len(on) == len(envs) else f" on {where(on, envs)}"
        targets = entropy_targets(own) if stated.key == "sac.entropy_units" else {}
        yield f"`{value}`{place}{_in_units(targets)}", stated.agreement(value, on)


def _in_units(targets: dict[str, float]) -> str:
    shown = (
        f"{target:.2f} on {env} (`tanh`: {-get_task(env).act})" for env, target in targets.items()
    )
    return f": for actions in [-1, 1] {', '.join(shown)}" if targets else ""


def of_setting(config: Config, stated: Stated) -> tuple[str, ...]:
    """Return the table's row for a setting."""
    values, agreements = zip(*ours(config, stated), strict=True)
    agreement = "; ".join(dict.fromkeys(agreements))
    code, other = stated.code or "–", f"`{shlex.quote(stated.other)}`"
    return (stated.name, stated.printed, code, "; ".join(values), agreement, other)


def rows(config: Config) -> list[tuple[str, ...]]:
    """Return one row per point: first the settings, then the points in READINGS."""
    return [
        *(of_setting(config, stated) for stated in STATED if stated.other),
        *(reading.row(config) for reading in READINGS),
    ]


def section(config: Config) -> str:
    """Return the table and the explanations below it, as Markdown."""
    return f"{markdown([HEAD, *rows(config)])}\n{UNITS}"

"""Every setting of the backbone and of each method, from the code's own defaults.

Beside them what the paper states, and whether the values agree.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ngt.errors import UserError
from ngt.runs.keys import Layout
from ngt.settings.config import Config, ExpertConfig, MethodConfig, Override
from ngt.settings.load import load
from ngt.settings.resolve import distinct_methods, expert_config, resolve_expert
from ngt.training.learner import Learner
from paper import register
from paper.command import Made, Options
from paper.drawing.table import Cell, Column, Table
from paper.numbers import variants
from paper.numbers.variants import Difference, Settings, as_text
from paper.words import yes_or_no

BACKBONE, EXPERT = "backbone", "expert"  # where a method's name stands elsewhere


@dataclass(frozen=True)
class Stated:
    """A value that the paper states."""

    name: str  # as the paper has it
    value: Any  # as our setting would have it
    key: str = ""  # our setting; none where empty, and `why` then says why
    method: str = BACKBONE
    shown: str = ""  # the value as the paper writes it, where that is another form
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.shown or as_text(self.value)}"


# The table "Default Hyper-parameters for NGT Algorithm" in its order, then "Network Architecture".
PAPER = (
    Stated("GPU", True, why="the device is given to each command, --device"),
    Stated("PyTorch's compile", False, why="no code here is compiled"),
    Stated("CudaGraphs", True, "graphs"),
    Stated("number of parallel environments", 4, "train.num_envs"),
    Stated("action repeat", 1, why="an action is one env step"),
    Stated("observation normalization", False, "normalise_obs"),
    Stated("number of environment steps", 10**7, "train.steps"),
    Stated("learning starts at timestep", 0, "train.learning_starts"),
    Stated("evaluation steps", 10, "train.eval_episodes"),
    Stated("evaluate every", 10_000, "train.eval_every"),
    Stated("evaluation window buffer size", 20, "window"),
    Stated("clip norm actor", 20.0, "sac.actor_grad_clip"),
    Stated("replay buffer size", 4 * 10**6, "train.buffer"),
    Stated("minibatch size", 256, "train.batch"),
    Stated("discount factor", 0.99, "sac.gamma"),
    Stated("Polyak target smoothing coefficient", 0.005, "sac.tau"),
    Stated("learning rate, policy", 3e-4, "sac.lr_actor"),
    Stated("learning rate, Q-networks", 1e-3, "sac.lr_critic"),
    Stated("temperature, auto-tune", True, "sac.learn_alpha"),
    Stated("temperature, initial value", 0.2, "sac.alpha"),
    Stated("target entropy", 1.0, "sac.target_entropy_scale", shown="−|A|"),
    Stated("number of gradient steps per update", 1, "train.updates_per_step"),
    Stated("number of environment steps per update", 1, why="updates go with each vector step"),
    Stated("learning rate, reward", 1e-3, "params.lr", "ngt"),
    Stated("spectral normalization", True, "params.spectral_norm", "ngt"),
    Stated("gradient penalty", False, method="ngt", why="NGT's loss has no such term"),
    Stated("output embedding size", 32, "params.m", "ngt"),
    Stated("output post-tanh rescale", 5.0, "params.rescale", "ngt"),
    Stated("HLG support", 1.0, "params.support", "ngt", shown="[−1, 1]"),
    Stated("HLG number of bins", 21, "params.bins", "ngt"),
    Stated("HLG agent-side σ", 0.05, "params.sigma_agent", "ngt"),
    Stated("HLG expert-side σ", 0.25, "params.sigma_expert", "ngt"),
    Stated("number of behavioral cloning iterations", 10**7, "train.steps", "bc"),
    Stated("actor and critic, hidden layers", (256, 256), "sac.hidden"),
    Stated("actor and critic, activation", "relu", "sac.activation"),
    Stated("layer normalization", False, "sac.layer_norm"),
    Stated("reward network, hidden layers", (256, 256), "params.hidden", "ngt"),
    Stated("reward network, leak", 0.05, "params.leak", "ngt"),
    Stated("reward network, initialization", "orthogonal", "params.init", "ngt"),
    Stated("reward network, initialization", "orthogonal", "params.head_init", "ngt"),
)

COLUMNS = {
    "method": Column("method", width=0.085),
    "like": Column("like", width=0.065),
    "setting": Column("setting", width=0.14),
    "envs": Column("on", width=0.1),
    "value": Column("value", width=0.1),
    "at_paper": Column("at scale paper", width=0.08),
    "paper": Column("stated in the paper", width=0.13),
    "agrees": Column("agree"),
    "meaning": Column("meaning", width=0.15),
}


def settings(config: Config, name: str, env: str) -> Settings:
    """Value and meaning of every setting of the backbone, the expert or a method on an env."""
    if name == EXPERT:
        entry = expert_config(config, env)
        shared = {f.name for f in dataclasses.fields(Override)}
        own = [f for f in dataclasses.fields(ExpertConfig) if f.name not in shared]
        return variants.settings(resolve_expert(config, env)) | {
            f.name: (as_text(getattr(entry, f.name)), f.metadata["doc"]) for f in own
        }
    if name != BACKBONE:
        return variants.settings(variants.cell(config, env, name))
    plain = replace(config, methods={BACKBONE: MethodConfig(model="ngt.reward:Constant")})
    backbone = variants.settings(variants.cell(plain, env, BACKBONE))
    del backbone["model"]
    (window,) = (f for f in dataclasses.fields(Config) if f.name == "window")
    graphs = inspect.signature(Learner).parameters["graphs"].default
    return backbone | {
        "window": (as_text(config.window), window.metadata["doc"]),
        "graphs": (
            as_text(graphs),
            "CUDA graphs on a GPU: of the learner, in no config, and changes no result",
        ),
    }


def sides(config: Config, envs: Sequence[str]) -> dict[str, dict[str, Settings]]:
    """Settings by name and env."""
    names = (BACKBONE, EXPERT, *config.methods)
    return {name: {env: settings(config, name, env) for env in envs} for name in names}


def like(config: Config, name: str) -> str:
    """What a name is told apart from; empty for the backbone."""
    entry = config.methods.get(name)
    return "" if name == BACKBONE else (entry.like if entry else "") or BACKBONE


def told(
    own: Mapping[str, Settings], other: Mapping[str, Settings], *keys: str
) -> list[Difference]:
    """The settings, by env, that tell one from another, and those of `keys` in any case."""
    changed = variants.compare({env: (other[env], own[env]) for env in own})
    shown = {(row.name, env) for row in changed for env in row.envs}
    shown |= {(key, env) for key in keys for env in own}
    return variants.compare(
        {e: ({}, {k: v for k, v in side.items() if (k, e) in shown}) for e, side in own.items()}
    )


def where(on: Sequence[str], envs: Sequence[str]) -> str:
    """Some of the envs, as short as may be."""
    others = [env for env in envs if env not in on]
    names = ", ".join(on if len(on) <= len(others) else others)
    return "all" if not others else names if len(on) <= len(others) else f"all but {names}"


def rows(
    name: str,
    base: str,
    ours: Mapping[str, Mapping[str, Settings]],
    paper: Mapping[str, Mapping[str, Settings]],
) -> Iterator[dict[str, Cell]]:
    """The rows of the backbone, the expert or a method; paper: the sides of scale paper."""
    stated = {s.key: s for s in PAPER if s.method == name and s.key}
    own = ours[name]
    head: dict[str, Cell] = {"method": name, "like": base or None}
    found = told(own, ours[base] if base else {env: {} for env in own}, *stated)
    for row in found:
        value, source = row.values[1], stated.get(row.name)
        there = [
            paper[name][env].get(row.name, ("none", ""))[0] for env in row.envs if name in paper
        ]
        yield head | {
            "setting": row.name,
            "envs": where(row.envs, list(own)),
            "value": value,
            "at_paper": " or ".join(dict.fromkeys(there)) if set(there) - {value} else None,
            "paper": str(source) if source else None,
            "agrees": yes_or_no(value == as_text(source.value)) if source else None,
            "meaning": row.meaning.replace("`", ""),
        }
    blank: dict[str, Cell] = dict.fromkeys(COLUMNS) | head
    if not found:
        yield blank | {"meaning": f"no setting differs from that of {base} on these envs"}
    for source in PAPER:
        if source.method == name and not source.key:
            yield blank | {"paper": str(source), "meaning": source.why}


def table(config: Config) -> Table:
    """The backbone's settings, the expert's, then each method's own."""
    envs, methods = register.envs(config), distinct_methods(config)
    if not envs:
        raise UserError("figures: none names an env, so there is no setting to show; name one")
    default = load({"scale": "paper"})
    ours = sides(config, envs)
    paper = ours if config == default else sides(default, envs)
    lines = [
        row
        for name in (BACKBONE, EXPERT, *methods)
        for row in rows(name, like(config, name), ours, paper)
    ]
    timed = ", ".join(name for name in config.methods if name not in methods)
    verdicts = [row["agrees"] for row in lines if row["paper"]]
    notes = [
        f"Scale {config.scale}, envs {', '.join(envs)}. Settings are named and written as in a "
        f"config file. A method's rows are those in which it differs from what it is like; "
        f"the backbone is the agent and the loop that all share.",
        f"Of the values that the paper states {verdicts.count('yes')} agree, "
        f"{verdicts.count('no')} differ and {verdicts.count(None)} have no setting here.",
    ]
    if timed:
        notes.append(f"Left out, as they differ in a run's length alone: {timed}.")
    columns = dict(COLUMNS)
    if not any(row["at_paper"] for row in lines):
        width = (columns.pop("at_paper").width or 0) + (COLUMNS["meaning"].width or 0)
        columns["meaning"] = replace(COLUMNS["meaning"], width=width)
    return Table("Settings", columns, [{k: row[k] for k in columns} for row in lines], notes)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table, which needs no runs."""
    return Made(table(config))

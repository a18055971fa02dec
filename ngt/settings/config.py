"""All settings, as frozen dataclasses. Their defaults are defined only here.

A config file contains only differences from these defaults. A scale, such as `quick`, is a version
of the experiments with its own config file. `load` merges base.yaml, the scale's file and the
user's settings, in this order. Later values override earlier values, and the result is parsed
strictly. `resolve` returns the settings of a cell, i.e. of runs that differ only in demonstrations
and seed. `resolve` merges four sets of settings: the shared settings, the env's settings, the
method's settings, and the method's settings on this env. Later sets override earlier sets.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass, field
from typing import Any, Literal

from ngt.errors import UserError
from ngt.settings.schema import opt

Mode = Literal["state-action", "state-state", "state-only"]
MODES: tuple[Mode, ...] = typing.get_args(Mode)


@dataclass(frozen=True)
class SacConfig:
    """The settings of soft actor-critic. Unless noted, defaults are from the paper."""

    hidden: tuple[int, ...] = opt((256, 256), "widths of actor and critics", 1)
    activation: Literal["relu", "silu"] = opt("relu", "activation of actor and critics")
    layer_norm: bool = opt(False, "apply layer norm before each activation of actor and critics")
    head_gain: float = opt(1.0, "factor of the output layers' orthogonal initial weights", 0)
    critics: int = opt(2, "number of Q functions; the smallest of their values is used", 1, 2)
    gamma: float = opt(0.99, "discount factor", 0, 1)
    tau: float = opt(0.005, "weight of the online critics in the target's moving average", 0, 1)
    lr_actor: float = opt(3e-4, "Adam's learning rate for the actor", 0)
    lr_critic: float = opt(1e-3, "Adam's learning rate for the critics", 0)
    lr_alpha: float = opt(1e-3, "Adam's learning rate for the temperature", 0)
    alpha: float = opt(
        0.2, "initial temperature; if alpha_form is softplus, it is softplus(log(alpha))", 1e-8
    )
    alpha_form: Literal["exp", "softplus"] = opt(
        "exp", "function that computes alpha from the learned parameter"
    )
    alpha_loss: Literal["alpha", "log_alpha"] = opt(
        "alpha", "weight of the temperature's loss; Algorithm 1 uses alpha"
    )
    learn_alpha: bool = opt(True, "adapt the temperature to the target entropy")
    target_entropy_scale: float = opt(
        1.0, "factor c in the target entropy -c |A|; see entropy_units"
    )
    entropy_units: Literal["env", "tanh"] = opt(
        "env", "units of the actions whose entropy is targeted: the env's own, or [-1, 1] (tanh)"
    )
    actor_grad_clip: float = opt(20.0, "largest gradient norm of the actor, per run", 0)
    critic_grad_clip: float | None = opt(
        None, "largest joint gradient norm of both critics, per run; null for no clipping", 0
    )
    log_std_min: float = opt(-5.0, "lower end of the range into which tanh squashes the log-std")
    log_std_max: float = opt(2.0, "upper end of the range into which tanh squashes the log-std")

    def __post_init__(self) -> None:
        """Check that the log-std's range is not empty."""
        if self.log_std_min >= self.log_std_max:
            raise UserError(
                f"sac.log_std_max: must be above sac.log_std_min = {self.log_std_min}, "
                f"found {self.log_std_max}"
            )


@dataclass(frozen=True)
class TrainConfig:
    """The settings of the training loop, Algorithm 1. Unless noted, defaults are from the paper."""

    steps: int = opt(10_000_000, "env steps, or gradient steps if a method uses no env", 1)
    num_envs: int = opt(4, "envs stepped together; a vector step counts as this many steps", 1)
    updates_per_step: int = opt(1, "number of reward and agent updates per vector step", 1)
    learning_starts: int = opt(0, "env steps of uniform random actions before the first update", 0)
    batch: int = opt(
        256,
        "number of agent transitions per update, and of expert transitions; methods that mix both "
        "use half of each",
        1,
    )
    buffer: int = opt(4_000_000, "number of transitions kept", 1)
    eval_every: int = opt(10_000, "env steps between evaluations", 1)
    eval_episodes: int = opt(10, "deterministic episodes per evaluation, each from a new seed", 1)
    log_every: int = opt(10_000, "env steps between rows of train.csv", 1)
    keep: Literal["last", "best"] = opt(
        "last", "policy to save; best is the one with the highest evaluation return"
    )

    def __post_init__(self) -> None:
        """Check that the buffer can hold a vector step."""
        if self.buffer < self.num_envs:
            raise UserError(
                f"train.buffer: must be at least train.num_envs = {self.num_envs}, "
                f"found {self.buffer}"
            )


@dataclass(frozen=True)
class CellConfig:
    """The settings of a cell: runs that differ only in their seed and number of demonstrations."""

    env: str
    method: str
    model: str = opt("", "dotted path of the reward model, `package.module:Class`")
    params: dict[str, Any] = field(default_factory=dict)  # all fields of the model's Config
    mode: Mode = opt("state-action", "input of the reward model: (s,a), (s,s') or (s)")
    rate: int = opt(20, "subsampling rate: keep every rate-th transition of a demonstration", 1)
    terminate_when_unhealthy: bool = opt(True, "end the episode of an unhealthy body")
    normalise_obs: bool = opt(
        False, "normalise the agent's observations by their running mean and std"
    )
    demos_source: str = opt("", "hash of the expert's config or of the demonstration file")
    sac: SacConfig = field(default_factory=SacConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


@dataclass(frozen=True)
class Override:
    """Settings that override the shared settings for an env, a method, or a method on an env."""

    sac: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    terminate_when_unhealthy: bool | None = opt(None, "as in the cell; null keeps its value")
    normalise_obs: bool | None = opt(None, "as in the cell; null keeps its value")


@dataclass(frozen=True)
class ExpertConfig(Override):
    """Settings of the expert (SAC on the env's own reward), which override the agent's settings."""

    seed: int = opt(1000, "the expert's seed, different from every agent's", 0)
    episodes: int = opt(16, "number of recorded episodes; their mean return has score 1", 1)


@dataclass(frozen=True)
class MethodEnvConfig(Override):
    """The settings of a method on one env, which override the method's settings for all envs."""

    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodConfig(MethodEnvConfig):
    """A method or, if `like` is set, a variant of the method that `like` names."""

    label: str = opt("", "name in figures; if empty, the key")
    like: str = opt("", "method of which this one is a variant")
    model: str = opt("", "dotted path of the reward model, `package.module:Class`")
    rate: int | None = opt(None, "fixed subsampling rate, which overrides the figure's", 1)
    envs: dict[str, MethodEnvConfig] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvConfig(Override):
    """The settings for an env, which override the shared settings of its agents and its expert."""

    expert: dict[str, Any] = field(default_factory=dict)
    demos: str = opt(
        "",
        "your own demonstration file, searched for in the working folder, then in the checkout; "
        "if empty, the expert's file is used",
    )


DIGITS = 18  # of a number in a run's key; a signed 64-bit integer can hold any such number


@dataclass(frozen=True)
class FigureConfig:
    """The runs of a figure or table: all combinations of its fields. null removes the figure."""

    methods: tuple[str, ...] = ()
    beside: tuple[str, ...] = opt((), "more methods to draw; another artefact requests their runs")
    envs: tuple[str, ...] = ()
    demos: tuple[int, ...] = opt((1, 4, 11), "numbers of demonstrations", 1)
    seeds: tuple[int, ...] = opt((0, 1, 2, 3), "seeds", 0)
    modes: tuple[Mode, ...] = (CellConfig.mode,)
    rates: tuple[int, ...] = opt((CellConfig.rate,), "subsampling rates", 1)
    # method -> the envs on which the method runs; methods that are not listed run on all envs
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def envs_of(self, method: str) -> list[str]:
        """Return the figure's envs on which a method runs."""
        return [env for env in self.envs if env in self.only.get(method, self.envs)]


@dataclass(frozen=True)
class StatisticsConfig:
    """Settings of the stratified bootstrap of intervals, which resamples seeds within each task."""

    # With 2000 repetitions, the ends of an interval vary by 2% of its width between seeds of the
    # bootstrap. The 50 000 repetitions of the rliable package would take hours, since one
    # probability of improvement over 18 tasks takes 9 ms to compute.
    reps: int = opt(2000, "number of repetitions", 1)
    seed: int = opt(0, "seed of the draws", 0)
    reference: str = opt(
        "", "method that others are compared with; if empty, the first of main_figure"
    )


@dataclass(frozen=True)
class Config:
    """All settings of the workflow at one scale, i.e. for one version of the experiments."""

    scale: str = "quick"
    study: str = opt(
        "", "name of a study, whose results are in results/<study>/; changes no result"
    )
    imports: tuple[str, ...] = opt((), "modules to import first, which may register tasks")
    records: Literal["trained", "published"] = opt(
        "trained", "source of figures: runs trained here, or the published records"
    )
    demos: Literal["trained", "shipped"] = opt(
        "trained", "experts to imitate: those trained here, or those shipped in data/"
    )
    pack: int = opt(12, "maximum number of runs that one job trains together; changes no result", 1)
    checkpoint_every: int = opt(50_000, "env steps between checkpoints; changes no result", 0)
    window: int = opt(20, "number of last evaluations averaged for a run's final score", 1)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    sac: SacConfig = field(default_factory=SacConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    terminate_when_unhealthy: bool = opt(
        CellConfig.terminate_when_unhealthy, "end the episode of an unhealthy body"
    )
    normalise_obs: bool = opt(
        CellConfig.normalise_obs,
        "normalise the agent's observations by their running mean and std",
    )
    expert: ExpertConfig = field(default_factory=ExpertConfig)
    envs: dict[str, EnvConfig] = field(default_factory=dict)
    methods: dict[str, MethodConfig] = field(default_factory=dict)
    figures: dict[str, FigureConfig] = field(default_factory=dict, metadata={"null": True})

"""Every setting with its default, as frozen dataclasses; a default stands here and nowhere else.

A config file holds only differences from these defaults. `load` merges the files (base <- scale <-
user) and parses them strictly. `resolve` makes the settings of a cell: shared <- env <- method <-
(method, env).
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
    """Soft actor-critic; values are the paper's defaults unless noted."""

    hidden: tuple[int, ...] = opt((256, 256), "widths of actor and critics", 1)
    activation: Literal["relu", "silu"] = opt("relu", "of actor and critics")
    layer_norm: bool = opt(False, "before each activation of actor and critics")
    head_gain: float = opt(1.0, "factor on the orthogonal init of the output layers", 0)
    critics: int = opt(2, "Q functions; the value is the smallest", 1, 2)
    gamma: float = opt(0.99, "discount", 0, 1)
    tau: float = opt(0.005, "weight of the online critics in the target's moving average", 0, 1)
    lr_actor: float = opt(3e-4, "Adam", 0)
    lr_critic: float = opt(1e-3, "Adam", 0)
    lr_alpha: float = opt(1e-3, "Adam", 0)
    alpha: float = opt(0.2, "initial temperature; with softplus, that is softplus(log(this))", 1e-8)
    alpha_form: Literal["exp", "softplus"] = opt("exp", "alpha as a function of what is learned")
    alpha_loss: Literal["alpha", "log_alpha"] = opt(
        "alpha", "weight of the temperature's loss; alpha is Algorithm 1's"
    )
    learn_alpha: bool = opt(True, "adapt the temperature to the target entropy")
    target_entropy_scale: float = opt(
        1.0, "target entropy is minus this times |A|, in entropy_units"
    )
    entropy_units: Literal["env", "tanh"] = opt(
        "env", "units of the actions whose entropy is the target: the env's, or [-1, 1]"
    )
    actor_grad_clip: float = opt(20.0, "largest gradient norm of the actor, per run", 0)
    critic_grad_clip: float | None = opt(None, "of both critics together, per run; null: none", 0)
    log_std_min: float = opt(-5.0, "log-std is squashed by tanh into this range")
    log_std_max: float = opt(2.0, "log-std is squashed by tanh into this range")

    def __post_init__(self) -> None:
        """Check that the range is not empty."""
        if self.log_std_min >= self.log_std_max:
            raise UserError(
                f"sac.log_std_max: must be above sac.log_std_min = {self.log_std_min}, "
                f"found {self.log_std_max}"
            )


@dataclass(frozen=True)
class TrainConfig:
    """The loop of Algorithm 1; values are the paper's defaults unless noted."""

    steps: int = opt(10_000_000, "env steps; gradient steps where a method uses no env", 1)
    num_envs: int = opt(4, "envs in lockstep; the step counter goes up by this", 1)
    updates_per_step: int = opt(1, "reward and agent updates per vector step", 1)
    learning_starts: int = opt(0, "env steps of uniform random actions before the first update", 0)
    batch: int = opt(256, "transitions per update, from the agent and from the demonstrations", 1)
    buffer: int = opt(4_000_000, "transitions kept", 1)
    eval_every: int = opt(10_000, "env steps between evaluations", 1)
    eval_episodes: int = opt(10, "deterministic episodes per evaluation, each from a new seed", 1)
    log_every: int = opt(10_000, "env steps between rows of train.csv", 1)
    keep: Literal["last", "best"] = opt("last", "which policy is saved; best by evaluation return")

    def __post_init__(self) -> None:
        """Check that the buffer holds a vector step."""
        if self.buffer < self.num_envs:
            raise UserError(
                f"train.buffer: must be at least train.num_envs = {self.num_envs}, "
                f"found {self.buffer}"
            )


@dataclass(frozen=True)
class CellConfig:
    """The settings that the runs of a pack share; they differ in demonstrations and seed."""

    env: str
    method: str
    model: str = opt("", "dotted path of the reward model, `package.module:Class`")
    params: dict[str, Any] = field(default_factory=dict)  # complete, as in the model's Config
    mode: Mode = opt("state-action", "what the reward model sees: (s,a), (s,s') or (s)")
    rate: int = opt(20, "every rate-th transition of a demonstration is kept", 1)
    terminate_when_unhealthy: bool = opt(True, "an unhealthy body ends its episode")
    normalise_obs: bool = opt(False, "running mean and std of the agent's observations")
    demos_source: str = opt("", "hash of the expert's config, or of the demonstrations' file")
    sac: SacConfig = field(default_factory=SacConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


@dataclass(frozen=True)
class Override:
    """Differences for one env, one method, or one method on one env."""

    sac: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    terminate_when_unhealthy: bool | None = opt(None, "as in the cell")
    normalise_obs: bool | None = opt(None, "as in the cell")


@dataclass(frozen=True)
class ExpertConfig(Override):
    """An expert: SAC on the env's own reward, and how it differs from the agent's settings."""

    seed: int = opt(1000, "another seed than any agent's", 0)
    episodes: int = opt(16, "episodes recorded; their mean return is the normaliser's 1", 1)


@dataclass(frozen=True)
class MethodEnvConfig(Override):
    """Differences of a method on one env."""

    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MethodConfig(MethodEnvConfig):
    """A method, or a named variant of another method (`like`)."""

    label: str = opt("", "name in figures; the key where empty")
    like: str = opt("", "another method that this one differs from")
    model: str = opt("", "dotted path of the reward model, `package.module:Class`")
    rate: int | None = opt(None, "fixed subsampling rate, whatever the figure asks", 1)
    envs: dict[str, MethodEnvConfig] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvConfig(Override):
    """Differences of an env, for the agent and for its expert."""

    expert: dict[str, Any] = field(default_factory=dict)
    demos: str = opt(
        "",
        "a file of demonstrations of one's own, looked for in the working folder, then in the "
        "checkout; the expert's where empty",
    )


@dataclass(frozen=True)
class FigureConfig:
    """The runs of one artefact, the product of its axes; null leaves it out of a scale."""

    methods: tuple[str, ...] = ()
    beside: tuple[str, ...] = opt((), "methods drawn too, whose runs another artefact counts")
    envs: tuple[str, ...] = ()
    demos: tuple[int, ...] = opt((1, 4, 11), "numbers of demonstrations", 1)
    seeds: tuple[int, ...] = opt((0, 1, 2, 3), "seeds", 0)
    modes: tuple[Mode, ...] = (CellConfig.mode,)
    rates: tuple[int, ...] = opt((CellConfig.rate,), "subsampling rates", 1)
    only: dict[str, tuple[str, ...]] = field(default_factory=dict)  # a method's envs, if not all

    def envs_of(self, method: str) -> list[str]:
        """Return the figure's envs on which a method is run."""
        return [env for env in self.envs if env in self.only.get(method, self.envs)]


@dataclass(frozen=True)
class StatisticsConfig:
    """The stratified bootstrap behind every interval: seeds are resampled within each task."""

    # With 2000 repetitions the ends of an interval vary by 2% of its width between seeds. The
    # 50 000 of rliable would take hours: one probability of improvement over 18 tasks is 9 ms.
    reps: int = opt(2000, "repetitions", 1)
    seed: int = opt(0, "of the draws", 0)


@dataclass(frozen=True)
class Config:
    """All settings of the workflow at one scale."""

    scale: str = "quick"
    imports: tuple[str, ...] = opt((), "modules to import first: they may register tasks")
    records: Literal["trained", "published"] = opt(
        "trained", "what figures are drawn from: runs made here, or those that ship"
    )
    demos: Literal["trained", "shipped"] = opt(
        "trained", "what is imitated: experts trained here, or those that ship in data/"
    )
    pack: int = opt(12, "most runs trained in lockstep by one job; changes no result", 1)
    checkpoint_every: int = opt(50_000, "env steps between checkpoints; changes no result", 0)
    window: int = opt(20, "evaluations whose mean is a run's final score", 1)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    sac: SacConfig = field(default_factory=SacConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    terminate_when_unhealthy: bool = opt(
        CellConfig.terminate_when_unhealthy, "an unhealthy body ends its episode"
    )
    normalise_obs: bool = opt(
        CellConfig.normalise_obs, "running mean and std of the agent's observations"
    )
    expert: ExpertConfig = field(default_factory=ExpertConfig)
    envs: dict[str, EnvConfig] = field(default_factory=dict)
    methods: dict[str, MethodConfig] = field(default_factory=dict)
    figures: dict[str, FigureConfig] = field(default_factory=dict, metadata={"null": True})

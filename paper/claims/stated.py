"""The value of each setting in the paper and in its authors' public code.

Our values are not here; they come from the config. The authors' code is in two repositories. The
"backbone" (lionelblonde/sac-td3-cudagraphs-pytorch) is the public code closest to the agent of the
paper. The "release" (lionelblonde/ngt) is NGT itself, and is later than the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paper.numbers.variants import as_text

BACKBONE, EXPERT = "backbone", "expert"  # stand for a method: settings of the agent or the expert
SILENT, AGREE, DIFFERS = "silent", "agree", "differs"


@dataclass(frozen=True)
class Stated:
    """A setting's value in the paper and in its authors' code."""

    name: str  # the setting's name in the paper, or a description if the paper has none
    value: Any = SILENT  # the paper's value, in the form of our setting
    key: str = ""  # our name of the setting; empty if we have no such setting (see `why`)
    method: str = BACKBONE  # the method that has this setting
    on: Mapping[str, Any] = field(default_factory=dict)  # the paper's other values, by env
    shown: str = ""  # the value as the paper writes it, if its form differs from ours
    code: str | None = None  # value in the authors' code; None if unknown or absent
    other: str = ""  # KEY=VALUE for `--set` that sets another value that the paper may mean
    why: str = ""  # why our value differs, or why we have no such setting

    @property
    def printed(self) -> str:
        """Return the value as the paper prints it."""
        return self.shown or as_text(self.value)

    def agreement(self, ours: str, envs: Iterable[str] = ()) -> str:
        """Compare our value, which applies to these envs, with the paper's value.

        Return "agree", "differs" (with the reason if there is one), or "silent" if the paper gives
        no value.
        """
        stated = {as_text(self.on.get(env, self.value)) for env in envs or ("",)}
        if stated == {SILENT}:
            return SILENT
        return AGREE if stated == {ours} else f"{DIFFERS}: {self.why}" if self.why else DIFFERS


def silent(key: str, code: str | None, method: str = BACKBONE, **more: Any) -> Stated:
    """Return the entry of a setting for which the paper gives no value.

    more: other fields of Stated.
    """
    return Stated(more.pop("name", key), SILENT, key, method, code=code, **more)


# The paper's table "Default Hyper-parameters for NGT Algorithm", in the same order.
_DEFAULTS = (
    Stated("GPU", True, code="true", why="each command takes the device as --device"),
    Stated("PyTorch's compile", False, code="false", why="no code here is compiled"),
    Stated("CudaGraphs", True, "graphs", code="true (release: only acting and the actor)"),
    Stated(
        "number of parallel environments", 4, "train.num_envs", code="4 (backbone), 1 (release)"
    ),
    Stated("action repeat", 1, code="1", why="an action is one env step"),
    Stated(
        "observation normalization",
        False,
        "normalise_obs",
        code="false (backbone), true (release)",
        other="normalise_obs=true",
    ),
    Stated(
        "number of environment steps",
        10**7,
        "train.steps",
        code="10000000 (backbone), 1000000 (release)",
    ),
    Stated(
        "learning starts at timestep",
        0,
        "train.learning_starts",
        code="5000 (backbone), 2500 (release)",
    ),
    Stated("evaluation steps", 10, "train.eval_episodes", code="10"),
    Stated(
        "evaluate every", 10_000, "train.eval_every", code="10000 (backbone), 2000 an env (release)"
    ),
    Stated("evaluation window buffer size", 20, "window", code="20"),
    Stated("clip norm actor", 20.0, "sac.actor_grad_clip", code="none (backbone), 20 (release)"),
    Stated(
        "replay buffer size",
        4 * 10**6,
        "train.buffer",
        code="1000000 (backbone), 500000 (release)",
    ),
    Stated("minibatch size", 256, "train.batch", code="256 (release: at most 256 of the expert)"),
    Stated("discount factor", 0.99, "sac.gamma", code="0.99"),
    Stated("Polyak target smoothing coefficient", 0.005, "sac.tau", code="0.005"),
    Stated(
        "learning rate, policy", 3e-4, "sac.lr_actor", code="0.0003 (backbone), 0.0001 (release)"
    ),
    Stated(
        "learning rate, Q-networks",
        1e-3,
        "sac.lr_critic",
        code="0.001 (backbone), 0.0002 (release)",
    ),
    Stated("temperature, auto-tune", True, "sac.learn_alpha", code="true"),
    Stated("temperature, initial value", 0.2, "sac.alpha", code="0.2; release: softplus(log 0.2)"),
    Stated(
        "target entropy",
        1.0,
        "sac.target_entropy_scale",
        shown="−|A|, for an action in units not given",
        code="−|A|, for an action in the env's units",
    ),
    Stated("number of gradient steps per update", 1, "train.updates_per_step", code="1"),
    Stated("number of environment steps per update", 1, why="updates follow each vector step"),
    Stated("learning rate, reward", 1e-3, "params.lr", "ngt", code="5e-05 (release)"),
    Stated("spectral normalization", True, "params.spectral_norm", "ngt", code="true (release)"),
    Stated(
        "gradient penalty",
        0.0,
        "params.penalty",
        "ngt",
        shown="false",
        code="none (release)",
        other="methods.ngt.params.penalty=10.0",
    ),
    Stated("output embedding size", 32, "params.m", "ngt", code="64 (release)"),
    Stated("output post-tanh rescale", 5.0, "params.rescale", "ngt", code="no tanh (release)"),
    Stated("HLG support", 1.0, "params.support", "ngt", shown="[−1, 1]", code="[−3, 3] (release)"),
    Stated("HLG number of bins", 21, "params.bins", "ngt", code="21 (release)"),
    Stated("HLG agent-side σ", 0.05, "params.sigma_agent", "ngt", code="0.43 (release)"),
    Stated("HLG expert-side σ", 0.25, "params.sigma_expert", "ngt", code="0.43 (release)"),
    Stated("number of behavioral cloning iterations", 10**7, "train.steps", "bc"),
)

# Settings that the paper's section "Network Architecture" gives.
_NETS = (
    Stated("actor and critic, hidden layers", (256, 256), "sac.hidden", code="[256, 256]"),
    Stated(
        "actor and critic, activation",
        "relu",
        "sac.activation",
        code="relu (backbone), silu (release)",
    ),
    Stated(
        "layer normalization",
        False,
        "sac.layer_norm",
        code="true; false in earlier commits of the backbone",
    ),
    Stated(
        "reward network, hidden layers",
        (256, 256),
        "params.hidden",
        "ngt",
        code="[128, 128, 128] (release)",
    ),
    Stated("reward network, leak", 0.05, "params.leak", "ngt", code="0.2 (release)"),
    Stated(
        "reward network, initialization",
        "orthogonal",
        "params.init",
        "ngt",
        code="uniform: spectral norm undoes the orthogonal one (release)",
    ),
    Stated(
        "reward network, initialization",
        "orthogonal",
        "params.head_init",
        "ngt",
        code="uniform: spectral norm undoes the orthogonal one (release)",
    ),
)

# Settings that the paper gives in its other text and in Algorithm 1.
_TEXT = (
    Stated("input of the reward", "state-action", "mode", shown="(s, a); (s, s') too", code="both"),
    Stated("subsampling rate", 20, "rate", code="20"),
    Stated(
        "loss of the temperature",
        "alpha",
        "sac.alpha_loss",
        shown="−E[α (log π + H)], Algorithm 1",
        code="weighted by α; by log α in an earlier commit",
        other="sac.alpha_loss=log_alpha",
    ),
    Stated(
        "pairing loss",
        "huber",
        "params.pairing",
        "ngt",
        on={"Humanoid-v4": "hl_gauss"},
        shown="Huber; HL-Gauss on Humanoid",
        code="huber on each env (release)",
    ),
    Stated("Huber's δ", 1.0, "params.delta", "ngt", code="1.0 (release)"),
    Stated("squashing by tanh", True, "params.squash", "ngt", code="false (release)"),
    Stated(
        "squashing of HL-Gauss targets",
        "rescaled",
        "params.hlg_target",
        "ngt",
        shown="rescale · tanh, as for all outputs",
        code="no tanh (release)",
        other="methods.ngt.params.hlg_target=rescaled",
        why="most literal targets lie outside the support, without gradient",
    ),
    Stated(
        "scaling of the reward",
        "percentile_offset",
        "params.scaling",
        "ngt",
        shown="r / (P95 − P5), then shifted by P5 to re-center",
        code="by running percentiles (release)",
        other="methods.ngt.params.scaling=percentile_offset",
        why="(r − P5) / (P95 − P5), since P5 is a percentile of r, not of the divided reward",
    ),
    Stated("subsampling rate of BC(1)", 1, "rate", "bc-full"),
    Stated(
        "form of R", "logit", "params.form", "dac-r", shown="log D − log(1 − D)", code="the same"
    ),
    Stated("form of R+", "softplus", "params.form", "dac-rplus", shown="−log(1 − D)"),
    Stated("kernel widths", (0.1, 1.0, 10.0), "params.sigmas", "mmd-dac", shown="{0.1, 1, 10}"),
)

_OPEN = (
    silent(
        "terminate_when_unhealthy",
        "true (backbone), false (release)",
        name="termination of unhealthy bodies",
        other="terminate_when_unhealthy=false",
    ),
    silent("sac.head_gain", "1 (backbone), 0.001 (release)"),
    silent(
        "sac.lr_alpha",
        "0.001 (backbone), 0.0003 (release)",
        name="learning rate of the temperature",
        other="sac.lr_alpha=0.0003",
    ),
    silent("sac.alpha_form", "exp (backbone), softplus (release)"),
    silent(
        "sac.entropy_units",
        "env",
        name="units of the target entropy",
        other="sac.entropy_units=tanh",
    ),
    silent("sac.critic_grad_clip", "none (backbone), 20 for a loss without 1/2 (release)"),
    silent("sac.log_std_min", "-5"),
    silent("sac.log_std_max", "2"),
    silent("seed", None, EXPERT, shown="different from the agent's"),
    silent("episodes", "16 (backbone)", EXPERT),
    silent(
        "params.power_iterations",
        "torch's: one per forward pass in training, three per update",
        "ngt",
        name="power iterations of spectral norm",
        other="methods.ngt.params.power_iterations=1",
    ),
    silent(
        "params.reward_sigma",
        "one σ for both sides (release)",
        "ngt",
        name="the σ that HL-Gauss rewards use",
        other="methods.ngt.params.reward_sigma=agent",
    ),
    silent("params.gap_floor", "1e-10 (release)", "ngt"),
    silent("params.alpha", "5 (release)", "pwil"),
    silent("params.beta", "5 (release)", "pwil"),
    silent("params.form", "logit (release)", "diffail"),
    silent("params.expert_label", "1 (release)", "dac-r"),
    silent("params.absorbing", "false (release)", "dac-r"),
)


def _adversarial(method: str, known: bool) -> Iterable[Stated]:
    """Yield the settings of a baseline whose reward comes from a discriminator.

    known: True if the release has this method.
    """
    yield Stated(
        "reward network, hidden layers",
        (256, 256),
        "params.hidden",
        method,
        code="[128, 128, 128] (release)" if known else None,
    )
    leak = "0.2 (release)" if known else None
    yield Stated("reward network, leak", 0.05, "params.leak", method, code=leak)
    rate = "5e-05 (release)" if known else None
    yield Stated("learning rate, reward", 1e-3, "params.lr", method, code=rate)
    weight = "10 (release)" if known else None
    yield Stated("gradient penalty", 10.0, "params.penalty", method, code=weight)
    yield silent("params.one_sided", "false (release)" if known else None, method)
    yield Stated(
        "spectral normalization",
        True,
        "params.spectral_norm",
        method,
        shown="every layer of the reward network",
        code="false (release)" if known else None,
        why="read as a setting of NGT; it would cap the slope that the penalty pulls to 1",
    )


def _diffail() -> Iterable[Stated]:
    method, same = "diffail", "as the original: "
    for name, value in (
        ("hidden", (128, 128, 128)),
        ("frequencies", 8),
        ("steps", 10),
        ("beta_first", 1e-4),
        ("beta_last", 0.02),
        ("lr", 3e-5),
    ):
        shown = f"{same}{as_text(value)}"
        yield Stated(name, value, f"params.{name}", method, shown=shown, code=as_text(value))
    yield Stated("activation", "leaky_relu", "params.activation", method, code="leaky_relu")
    yield Stated(
        "slope of DiffAIL's LeakyReLU",
        0.05,
        "params.leak",
        method,
        shown="0.05, as for all reward networks",
        code="0.2 (release)",
        other="methods.diffail.params.leak=0.2",
    )
    yield Stated("gradient penalty", 0.1, "params.penalty", method, code="0.1 (release)")
    yield silent("params.floor", "1e-10 (release)", method, shown="ε padding; silent on its size")


_BASELINES = (
    *_adversarial("dac-r", known=True),
    *_adversarial("wdac", known=True),
    *_adversarial("mmd-dac", known=False),
    *_diffail(),
)

STATED: tuple[Stated, ...] = (*_DEFAULTS, *_NETS, *_TEXT, *_OPEN, *_BASELINES)

"""The method as a diagram (the paper's Fig. diag): how the reward is learned, and what it drives.

Every number in it is the config's.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ngt.errors import UserError
from ngt.potential import PotentialConfig
from ngt.runs.keys import Layout
from ngt.settings.config import MODES, CellConfig, Config, Mode
from ngt.settings.resolve import load_model
from paper import register
from paper.command import Made, Options
from paper.drawing import diagram, style
from paper.drawing.diagram import FLOWS, Arrow, Box, Label
from paper.drawing.labels import PAIRING
from paper.numbers import variants
from paper.tables.settings import where

METHOD = "ngt"
HEIGHT, BELOW = 3.36, 0.5  # inches: of the drawing; of legend and note

MODE: dict[Mode, str] = {
    "state-action": "$(s, a)$", "state-state": "$(s, s')$", "state-only": "$(s)$",
}  # fmt: skip
SCALED = {  # of the batch's own percentiles
    "percentile": r"$r' = (r - P_5)\,/\,(P_{95} - P_5)$",
    "percentile_offset": r"$r' = r\,/\,(P_{95} - P_5) - P_5$",
    "none": "$r' = r$",
}


def widths(hidden: Sequence[int]) -> str:
    """Layers as text."""
    same = len(set(hidden)) == 1
    return f"{len(hidden)} × {hidden[0]}" if same else ", ".join(map(str, hidden))


def boxes(cell: CellConfig, params: PotentialConfig) -> dict[str, Box]:
    """Everything that has an edge."""
    net = f"{widths(params.hidden)}, LeakyReLU {params.leak:g}"
    norm = ("spectral norm",) if params.spectral_norm else ()
    modes = [MODE[mode] for mode in MODES]
    act = {"relu": "ReLU", "silu": "SiLU"}[cell.sac.activation]
    left, nets, pair, right = 0.74, 2.66, 4.34, 5.92
    top, upper, middle, lower, bottom = 3.02, 2.73, 2.24, 1.75, 0.77
    return {
        "expert": Box(left, top, 1.32, 0.5, "data",
                      (r"demonstrations $\mathcal{E}$", "episodes, subsampled")),
        "input": Box(left, middle, 1.32, 0.44, "formula",
                     ("input $x$", f"{', '.join(modes[:-1])} or {modes[-1]}")),
        "buffer": Box(left, bottom, 1.32, 0.56, "data",
                      (r"replay buffer $\mathcal{D}$", f"{cell.train.buffer:,} transitions")),
        "predictor": Box(nets, upper, 1.56, 0.62, "trained",
                         (r"predictor $f_\xi$", net, *norm)),
        "prior": Box(nets, lower, 1.56, 0.62, "frozen",
                     (r"random prior $f^\dagger_\xi$", "the same layers, never updated", *norm)),
        "potential": Box(pair, middle, 1.14, 0.56, "formula",
                         ("potential", r"$h_\xi(x) =$", r"$\ell\,(f_\xi(x), f^\dagger_\xi(x))$")),
        "loss": Box(right, upper, 1.5, 0.62, "formula",
                    ("loss", r"$L(\xi) = \mathbb{E}_{\mathrm{expert}}\,[h_\xi(x)]$",
                     r"$-\ \mathbb{E}_{\mathrm{agent}}\,[h_\xi(x)]$")),
        "reward": Box(right, lower, 1.5, 0.5, "formula",
                      ("reward", r"$r_\xi(x) = \exp(-h_\xi(x))$")),
        "scaled": Box(right, bottom, 1.5, 0.56, "formula",
                      ("percentile scaling", SCALED[params.scaling])),
        "sac": Box(pair, bottom, 1.14, 0.56, "trained",
                   (r"SAC: $\pi_\theta$, $Q_\omega$", f"{widths(cell.sac.hidden)}, {act}")),
        "env": Box(nets, bottom, 1.1, 0.5, "data",
                   ("environment", f"{cell.train.num_envs} in lockstep")),
    }  # fmt: skip


def arrows(box: dict[str, Box]) -> list[Arrow]:
    """What flows where; each starts and ends on an edge."""

    def elbow(a: tuple[float, float], b: tuple[float, float], x: float) -> Arrow:
        return Arrow("plain", (a, (x, a[1]), (x, b[1]), b))

    lane = 0.1  # inches between two arrows side by side
    x_out, h = box["input"].at("right"), box["potential"]
    split = box["prior"].at("left")[0] - 0.16
    f, prior = box["predictor"].at("right"), box["prior"].at("right")
    to_loss, to_reward = box["loss"].at("left"), box["reward"].at("left")
    fork = (h.at("right")[0] + to_loss[0]) / 2
    above = box["loss"].at("top")[1] + 0.14
    below = box["buffer"].at("bottom")[1] - 0.16
    up, down = h.at("right", lane), h.at("right", -lane)
    nudge = 0.04
    expert_loss = (to_loss[0], to_loss[1] + nudge)
    return [
        Arrow("expert", (box["expert"].at("bottom"), box["input"].at("top"))),
        Arrow("agent", (box["buffer"].at("top"), box["input"].at("bottom"))),
        elbow(x_out, box["predictor"].at("left"), split),
        elbow(x_out, box["prior"].at("left"), split),
        Arrow("plain", (f, (h.x, f[1]), h.at("top"))),
        Arrow("plain", (prior, (h.x, prior[1]), h.at("bottom"))),
        Arrow("expert", (up, (fork - nudge, up[1]), (fork - nudge, expert_loss[1]), expert_loss)),
        Arrow("agent", (h.at("right"), (fork + nudge, h.y), (fork + nudge, to_loss[1] - 2 * nudge),
                        (to_loss[0], to_loss[1] - 2 * nudge))),
        Arrow("agent", (down, (fork, down[1]), (fork, to_reward[1]), to_reward)),
        Arrow("gradient", (box["loss"].at("top"), (box["loss"].x, above),
                           (box["predictor"].x, above), box["predictor"].at("top"))),
        Arrow("agent", (box["reward"].at("bottom"), box["scaled"].at("top"))),
        Arrow("plain", (box["scaled"].at("left"), box["sac"].at("right"))),
        Arrow("plain", (box["sac"].at("left", lane), box["env"].at("right", lane))),
        Arrow("plain", (box["env"].at("right", -lane), box["sac"].at("left", -lane))),
        Arrow("plain", (box["env"].at("left"), box["buffer"].at("right"))),
        Arrow("agent", (box["buffer"].at("bottom"), (box["buffer"].x, below),
                        (box["sac"].x, below), box["sac"].at("bottom"))),
    ]  # fmt: skip


def outputs(params: PotentialConfig) -> tuple[str, str]:
    """What leaves the predictor and the prior."""
    hlg = params.pairing == "hl_gauss"
    sizes = (f"{params.m} \\times {params.bins}" if hlg else f"{params.m}", f"{params.m}")
    scale = rf"{params.rescale:g}\,"
    scales = (scale, "" if hlg and params.hlg_target == "tanh" else scale)
    squash = (rf"{by}\tanh(\cdot)" if params.squash else "" for by in scales)
    trained, frozen = (
        rf"${by} \in \mathbb{{R}}^{{{size}}}$" for by, size in zip(squash, sizes, strict=True)
    )
    return trained, frozen


def labels(box: dict[str, Box], cell: CellConfig, params: PotentialConfig) -> list[Label]:
    """What stands beside the arrows."""
    gap, blue, orange = 0.05, FLOWS["expert"]["color"], FLOWS["agent"]["color"]
    trained, frozen = outputs(params)
    nets = box["predictor"].at("right")[0] + gap
    x, loss, reward = box["input"], box["loss"], box["reward"]
    env, sac, buffer, scaled = (box[n] for n in ("env", "sac", "buffer", "scaled"))
    between = (sac.at("left")[0] + env.at("right")[0]) / 2
    batch = f"minibatch of {cell.train.batch}"
    half = (x.at("top")[1] + box["expert"].at("bottom")[1]) / 2
    mid = (x.at("bottom")[1] + buffer.at("top")[1]) / 2
    return [
        Label(x.x + gap, half, f"$x \\sim P_{{\\mathrm{{expert}}}}$\n{batch}", "left", "center",
              blue),
        Label(x.x + gap, mid, f"$x \\sim P_{{\\mathrm{{agent}}}}$\n{batch}", "left", "center",
              orange),
        Label(nets, box["predictor"].y + gap, trained, "left"),
        Label(nets, box["prior"].y - gap, frozen, "left", "top"),
        Label((box["predictor"].x + loss.x) / 2, loss.at("top")[1] + 0.14 + 0.03,
              rf"$-\nabla_\xi\, L(\xi)$: into the predictor alone (Adam, {params.lr:g})"),
        Label(reward.x - gap, (reward.at("bottom")[1] + scaled.at("top")[1]) / 2,
              "of SAC's minibatch,\nwithout gradient", "right", "center", orange),
        Label((scaled.at("left")[0] + sac.at("right")[0]) / 2, sac.y + gap, "$r'$"),
        Label(between, sac.y + 0.1 + 0.03, "$a_t$"),
        Label(between, sac.y - 0.1 - 0.03, "$s_t$", va="top"),
        Label((env.at("left")[0] + buffer.at("right")[0]) / 2, env.y + gap,
              "$(s_t, a_t,$\n$s_{t+1})$"),
        Label((buffer.x + sac.x) / 2, buffer.at("bottom")[1] - 0.16 - 0.03,
              batch, va="top", color=orange),
    ]  # fmt: skip


@style.context()
def draw(config: Config) -> Figure:
    """The diagram, at the width of the paper's text; each box and text knows its name by gid."""
    cell, params, note = facts(config)
    figure = style.new_figure(style.TEXT_WIDTH, HEIGHT + BELOW)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, style.TEXT_WIDTH), ylim=(-BELOW, HEIGHT))
    axes.set_axis_off()
    box = boxes(cell, params)
    for name, b in box.items():
        diagram.add_box(axes, name, b)
    for i, arrow in enumerate(arrows(box)):
        diagram.add_arrow(axes, f"arrow:{i}", arrow)
    for i, label in enumerate(labels(box, cell, params)):
        diagram.add_label(axes, f"label:{i}", label)
    diagram.add_legend(axes, style.TEXT_WIDTH / 2, 0.02)
    lines = style.wrap(figure, note, style.TEXT_WIDTH - 0.16, style.NOTE_SIZE)
    axes.text(0.08, -0.12, "\n".join(lines), va="top", fontsize=style.NOTE_SIZE,
              linespacing=1.25, color=style.GREY, gid="note")  # fmt: skip
    return figure


def facts(config: Config) -> tuple[CellConfig, PotentialConfig, str]:
    """The method's settings on the scale's first env, and what differs on others in words."""
    envs = register.envs(config)
    if not envs:
        raise UserError("figures: none names an env, so there is no setting to show; name one")
    cells = {env: variants.cell(config, env, METHOD) for env in envs}
    cell = cells[envs[0]]
    model = load_model(cell.model, f"methods.{METHOD}.model")
    if model.Config is not PotentialConfig:
        raise UserError(
            f"methods.{METHOD}.model: {cell.model} has other settings than the diagram shows; "
            f"use ngt.potential:Potential"
        )
    params = PotentialConfig(**cell.params)
    if params.scaling not in SCALED:
        raise UserError(
            f"methods.{METHOD}.params.scaling: {params.scaling!r} is not drawn, as it reads other "
            f"batches too; use one of {', '.join(SCALED)}"
        )
    on: dict[str, list[str]] = {}
    for env, other in cells.items():
        on.setdefault(other.params["pairing"], []).append(env)
    pairings = "; ".join(
        PAIRING[name] + (f" on {where(some, envs)}" if len(on) > 1 else "")
        for name, some in on.items()
    )
    note = f"Scale {config.scale}. Pairing loss ℓ: {pairings}."
    if "hl_gauss" in on and params.squash and params.hlg_target == "tanh":
        note += (
            f" With HL-Gauss the predictor has {params.bins} logits for each of the prior's "
            f"{params.m} outputs, which are squashed by tanh alone."
        )
    return cell, params, note


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the diagram, which needs no runs."""
    return Made(draw(config))

"""A diagram of NGT: how the reward is learned, and how the agent uses it."""

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
from paper.drawing.diagram import FLOWS, Arrow, Box, Flow, Label
from paper.drawing.labels import PAIRING
from paper.numbers import variants
from paper.tables.settings import where

METHOD = "ngt"
HEIGHT, BELOW = 3.4, 0.5  # height of the drawing, and of the legend and note below it, in inches

MODE: dict[Mode, str] = {
    "state-action": "$(s, a)$",
    "state-state": "$(s, s')$",
    "state-only": "$(s)$",
}
SCALED = {  # formulas of those scalings of the reward that use only the current batch
    "percentile": r"$r' = (r - P_5)\,/\,(P_{95} - P_5)$",
    "percentile_offset": r"$r' = r\,/\,(P_{95} - P_5) - P_5$",
    "none": "$r' = r$",
}


def widths(hidden: Sequence[int]) -> str:
    """Return the number and widths of hidden layers as text, such as `2 × 256`."""
    same = len(set(hidden)) == 1
    return f"{len(hidden)} × {hidden[0]}" if same else ", ".join(map(str, hidden))


# Positions of the columns and rows of boxes, in inches.
LEFT, NETS, PAIR, RIGHT = 0.74, 2.66, 4.34, 5.92
TOP, UPPER, MIDDLE, LOWER, BOTTOM = 3.02, 2.73, 2.24, 1.75, 0.77


def boxes(cell: CellConfig, params: PotentialConfig) -> dict[str, Box]:
    """Return all boxes of the diagram, by name."""
    return {
        **_data_boxes(cell),
        **_learned_boxes(params),
        **_agent_boxes(cell),
    }


def _data_boxes(cell: CellConfig) -> dict[str, Box]:
    """Return the boxes of the demonstrations, the input of the nets and the replay buffer."""
    modes = [MODE[mode] for mode in MODES]
    return {
        "expert": Box(
            LEFT, TOP, 1.32, 0.5, "data", (r"demonstrations $\mathcal{E}$", "episodes, subsampled")
        ),
        "input": Box(
            LEFT,
            MIDDLE,
            1.32,
            0.44,
            "formula",
            ("input $x$", f"{', '.join(modes[:-1])} or {modes[-1]}"),
        ),
        "buffer": Box(
            LEFT,
            BOTTOM,
            1.32,
            0.56,
            "data",
            (r"replay buffer $\mathcal{D}$", f"{cell.train.buffer:,} transitions"),
        ),
    }


def _learned_boxes(params: PotentialConfig) -> dict[str, Box]:
    """Return the boxes of the nets, the potential, the loss and the reward."""
    net = f"{widths(params.hidden)}, LeakyReLU {params.leak:g}"
    norm = ("spectral norm",) if params.spectral_norm else ()
    penalty = (f"+ {params.penalty:g} × gradient penalty",) if params.penalty else ()
    return {
        "predictor": Box(NETS, UPPER, 1.68, 0.62, "trained", (r"predictor $f_\xi$", net, *norm)),
        "prior": Box(
            NETS,
            LOWER,
            1.68,
            0.62,
            "frozen",
            (r"random prior $f^\dagger_\xi$", "the same layers, never updated", *norm),
        ),
        "potential": Box(
            PAIR,
            MIDDLE,
            1.14,
            0.56,
            "formula",
            ("potential", r"$h_\xi(x) =$", r"$\ell\,(f_\xi(x), f^\dagger_\xi(x))$"),
        ),
        "loss": Box(
            RIGHT,
            UPPER,
            1.5,
            0.62,
            "formula",
            (
                "loss",
                r"$L(\xi) = \mathbb{E}_{\mathrm{expert}}\,[h_\xi(x)]$",
                r"$-\ \mathbb{E}_{\mathrm{agent}}\,[h_\xi(x)]$",
                *penalty,
            ),
        ),
        "reward": Box(
            RIGHT, LOWER, 1.5, 0.5, "formula", ("reward", r"$r_\xi(x) = \exp(-h_\xi(x))$")
        ),
        "scaled": Box(
            RIGHT, BOTTOM, 1.5, 0.56, "formula", ("percentile scaling", SCALED[params.scaling])
        ),
    }


def _agent_boxes(cell: CellConfig) -> dict[str, Box]:
    """Return the boxes of the agent and of its environment."""
    act = {"relu": "ReLU", "silu": "SiLU"}[cell.sac.activation]
    return {
        "sac": Box(
            PAIR,
            BOTTOM,
            1.14,
            0.56,
            "trained",
            (r"SAC: $\pi_\theta$, $Q_\omega$", f"{widths(cell.sac.hidden)}, {act}"),
        ),
        "env": Box(
            NETS, BOTTOM, 1.1, 0.5, "data", ("environment", f"{cell.train.num_envs} in lockstep")
        ),
    }


LANE, NUDGE = 0.1, 0.04  # distances between arrows that run side by side, in inches


def arrows(box: dict[str, Box]) -> list[Arrow]:
    """Return all arrows of the diagram. Each arrow starts and ends on the edge of a box."""
    return [*_reward_arrows(box), *_agent_arrows(box)]


def _reward_arrows(box: dict[str, Box]) -> list[Arrow]:
    """Return the arrows from the data to the loss and the reward."""

    def elbow(a: tuple[float, float], b: tuple[float, float], x: float) -> Arrow:
        return Arrow("plain", (a, (x, a[1]), (x, b[1]), b))

    x_out, h = box["input"].at("right"), box["potential"]
    split = box["prior"].at("left")[0] - 0.16
    f, prior = box["predictor"].at("right"), box["prior"].at("right")
    to_loss, to_reward = box["loss"].at("left"), box["reward"].at("left")
    fork = (h.at("right")[0] + to_loss[0]) / 2
    above = box["loss"].at("top")[1] + 0.14
    up, down = h.at("right", LANE), h.at("right", -LANE)
    expert_loss = (to_loss[0], to_loss[1] + NUDGE)
    return [
        Arrow("expert", (box["expert"].at("bottom"), box["input"].at("top"))),
        Arrow("agent", (box["buffer"].at("top"), box["input"].at("bottom"))),
        elbow(x_out, box["predictor"].at("left"), split),
        elbow(x_out, box["prior"].at("left"), split),
        Arrow("plain", (f, (h.x, f[1]), h.at("top"))),
        Arrow("plain", (prior, (h.x, prior[1]), h.at("bottom"))),
        Arrow("expert", (up, (fork - NUDGE, up[1]), (fork - NUDGE, expert_loss[1]), expert_loss)),
        Arrow(
            "agent",
            (
                h.at("right"),
                (fork + NUDGE, h.y),
                (fork + NUDGE, to_loss[1] - 2 * NUDGE),
                (to_loss[0], to_loss[1] - 2 * NUDGE),
            ),
        ),
        Arrow("agent", (down, (fork, down[1]), (fork, to_reward[1]), to_reward)),
        _around("gradient", box["loss"].at("top"), box["predictor"].at("top"), above),
    ]


def _around(flow: Flow, a: tuple[float, float], b: tuple[float, float], y: float) -> Arrow:
    """Return an arrow from a to b that goes around the boxes between them at height y."""
    return Arrow(flow, (a, (a[0], y), (b[0], y), b))


def _agent_arrows(box: dict[str, Box]) -> list[Arrow]:
    """Return the arrows from the reward to the agent and back to the data."""
    below = box["buffer"].at("bottom")[1] - 0.16
    return [
        Arrow("agent", (box["reward"].at("bottom"), box["scaled"].at("top"))),
        Arrow("plain", (box["scaled"].at("left"), box["sac"].at("right"))),
        Arrow("plain", (box["sac"].at("left", LANE), box["env"].at("right", LANE))),
        Arrow("plain", (box["env"].at("right", -LANE), box["sac"].at("left", -LANE))),
        Arrow("plain", (box["env"].at("left"), box["buffer"].at("right"))),
        _around("agent", box["buffer"].at("bottom"), box["sac"].at("bottom"), below),
    ]


def outputs(params: PotentialConfig) -> tuple[str, str]:
    """Return the formulas for the outputs of the predictor and of the prior, with their sizes."""
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
    """Return the texts next to the arrows."""
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
        Label(
            x.x + gap, half, f"$x \\sim P_{{\\mathrm{{expert}}}}$\n{batch}", "left", "center", blue
        ),
        Label(
            x.x + gap, mid, f"$x \\sim P_{{\\mathrm{{agent}}}}$\n{batch}", "left", "center", orange
        ),
        Label(nets, box["predictor"].y + gap, trained, "left"),
        Label(nets, box["prior"].y - gap, frozen, "left", "top"),
        Label(
            (box["predictor"].x + loss.x) / 2,
            loss.at("top")[1] + 0.14 + 0.03,
            rf"$-\nabla_\xi\, L(\xi)$: into the predictor alone (Adam, {params.lr:g})",
        ),
        Label(
            reward.x - gap,
            (reward.at("bottom")[1] + scaled.at("top")[1]) / 2,
            "of SAC's minibatch,\nwithout gradient",
            "right",
            "center",
            orange,
        ),
        Label((scaled.at("left")[0] + sac.at("right")[0]) / 2, sac.y + gap, "$r'$"),
        Label(between, sac.y + 0.1 + 0.03, "$a_t$"),
        Label(between, sac.y - 0.1 - 0.03, "$s_t$", va="top"),
        Label(
            (env.at("left")[0] + buffer.at("right")[0]) / 2, env.y + gap, "$(s_t, a_t,$\n$s_{t+1})$"
        ),
        Label(
            (buffer.x + sac.x) / 2,
            buffer.at("bottom")[1] - 0.16 - 0.03,
            batch,
            va="top",
            color=orange,
        ),
    ]


@style.context()
def draw(config: Config) -> Figure:
    """Draw and return the diagram, which is as wide as the paper's text.

    Each part of the drawing has a name as its id (gid), for tests.
    """
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
    axes.text(
        0.08,
        -0.12,
        "\n".join(style.wrap(figure, note, style.TEXT_WIDTH - 0.16, style.NOTE_SIZE)),
        va="top",
        fontsize=style.NOTE_SIZE,
        linespacing=1.25,
        color=style.GREY,
        gid="note",
    )
    return figure


def facts(config: Config) -> tuple[CellConfig, PotentialConfig, str]:
    """Return NGT's settings on the first env of the scale, and the note below the diagram.

    The note names the pairing loss on each env.
    """
    envs = register.envs(config)
    if not envs:
        raise UserError("figures: none names an env, so there are no settings to show; name one")
    cells = {env: variants.cell(config, env, METHOD) for env in envs}
    cell = cells[envs[0]]
    model = load_model(cell.model, f"methods.{METHOD}.model")
    if model.Config is not PotentialConfig:
        raise UserError(
            f"methods.{METHOD}.model: the diagram does not fit the settings of {cell.model}; "
            f"use ngt.potential:Potential"
        )
    params = PotentialConfig(**cell.params)
    if params.scaling not in SCALED:
        raise UserError(
            f"methods.{METHOD}.params.scaling: {params.scaling!r} can't be drawn, because it also "
            f"uses other batches; use one of {', '.join(SCALED)}"
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
            f" With HL-Gauss, the predictor has {params.bins} logits for each of the prior's "
            f"{params.m} outputs. The prior's outputs are squashed by tanh alone."
        )
    return cell, params, note


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the diagram, which needs no runs."""
    return Made(draw(config))

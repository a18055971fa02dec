"""NGT's potential over training, as a picture and as an animation for the docs.

python -m paper.handbook.picture
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ngt.files import CHECKOUT, atomic
from ngt.settings.options import Parser
from ngt.views import clip
from paper import command
from paper.drawing import style
from paper.figures import reward
from paper.numbers import potential
from paper.numbers.potential import Maps
from paper.register import POTENTIAL

NAME = "picture"
STEM = CHECKOUT / "docs" / "potential"  # the files without their endings
LARGEST = 500_000  # bytes of the animation
QUALITY = ((640, 1, 256), (640, 1, 128), (480, 1, 128), (360, 1, 64))  # as in ngt.views.clip
SECONDS = 12.0  # maximum length of the animation
EACH = 1.0  # maximum number of seconds for which each map is shown


@style.context()
def still(maps: Maps) -> Figure:
    """Draw the maps in a row, with a legend."""
    count = len(maps.step)
    figure = style.new_figure(style.TEXT_WIDTH, 2.4)
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for number, axes in enumerate(panels):
        image = reward.panel(axes, maps, number)
        axes.set_xlabel(reward.ANGLE)
    panels[0].set_ylabel(reward.VELOCITY)
    figure.colorbar(image, ax=panels, label=reward.POTENTIAL_LABEL)
    style.footer(figure, _handles(), [])
    return figure


@style.context()
def frame(maps: Maps, number: int) -> NDArray[np.uint8]:
    """Draw one map and return its pixels, shape (height, width, 3)."""
    figure = style.new_figure(3.6, 3.0)
    axes = figure.subplots()
    image = reward.panel(axes, maps, number)
    axes.set(xlabel=reward.ANGLE, ylabel=reward.VELOCITY)
    figure.colorbar(image, ax=axes, label=reward.POTENTIAL_LABEL)
    style.footer(figure, _handles(), [])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _handles() -> list[Line2D]:
    agent = reward.AGENT | {"markersize": 5.0}
    return [
        Line2D([], [], **reward.EXPERT, label="expert"),
        Line2D([], [], **agent, label="agent"),
    ]


def animation(maps: Maps) -> bytes:
    """Return a GIF with a frame per map."""
    frames = [frame(maps, number) for number in range(len(maps.step))]
    film = clip.Clip(frames, min(EACH, SECONDS / len(frames)))
    return clip.gif(film, "NGT's potential over training", LARGEST, QUALITY)


def main(argv: Sequence[str] | None = None) -> None:
    """Write both files. An error leaves existing files unchanged."""
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog="python -m paper.handbook.picture", description=about)
    parser.add_argument(
        "--out",
        type=Path,
        default=STEM,
        metavar="STEM",
        help="write STEM.png and STEM.gif (default: docs/potential)",
    )
    parser.add_argument(
        "--moments",
        type=int,
        metavar="N",
        help="train the same run again, which takes some minutes, and animate N moments of it "
        "(default: the shipped maps)",
    )

    def run() -> None:
        args = parser.parse_args(argv)
        maps = potential.load(Path(POTENTIAL))
        film = maps
        if args.moments:
            parts = np.linspace(0.0, 1.0, args.moments + 1)[1:]
            film = potential.train(moments=[float(part) for part in parts])
        content, metadata = animation(film), {"Software": None}
        figure: Any = still(maps)
        with style.context(), atomic(args.out.with_suffix(".png")) as temporary:
            figure.savefig(temporary, format="png", metadata=metadata)
        with atomic(args.out.with_suffix(".gif")) as temporary:
            temporary.write_bytes(content)
        print(f"{args.out.with_suffix('.png')}, {args.out.with_suffix('.gif')}")

    command.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()

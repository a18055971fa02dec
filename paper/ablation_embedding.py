"""NGT with embeddings of other sizes (the paper's Fig. abl_embeddim).

python -m paper.ablation_embedding --scale quick --out results/ablation_embedding.pdf
"""

from __future__ import annotations

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.resolve import model_params
from paper.drawing import style
from paper.drawing.panels import Series
from paper.figures.curves import CurveFigure, variants


def sizes(config: Config, name: str) -> list[Series]:
    """A line a method, the larger the embedding the darker."""

    def size(one: Series) -> int:
        _, params = model_params(config, one.method, config.figures[name].envs[0])
        if "m" not in params:
            raise UserError(f"figures.{name}.methods: {one.method} has no embedding size m")
        return int(params["m"])

    ordered = sorted(variants(config, name), key=size)
    looks = reversed(style.ramp(len(ordered)))
    return [Series(*one[:3], look) for one, look in zip(ordered, looks, strict=True)]


FIGURE = CurveFigure("ablation_embedding", __doc__, series=sizes)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

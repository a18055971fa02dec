"""Learning curves on DeepMind Control tasks (the paper's Fig. dmc).

python -m paper.dmc_figure --scale quick --out results/dmc_figure.pdf
"""

from __future__ import annotations

from paper.figures.curves import CurveFigure

FIGURE = CurveFigure("dmc_figure", __doc__)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

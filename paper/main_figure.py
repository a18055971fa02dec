"""Learning curves of every method, env and number of demonstrations (the paper's main figure).

python -m paper.main_figure --scale quick --out results/main_figure.pdf
"""

from __future__ import annotations

from paper.figures.curves import CurveFigure

FIGURE = CurveFigure("main_figure", __doc__)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

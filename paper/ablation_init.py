"""NGT with the Kaiming initialisation of the head (the paper's Fig. abl_init).

python -m paper.ablation_init --scale quick --out results/ablation_init.pdf
"""

from __future__ import annotations

from paper.figures.curves import CurveFigure, variants

FIGURE = CurveFigure("ablation_init", __doc__, series=variants)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

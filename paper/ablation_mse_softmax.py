"""NGT with MSE-softmax as pairing (the paper's Fig. abl_mse).

python -m paper.ablation_mse_softmax --scale quick --out results/ablation_mse_softmax.pdf
"""

from __future__ import annotations

from paper.figures.curves import CurveFigure, variants

FIGURE = CurveFigure("ablation_mse_softmax", __doc__, series=variants)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

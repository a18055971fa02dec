"""NGT without spectral norm (the paper's Fig. abl_sn).

python -m paper.ablation_spectral_norm --scale quick --out results/ablation_spectral_norm.pdf
"""

from __future__ import annotations

from paper.figures.curves import CurveFigure, variants

FIGURE = CurveFigure("ablation_spectral_norm", __doc__, series=variants)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

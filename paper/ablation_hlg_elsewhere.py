"""NGT with HL-Gauss as pairing on the envs that have Huber (the paper's Fig. abl_hlg).

python -m paper.ablation_hlg_elsewhere --scale quick --out results/ablation_hlg_elsewhere.pdf
"""

from __future__ import annotations

from paper.figures.curves import CurveFigure, variants

FIGURE = CurveFigure("ablation_hlg_elsewhere", __doc__, series=variants)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()

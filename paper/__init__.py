"""The suite's results: figures, tables, claims, computed theory, and reports that show them.

`python -m paper` lists every artefact, and `python -m paper main_figure` makes one of them.
`paper.register` lists them all; docs/new-artefact.md shows how to add another.
"""

import os
from pathlib import Path

# Figures are written to files, in the suite's own style. A notebook's backend may be missing here,
# and the import of matplotlib would fail. The user's matplotlibrc would change the style.
os.environ["MPLBACKEND"] = "agg"
os.environ.pop("SOURCE_DATE_EPOCH", None)  # files carry no date
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "drawing" / "style.mplstyle")

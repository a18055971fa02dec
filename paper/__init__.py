"""The suite's results: figures, tables, claims, computed theory, and reports that show them.

`python -m paper` lists every artefact, and `python -m paper main_figure` makes one of them.
`paper.register` defines them; docs/new-artefact.md shows how to add another.
"""

import os
from pathlib import Path

# Figures are written to files, in the suite's own style. A notebook may set a backend that is not
# installed here, and importing matplotlib would then fail. The user's matplotlibrc would change the
# style.
os.environ["MPLBACKEND"] = "agg"
os.environ.pop("SOURCE_DATE_EPOCH", None)  # the files contain no date
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "drawing" / "style.mplstyle")

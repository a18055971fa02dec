"""The suite's results: figures, tables, verdicts on claims, computed theory, and reports.

An artefact is a figure, a table or a document. `python -m paper` lists all artefacts, and
`python -m paper main_figure` makes one artefact, here the main figure. `paper.register` defines the
artefacts; docs/new-artefact.md shows how to add an artefact.
"""

import os
from pathlib import Path

# Write figures to files, in the suite's own style, whatever the user's settings are. MPLBACKEND may
# name a notebook's backend that is not installed here, so that importing matplotlib would fail. The
# user's matplotlibrc file would change the style.
os.environ["MPLBACKEND"] = "agg"
os.environ.pop("SOURCE_DATE_EPOCH", None)  # the files contain no date
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "drawing" / "style.mplstyle")
